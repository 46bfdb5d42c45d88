// Tensors made from sizes and numbers.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

void check_sizes(const Node& node, const Sizes& sizes, ShapeEnv& env) {
  for (const auto& size : sizes) check_not_negative(node, size, env, "a size");
}

// empty, zeros, ones, rand: `size` in the default dtype.
Types sized(const Node& node, ShapeEnv& env) {
  const Sizes sizes = node.sizes("size");
  check_sizes(node, sizes, env);
  return one(dtype_or(node, "dtype", kDefaultFloat), sizes);
}

Types sized_strided(const Node& node, ShapeEnv& env) {
  const bool is_new = node.schema().find("self").has_value();
  const ScalarType otherwise = is_new ? input(node, "self").dtype : kDefaultFloat;
  return {view_type(dtype_or(node, "dtype", otherwise), node.sizes("size"), node.sizes("stride"))};
}

Types sized_like(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(dtype_or(node, "dtype", self.dtype), self.sizes);
}

// new_zeros, new_full: `size` in self's dtype.
Types sized_new(const Node& node, ShapeEnv& env) {
  const Sizes sizes = node.sizes("size");
  check_sizes(node, sizes, env);
  return one(dtype_or(node, "dtype", input(node, "self").dtype), sizes);
}

Types full(const Node& node, ShapeEnv& env) {
  const Sizes sizes = node.sizes("size");
  check_sizes(node, sizes, env);
  const auto fill = number_dtype(node.get("fill_value"));
  check(fill.has_value() || has(node, "dtype"), node, "expected a number for fill_value");
  const ScalarType natural = fill == ScalarType::Double ? kDefaultFloat : fill.value_or(kDefaultFloat);
  return one(dtype_or(node, "dtype", natural), sizes);
}

Types scalar_tensor(const Node& node, ShapeEnv& env) { return one(dtype_or(node, "dtype", kDefaultFloat), {}); }

// ceil((end - start) / step); integers keep integer arithmetic.
Types arange(const Node& node, ShapeEnv& env) {
  const Expr end = number(node, "end");
  const Expr start = has(node, "start") ? number(node, "start") : Expr(0);
  const Expr step = has(node, "step") ? number(node, "step") : Expr(1);
  const auto is_real = [](const Expr& expr) { return expr.type() == symbolic::Type::Real; };
  const bool real = is_real(start) || is_real(end) || is_real(step);
  const ScalarType dtype = dtype_or(node, "dtype", real ? kDefaultFloat : ScalarType::Long);
  check(!step.is(0) && step.as_real() != 0.0, node, "expected a step other than 0");
  Expr length;
  if (!real) {
    length = ceil_div(end - start, step);
  } else if (c10::isIntegralType(dtype, false)) {
    length = ceil_div(trunc(to_real(end)) - trunc(to_real(start)), trunc(to_real(step)));
  } else {
    length = ceil(true_div(to_real(end) - to_real(start), to_real(step)));
  }
  length = env.simplify(length);
  check_not_negative(node, length, env, "a range from " + start.str() + " to " + end.str() + " by " + step.str());
  return one(dtype, {length});
}

// torch.range counts its end in.
Types range(const Node& node, ShapeEnv& env) {
  const Expr start = to_real(number(node, "start")), end = to_real(number(node, "end"));
  const Expr step = has(node, "step") ? to_real(number(node, "step")) : Expr::real(1);
  return one(dtype_or(node, "dtype", kDefaultFloat), {env.simplify(floor(true_div(end - start, step)) + 1)});
}

Types linspace(const Node& node, ShapeEnv& env) {
  const Expr steps = node.size("steps");
  check_not_negative(node, steps, env, "a number of steps");
  return one(dtype_or(node, "dtype", kDefaultFloat), {steps});
}

Types eye(const Node& node, ShapeEnv& env) {
  const Expr rows = node.size("n");
  const Expr columns = has(node, "m") ? node.size("m") : rows;
  check_sizes(node, {rows, columns}, env);
  return one(dtype_or(node, "dtype", kDefaultFloat), {rows, columns});
}

int64_t count_below_diagonal(int64_t rows, int64_t columns, int64_t offset) {
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) count += std::clamp<int64_t>(i + offset + 1, 0, columns);
  return count;
}

Types tril_indices(const Node& node, ShapeEnv& env) {
  const int64_t count = count_below_diagonal(node.integer("row"), node.integer("col"), node.integer("offset"));
  return one(dtype_or(node, "dtype", ScalarType::Long), {2, count});
}

Types triu_indices(const Node& node, ShapeEnv& env) {
  const int64_t rows = node.integer("row"), columns = node.integer("col");
  const int64_t count = rows * columns - count_below_diagonal(rows, columns, node.integer("offset") - 1);
  return one(dtype_or(node, "dtype", ScalarType::Long), {2, count});
}

// _dim_arange(like, dim): a range over a tensor's dim.
Types dim_arange(const Node& node, ShapeEnv& env) {
  const auto& like = input(node, "like");
  check_rank_at_least(node, "like", like, 1);
  return one(ScalarType::Long, {like.sizes[dim(node, "dim", like.rank())]});
}

Types fft_frequencies(const Node& node, ShapeEnv& env) {
  const Expr n = node.size("n");
  const bool half = node.schema().base_name() == "aten::fft_rfftfreq";
  return one(dtype_or(node, "dtype", kDefaultFloat), {half ? floor_div(n, 2) + 1 : n});
}

// ── Matrices from vectors ──

Types diag_embed(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const int64_t offset = node.integer("offset");
  const size_t rank = self.rank() + 1;
  const size_t d1 = dim(node, "dim1", rank), d2 = dim(node, "dim2", rank);
  check(d1 != d2, node, "expected two different dims, got " + std::to_string(d1) + " twice");
  const Expr length = self.sizes.back() + (offset < 0 ? -offset : offset);
  Sizes sizes(self.sizes.begin(), self.sizes.end() - 1);
  for (const size_t d : {std::min(d1, d2), std::max(d1, d2)}) {
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), length);
  }
  return one(self.dtype, sizes);
}

// diag: a vector becomes a matrix, a matrix gives its diagonal.
Types diag(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {1, 2});
  const int64_t offset = node.integer("diagonal");
  if (self.rank() == 1) {
    const Expr length = self.sizes[0] + (offset < 0 ? -offset : offset);
    return one(self.dtype, {length, length});
  }
  const Expr rows = offset < 0 ? self.sizes[0] + offset : self.sizes[0];
  const Expr columns = offset > 0 ? self.sizes[1] - offset : self.sizes[1];
  return one(self.dtype, {env.simplify(max(min(rows, columns), 0))});
}

Types diagflat(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const int64_t offset = node.integer("offset");
  const Expr length = numel(self.sizes) + (offset < 0 ? -offset : offset);
  return one(self.dtype, {length, length});
}

Types triangle(const Node& node, ShapeEnv& env) {
  check_rank_at_least(node, "self", input(node, "self"), 2);
  return same_as_input(node, env);
}

Types vander(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "x");
  check_rank_at_least(node, "x", x, 1);
  Sizes sizes = x.sizes;
  sizes.push_back(!has(node, "N") ? x.sizes.back() : node.size("N"));
  return one(sum_dtype(x.dtype), sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::empty.memory_format", sized},
    {"aten::empty_permuted", sized},
    {"aten::empty_strided", sized_strided},
    {"aten::new_empty_strided", sized_strided},
    {"aten::zeros", sized},
    {"aten::ones", sized},
    {"aten::full", full},
    {"aten::empty_like", sized_like},
    {"aten::zeros_like", sized_like},
    {"aten::ones_like", sized_like},
    {"aten::full_like", sized_like},
    {"aten::new_empty", sized_new},
    {"aten::new_zeros", sized_new},
    {"aten::new_ones", sized_new},
    {"aten::new_full", sized_new},
    {"aten::zero", same_as_input},
    {"aten::fill", same_as_input},
    {"aten::scalar_tensor", scalar_tensor},
    {"aten::arange", arange},
    {"aten::range", range},
    {"aten::_dim_arange", dim_arange},
    {"aten::linspace", linspace},
    {"aten::logspace", linspace},
    {"aten::eye", eye},
    {"aten::tril_indices", tril_indices},
    {"aten::triu_indices", triu_indices},
    {"aten::fft_fftfreq", fft_frequencies},
    {"aten::fft_rfftfreq", fft_frequencies},
    {"aten::diag", diag},
    {"aten::diag_embed", diag_embed},
    {"aten::diagflat", diagflat},
    {"aten::tril", triangle},
    {"aten::triu", triangle},
    {"aten::vander", vander},
    {"aten::linalg_vander", vander},
};

}  // namespace

std::span<const ShapeRuleRow> creation_rules() { return kRows; }

}  // namespace transporters::shape_rules
