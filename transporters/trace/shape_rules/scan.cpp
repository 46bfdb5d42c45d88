// Running sums, products and extrema, differences.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types cumulative_sum(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  dim(node, "dim", self.rank());
  return one(dtype_or(node, "dtype", sum_dtype(self.dtype)), self.sizes);
}

Types cumulative_extremum(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  dim(node, "dim", self.rank());
  return {tensor(self.dtype, self.sizes), tensor(ScalarType::Long, self.sizes)};
}

Types logcumsumexp(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  dim(node, "dim", self.rank());
  return one(self.dtype, self.sizes);
}

// n differences shorten a dim by n; prepend and append lengthen it before.
Types diff(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  Sizes sizes = self.sizes;
  for (const auto name : {"prepend", "append"}) {
    const auto* extra = input_or_null(node, name);
    if (!extra) continue;
    // A 0-dim extra counts as one element at every place.
    sizes[d] = sizes[d] + (extra->rank() == 0 ? Expr(1) : extra->sizes.at(d));
  }
  sizes[d] = env.simplify(max(sizes[d] - node.size("n"), 0));
  return one(self.dtype, sizes);
}

// One estimate of the slope along each dim.
Types gradient(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  size_t count = dim_list(node, "dim", self.rank()).size();
  if (count == 0) count = self.rank();
  return Types(count, tensor(to_floating(self.dtype), self.sizes));
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::cumsum", cumulative_sum},
    {"aten::cumprod", cumulative_sum},
    {"aten::cummax", cumulative_extremum},
    {"aten::cummin", cumulative_extremum},
    {"aten::logcumsumexp", logcumsumexp},
    {"aten::_logcumsumexp", logcumsumexp},
    {"aten::diff", diff},
    {"aten::gradient", gradient},
};

}  // namespace

std::span<const ShapeRuleRow> scan_rules() { return kRows; }

}  // namespace transporters::shape_rules
