// Ops with one output per part of a dim: split, chunk, unbind. How many there are must be a number.
#include <algorithm>

#include "transporters/error.h"
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

bool is_view(const Node& node) {
  const auto name = node.schema().base_name();
  return !name.ends_with("_copy") && name.find("unsafe") == std::string_view::npos;
}

Types parts(const Node& node, const TensorType& self, size_t d, const Sizes& lengths) {
  Types types;
  const Sizes strides = strides_of(self);
  for (const auto& length : lengths) {
    Sizes sizes = self.sizes;
    sizes[d] = length;
    types.push_back(is_view(node) ? view_type(self.dtype, sizes, strides) : tensor(self.dtype, sizes));
  }
  return types;
}

int64_t count_of(const Node& node, const Expr& size, ShapeEnv& env, const std::string& what) {
  if (const auto constant = env.simplify(size).as_integer()) return *constant;
  if (env.hint(size)) return env.specialize(size);
  try {
    return env.specialize(size);
  } catch (const GuardError&) {
    fail(node, "expected a constant for " + what + ", got " + size.str() + ", which the data decides");
  }
}

// Parts of `length`, the last one shorter.
Types split_by_length(const Node& node, const TensorType& self, size_t d, const Expr& length, ShapeEnv& env) {
  const Expr size = env.simplify(self.sizes[d]);
  const auto constant = length.as_integer();
  check(!constant || *constant > 0 || size.is(0), node, "expected a split size above 0, got " + length.str());
  if (size.is(0) || size == length) return parts(node, self, d, {size});
  const int64_t count = std::max<int64_t>(
      count_of(node, ceil_div(size, length), env, "the number of parts of dim " + std::to_string(d)), 1);
  const Expr total = env.simplify(size);
  Sizes lengths(static_cast<size_t>(count), length);
  lengths.back() = env.simplify(total - length * (count - 1));
  return parts(node, self, d, lengths);
}

Types split(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return split_by_length(node, self, dim(node, "dim", self.rank()), node.size("split_size"), env);
}

Types split_with_sizes(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const Sizes lengths = node.sizes(node.schema().arguments[1].name);
  Expr total = 0;
  for (const auto& length : lengths) {
    check_not_negative(node, length, env, "a length");
    total = total + length;
  }
  common_size(
      node, self.sizes[d], total, env,
      "expected lengths that sum to dim " + std::to_string(d) + " of " + describe(self) + ", got " + describe(lengths));
  return parts(node, self, d, lengths);
}

// At most `chunks` parts, each ceil(size / chunks) long but the last. There are fewer when the size is short, so the
// count at the example is recorded as a condition unless the size is a multiple of `chunks`.
Types chunk(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const int64_t chunks = node.integer("chunks");
  check(chunks > 0, node, "expected chunks above 0, got " + std::to_string(chunks));
  const Expr size = env.simplify(self.sizes[d]);
  if (size.is(0)) return parts(node, self, d, Sizes(static_cast<size_t>(chunks), Expr(0)));
  const Expr length = env.simplify(ceil_div(size, chunks));
  if (size.is_constant()) return split_by_length(node, self, d, length, env);
  if (env.decide(equal(mod(size, chunks), 0)).value_or(false)) {
    return parts(node, self, d, Sizes(static_cast<size_t>(chunks), env.simplify(floor_div(size, chunks))));
  }
  const Expr count = ceil_div(size, length);
  const auto example = env.hint(count);
  if (!example) {
    fail(node, "expected a constant number of parts of dim " + std::to_string(d) + " of " + describe(self) +
                   ", whose size the data decides");
  }
  check(env.guard(equal(count, *example)), node, "the number of parts of " + describe(self) + " varies with its size");
  Sizes lengths(static_cast<size_t>(*example), length);
  lengths.back() = env.simplify(size - length * (*example - 1));
  return parts(node, self, d, lengths);
}

Types tensor_split_at(const Node& node, const TensorType& self, size_t d, const Sizes& indices, ShapeEnv& env) {
  const Expr size = self.sizes[d];
  const auto wrap = [&](const Expr& index) {
    const bool negative = env.guard(less(index, 0));
    return env.simplify(negative ? max(index + size, 0) : min(index, size));
  };
  Sizes lengths;
  Expr start = 0;
  for (const auto& index : indices) {
    const Expr end = wrap(index);
    lengths.push_back(env.simplify(max(end - start, 0)));
    start = end;
  }
  lengths.push_back(env.simplify(size - start));
  return parts(node, self, d, lengths);
}

Types tensor_split_indices(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return tensor_split_at(node, self, dim(node, "dim", self.rank()), node.sizes("indices"), env);
}

// The first size % sections parts are one longer.
Types tensor_split_sections(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const int64_t sections = count_of(node, node.size("sections"), env, "sections");
  check(sections > 0, node, "expected sections above 0, got " + std::to_string(sections));
  Sizes lengths;
  for (int64_t i = 0; i < sections; ++i)
    lengths.push_back(env.simplify(floor_div(self.sizes[d] + (sections - 1 - i), sections)));
  return parts(node, self, d, lengths);
}

// hsplit, vsplit and dsplit are tensor_split along a fixed dim.
Types split_fixed(const Node& node, size_t d, ShapeEnv& env) {
  const auto& self = input(node, "self");
  if (node.schema().find("indices")) return tensor_split_at(node, self, d, node.sizes("indices"), env);
  const Expr length =
      exact_quotient(node, {self.sizes[d]}, {node.size("sections")}, env,
                     "expected sections that divide dim " + std::to_string(d) + " of " + describe(self));
  return parts(node, self, d, Sizes(static_cast<size_t>(node.integer("sections")), length));
}

Types hsplit(const Node& node, ShapeEnv& env) {
  check_rank_at_least(node, "self", input(node, "self"), 1);
  return split_fixed(node, input(node, "self").rank() == 1 ? 0 : 1, env);
}
Types vsplit(const Node& node, ShapeEnv& env) {
  check_rank_at_least(node, "self", input(node, "self"), 2);
  return split_fixed(node, 0, env);
}
Types dsplit(const Node& node, ShapeEnv& env) {
  check_rank_at_least(node, "self", input(node, "self"), 3);
  return split_fixed(node, 2, env);
}

Types unbind(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const int64_t count = count_of(node, self.sizes[d], env, "the size of dim " + std::to_string(d));
  Sizes sizes = self.sizes, strides = strides_of(self);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  const ValueType part = is_view(node) ? ValueType(view_type(self.dtype, sizes, strides)) : tensor(self.dtype, sizes);
  return Types(static_cast<size_t>(count), part);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::split.Tensor", split},
    {"aten::split.sizes", split_with_sizes},
    {"aten::split_copy", split},
    {"aten::split_with_sizes", split_with_sizes},
    {"aten::split_with_sizes_copy", split_with_sizes},
    {"aten::unsafe_split", split},
    {"aten::unsafe_split_with_sizes", split_with_sizes},
    {"aten::chunk", chunk},
    {"aten::unsafe_chunk", chunk},
    {"aten::tensor_split.indices", tensor_split_indices},
    {"aten::tensor_split.sections", tensor_split_sections},
    {"aten::hsplit", hsplit},
    {"aten::vsplit", vsplit},
    {"aten::dsplit", dsplit},
    {"aten::unbind", unbind},
    {"aten::unbind_copy", unbind},
};

}  // namespace

std::span<const ShapeRuleRow> split_rules() { return kRows; }

}  // namespace transporters::shape_rules
