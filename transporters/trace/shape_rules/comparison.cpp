// Comparisons and logical ops: booleans, broadcast.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types compare(const Node& node, ShapeEnv& env) {
  return one(ScalarType::Bool, broadcast(operand_sizes(argument(node, 0)), operand_sizes(argument(node, 1)), env));
}

Types test(const Node& node, ShapeEnv& env) { return one(ScalarType::Bool, input(node, 0).sizes); }

// isin(elements, test_elements): the sizes of the elements.
Types isin(const Node& node, ShapeEnv& env) { return one(ScalarType::Bool, operand_sizes(argument(node, 0))); }

constexpr ShapeRuleRow kRows[] = {
    {"aten::eq", compare},
    {"aten::ne", compare},
    {"aten::not_equal", compare},
    {"aten::lt", compare},
    {"aten::less", compare},
    {"aten::le", compare},
    {"aten::less_equal", compare},
    {"aten::gt", compare},
    {"aten::greater", compare},
    {"aten::ge", compare},
    {"aten::greater_equal", compare},
    {"aten::logical_and", compare},
    {"aten::logical_or", compare},
    {"aten::logical_xor", compare},
    {"aten::isclose", compare},
    {"aten::logical_not", test},
    {"aten::isnan", test},
    {"aten::isinf", test},
    {"aten::isfinite", test},
    {"aten::isposinf", test},
    {"aten::isneginf", test},
    {"aten::isreal", test},
    {"aten::signbit", test},
    {"aten::isin", isin},
};

}  // namespace

std::span<const ShapeRuleRow> comparison_rules() { return kRows; }

}  // namespace transporters::shape_rules
