// Window functions over a number of samples.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types window(const Node& node, ShapeEnv& env) {
  const Expr length = node.size("window_length");
  check_not_negative(node, length, env, "a window length");
  return one(dtype_or(node, "dtype", kDefaultFloat), {length});
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::bartlett_window", window}, {"aten::blackman_window", window}, {"aten::hamming_window", window},
    {"aten::hann_window", window},     {"aten::kaiser_window", window},
};

}  // namespace

std::span<const ShapeRuleRow> window_rules() { return kRows; }

}  // namespace transporters::shape_rules
