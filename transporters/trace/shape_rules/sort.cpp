// Sorting and the greatest elements.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// -> values, indices
Types sort(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  dim(node, "dim", self.rank());
  return {tensor(self.dtype, self.sizes), tensor(ScalarType::Long, self.sizes)};
}

Types argsort(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  dim(node, "dim", self.rank());
  return one(ScalarType::Long, self.sizes);
}

Types topk(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const size_t d = dim(node, "dim", self.rank());
  const Expr k = node.size("k");
  Sizes sizes = self.sizes;
  if (!sizes.empty()) {
    const bool too_many = env.decide(less(sizes[d], k)).value_or(false);
    check(!too_many, node, "expected k within dim " + std::to_string(d) + " of " + describe(self) + ", got " + k.str());
    sizes[d] = k;
  }
  return {tensor(self.dtype, sizes), tensor(ScalarType::Long, sizes)};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::sort", sort},
    {"aten::argsort", argsort},
    {"aten::msort", same_as_input},
    {"aten::topk", topk},
};

}  // namespace

std::span<const ShapeRuleRow> sort_rules() { return kRows; }

}  // namespace transporters::shape_rules
