// Padding. Amounts are (left, right) pairs from the last dim backwards; negative ones crop.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types padded(const Node& node, const TensorType& self, const Sizes& amounts, ShapeEnv& env) {
  check(amounts.size() % 2 == 0 && amounts.size() / 2 <= self.rank(), node,
        "expected a pair of amounts for at most " + std::to_string(self.rank()) + " dims, got " + describe(amounts));
  Sizes sizes = self.sizes;
  for (size_t i = 0; i < amounts.size() / 2; ++i) {
    Expr& size = sizes[sizes.size() - 1 - i];
    size = env.simplify(size + amounts[2 * i] + amounts[2 * i + 1]);
    check_not_negative(node, size, env, "padding that leaves elements of " + describe(self) + ": a size");
  }
  return one(self.dtype, sizes);
}

Types constant_pad(const Node& node, ShapeEnv& env) {
  return padded(node, input(node, "self"), node.sizes("pad"), env);
}

template <size_t count>
Types pad_nd(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check(self.rank() == count + 1 || self.rank() == count + 2, node,
        "expected input of rank " + std::to_string(count + 1) + " or " + std::to_string(count + 2) + ", got " +
            describe(self));
  return padded(node, self, spatial(node, "padding", 2 * count), env);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::constant_pad_nd", constant_pad}, {"aten::pad", constant_pad},
    {"aten::_pad_enum", constant_pad},       {"aten::_pad_circular", constant_pad},
    {"aten::reflection_pad1d", pad_nd<1>},   {"aten::reflection_pad2d", pad_nd<2>},
    {"aten::reflection_pad3d", pad_nd<3>},   {"aten::replication_pad1d", pad_nd<1>},
    {"aten::replication_pad2d", pad_nd<2>},  {"aten::replication_pad3d", pad_nd<3>},
};

}  // namespace

std::span<const ShapeRuleRow> padding_rules() { return kRows; }

}  // namespace transporters::shape_rules
