// Ops that join tensors, repeat them or change the order of their elements along dims.
#include <algorithm>
#include <array>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

std::vector<const TensorType*> list(const Node& node) {
  auto tensors = inputs(node, node.schema().arguments[0].name);
  check(!tensors.empty(), node, "expected at least one tensor");
  return tensors;
}

ScalarType list_dtype(const Node& node) {
  std::vector<Argument> operands;
  for (Value* value : node.tensors(node.schema().arguments[0].name)) operands.emplace_back(value);
  return result_type(operands);
}

// A 1-D tensor without elements joins with anything (a legacy that caches rely on).
bool is_legacy_empty(const TensorType& type, const ShapeEnv& env) {
  return type.rank() == 1 && is_zero(type.sizes[0], env);
}

Sizes joined(const Node& node, const std::vector<Sizes>& shapes, size_t d, ShapeEnv& env) {
  Sizes sizes = shapes.front();
  for (size_t i = 1; i < shapes.size(); ++i) {
    const std::string message = "expected tensors of one shape but for dim " + std::to_string(d) + ", got " +
                                describe(shapes.front()) + " and " + describe(shapes[i]);
    check(shapes[i].size() == sizes.size(), node, message);
    for (size_t j = 0; j < sizes.size(); ++j) {
      sizes[j] = j == d ? sizes[j] + shapes[i][j] : common_size(node, sizes[j], shapes[i][j], env, message);
    }
  }
  return sizes;
}

Types cat(const Node& node, ShapeEnv& env) {
  std::vector<Sizes> shapes;
  const auto tensors = list(node);
  for (const auto* type : tensors) {
    if (!is_legacy_empty(*type, env)) shapes.push_back(type->sizes);
  }
  const ScalarType dtype = list_dtype(node);
  if (shapes.empty()) return one(dtype, {0});
  check(!shapes.front().empty(), node, "tensors of rank 0 can't be joined: use stack");
  return one(dtype, joined(node, shapes, dim(node, "dim", shapes.front().size()), env));
}

Types stack(const Node& node, ShapeEnv& env) {
  const auto tensors = list(node);
  Sizes sizes = tensors.front()->sizes;
  for (const auto* type : tensors) {
    const std::string message =
        "expected tensors of one shape, got " + describe(*tensors.front()) + " and " + describe(*type);
    check(type->rank() == sizes.size(), node, message);
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = common_size(node, sizes[i], type->sizes[i], env, message);
  }
  const auto d = wrap_dim(node.integer("dim"), sizes.size() + 1);
  sizes.insert(sizes.begin() + d, Expr(static_cast<int64_t>(tensors.size())));
  return one(list_dtype(node), sizes);
}

// hstack, vstack, dstack and column_stack raise ranks first, as atleast_1d/2d/3d do.
Types stack_along(const Node& node, ShapeEnv& env, size_t rank, size_t d, bool vectors_as_columns = false) {
  std::vector<Sizes> shapes;
  for (const auto* type : list(node)) {
    Sizes sizes = type->sizes;
    if (sizes.empty()) sizes.resize(rank, Expr(1));
    if (sizes.size() == 1 && rank > 1) {
      sizes.insert(vectors_as_columns ? sizes.end() : sizes.begin(), Expr(1));
    }
    if (sizes.size() < rank) sizes.resize(rank, Expr(1));
    shapes.push_back(std::move(sizes));
  }
  return one(list_dtype(node), joined(node, shapes, d, env));
}

Types hstack(const Node& node, ShapeEnv& env) {
  return stack_along(node, env, 1, list(node).front()->rank() <= 1 ? 0 : 1);
}
Types vstack(const Node& node, ShapeEnv& env) { return stack_along(node, env, 2, 0); }
Types dstack(const Node& node, ShapeEnv& env) { return stack_along(node, env, 3, 2); }
Types column_stack(const Node& node, ShapeEnv& env) { return stack_along(node, env, 2, 1, true); }

Types block_diag(const Node& node, ShapeEnv& env) {
  Expr rows = 0, columns = 0;
  for (const auto* type : list(node)) {
    check_rank(node, "tensors", *type, {0, 1, 2});
    rows = rows + (type->rank() == 2 ? type->sizes[0] : Expr(1));
    columns = columns + (type->rank() == 0 ? Expr(1) : type->sizes.back());
  }
  return one(list_dtype(node), {rows, columns});
}

Types cartesian_prod(const Node& node, ShapeEnv& env) {
  const auto tensors = list(node);
  Expr count = 1;
  for (const auto* type : tensors) {
    check_rank(node, "tensors", *type, {1});
    count = count * type->sizes[0];
  }
  if (tensors.size() == 1) return one(tensors[0]->dtype, {count});
  return one(tensors[0]->dtype, {count, static_cast<int64_t>(tensors.size())});
}

// Vectors of n elements give n! / (k! (n - k)!) combinations; n must be a number.
Types combinations(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {1});
  const int64_t r = node.integer("r");
  int64_t n = env.specialize(self.sizes[0]);
  if (node.boolean("with_replacement")) n += r - 1;
  int64_t count = r > n ? 0 : 1;
  for (int64_t i = 0; count && i < r; ++i) count = count * (n - i) / (i + 1);
  return one(self.dtype, r == 0 ? Sizes{0} : Sizes{count, r});
}

Types broadcast_tensors(const Node& node, ShapeEnv& env) {
  const auto tensors = list(node);
  Sizes sizes;
  for (const auto* type : tensors) sizes = broadcast(sizes, type->sizes, env);
  Types types;
  for (const auto* type : tensors) {
    const size_t added = sizes.size() - type->rank();
    const Sizes old_strides = strides_of(*type);
    Sizes strides(sizes.size(), Expr(0));
    for (size_t i = 0; i < type->rank(); ++i) {
      const bool spread = is_one(type->sizes[i], env) && !is_one(sizes[added + i], env);
      if (!spread) strides[added + i] = old_strides[i];
    }
    types.push_back(view_type(type->dtype, sizes, strides));
  }
  return types;
}

Types meshgrid(const Node& node, ShapeEnv& env) {
  const auto tensors = list(node);
  const bool swap = has(node, "indexing") && node.string("indexing") == "xy" && tensors.size() > 1;
  std::vector<size_t> axis(tensors.size());
  for (size_t i = 0; i < axis.size(); ++i) axis[i] = i;
  if (swap) std::swap(axis[0], axis[1]);
  Sizes sizes(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_rank(node, "tensors", *tensors[i], {0, 1});
    sizes[axis[i]] = numel(tensors[i]->sizes);
  }
  Types types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Sizes strides(tensors.size(), Expr(0));
    strides[axis[i]] = tensors[i]->rank() ? strides_of(*tensors[i])[0] : Expr(1);
    types.push_back(view_type(tensors[i]->dtype, sizes, strides));
  }
  return types;
}

// ── Repetition ──

Types repeated(const Node& node, Sizes repeats, bool fill_front) {
  const auto& self = input(node, "self");
  if (fill_front && repeats.size() < self.rank())
    repeats.insert(repeats.begin(), self.rank() - repeats.size(), Expr(1));
  check(repeats.size() >= self.rank(), node,
        "expected at least " + std::to_string(self.rank()) + " repeats, got " + describe(repeats));
  Sizes sizes = repeats;
  const size_t added = repeats.size() - self.rank();
  for (size_t i = 0; i < self.rank(); ++i) sizes[added + i] = self.sizes[i] * repeats[added + i];
  return one(self.dtype, sizes);
}

Types repeat(const Node& node, ShapeEnv& env) { return repeated(node, node.sizes("repeats"), false); }
Types tile(const Node& node, ShapeEnv& env) { return repeated(node, node.sizes("dims"), true); }

Types repeat_interleave_int(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Expr repeats = node.size("repeats");
  check_not_negative(node, repeats, env, "repeats");
  if (!has(node, "dim")) return one(self.dtype, {numel(self.sizes) * repeats});
  Sizes sizes = self.sizes;
  if (sizes.empty()) sizes.push_back(1);
  const size_t d = dim(node, "dim", self.rank());
  sizes[d] = sizes[d] * repeats;
  return one(self.dtype, sizes);
}

Expr repeated_size(const Node& node, ShapeEnv& env) {
  return !has(node, "output_size") ? unbacked_size(node, env, Range::kInfinity) : node.size("output_size");
}

Types repeat_interleave_self_tensor(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& repeats = input(node, "repeats");
  check_rank(node, "repeats", repeats, {0, 1});
  if (!has(node, "dim")) return one(self.dtype, {repeated_size(node, env)});
  Sizes sizes = self.sizes;
  const size_t d = dim(node, "dim", self.rank());
  if (sizes.empty()) sizes.push_back(1);
  if (repeats.rank() == 1 && !is_one(repeats.sizes[0], env)) {
    common_size(node, sizes[d], repeats.sizes[0], env,
                "expected one repeat an element of dim " + std::to_string(d) + ", got " + describe(repeats) + " for " +
                    describe(self));
  }
  // One repeat for all elements of a dim still depends on its value.
  sizes[d] = repeated_size(node, env);
  return one(self.dtype, sizes);
}

// repeat_interleave.Tensor gives the indices themselves.
Types repeat_interleave_tensor(const Node& node, ShapeEnv& env) {
  const auto& repeats = input(node, "repeats");
  check_rank(node, "repeats", repeats, {1});
  return one(repeats.dtype, {repeated_size(node, env)});
}

// ── Order ──

Types rot90(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 2);
  const auto dims = dim_list(node, "dims", self.rank());
  check(dims.size() == 2 && dims[0] != dims[1], node, "expected two different dims");
  Sizes sizes = self.sizes;
  if (node.integer("k") % 2 != 0) std::swap(sizes[dims[0]], sizes[dims[1]]);
  return one(self.dtype, sizes);
}

Types flip(const Node& node, ShapeEnv& env) {
  dim_mask(node, "dims", input(node, "self").rank());
  return same_as_input(node, env);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::cat", cat},
    {"aten::concat", cat},
    {"aten::concatenate", cat},
    {"aten::stack", stack},
    {"aten::_stack", stack},
    {"aten::hstack", hstack},
    {"aten::vstack", vstack},
    {"aten::row_stack", vstack},
    {"aten::dstack", dstack},
    {"aten::column_stack", column_stack},
    {"aten::block_diag", block_diag},
    {"aten::cartesian_prod", cartesian_prod},
    {"aten::combinations", combinations},
    {"aten::broadcast_tensors", broadcast_tensors},
    {"aten::meshgrid", meshgrid},
    {"aten::repeat", repeat},
    {"aten::tile", tile},
    {"aten::repeat_interleave.self_int", repeat_interleave_int},
    {"aten::repeat_interleave.self_Tensor", repeat_interleave_self_tensor},
    {"aten::repeat_interleave.Tensor", repeat_interleave_tensor},
    {"aten::roll", same_as_input},
    {"aten::flip", flip},
    {"aten::fliplr", same_as_input},
    {"aten::flipud", same_as_input},
    {"aten::rot90", rot90},
};

}  // namespace

std::span<const ShapeRuleRow> concat_rules() { return kRows; }

}  // namespace transporters::shape_rules
