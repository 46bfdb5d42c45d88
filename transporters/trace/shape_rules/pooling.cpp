// Pooling over windows, adaptive, fractional, and its inverse.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// Windows that start inside the input or its left padding; with ceil_mode the last one can be partial.
Expr window_count(const Expr& size, const Expr& kernel, const Expr& stride, const Expr& padding, const Expr& dilation,
                  bool ceil_mode, ShapeEnv& env) {
  const Expr span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (!ceil_mode) return floor_div(span, stride) + 1;
  // A window that would start in the right padding is dropped.
  return env.simplify(min(ceil_div(span, stride) + 1, floor_div(size + padding - 1, stride) + 1));
}

// input [batch, channels, ...] or [channels, ...]: `count` spatial dims at the end.
void check_pooled(const Node& node, const TensorType& x, size_t count) {
  check(x.rank() == count + 1 || x.rank() == count + 2, node,
        "expected input of rank " + std::to_string(count + 1) + " or " + std::to_string(count + 2) + ", got " +
            describe(x));
}

template <size_t count>
Sizes pooled_sizes(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_pooled(node, self, count);
  const Sizes kernel = spatial(node, "kernel_size", count);
  const Sizes stride = spatial(node, "stride", count, kernel);
  const Sizes padding = spatial(node, "padding", count, {0});
  const Sizes dilation = node.schema().find("dilation") ? spatial(node, "dilation", count, {1}) : Sizes(count, Expr(1));
  const bool ceil_mode = flag(node, "ceil_mode");
  Sizes sizes = self.sizes;
  for (size_t i = 0; i < count; ++i) {
    Expr& size = sizes[sizes.size() - count + i];
    size = env.simplify(window_count(size, kernel[i], stride[i], padding[i], dilation[i], ceil_mode, env));
    check_not_negative(node, size - 1, env, "a kernel that fits the padded input, got " + describe(self) + ": a size");
  }
  return sizes;
}

template <size_t count>
Types pool(const Node& node, ShapeEnv& env) {
  return one(input(node, "self").dtype, pooled_sizes<count>(node, env));
}

template <size_t count>
Types pool_with_indices(const Node& node, ShapeEnv& env) {
  const Sizes sizes = pooled_sizes<count>(node, env);
  return {tensor(input(node, "self").dtype, sizes), tensor(ScalarType::Long, sizes)};
}

template <size_t count>
Sizes adaptive_sizes(const Node& node) {
  const auto& self = input(node, "self");
  check_pooled(node, self, count);
  const Sizes wanted = spatial(node, "output_size", count);
  Sizes sizes = self.sizes;
  for (size_t i = 0; i < count; ++i) sizes[sizes.size() - count + i] = wanted[i];
  return sizes;
}

template <size_t count>
Types adaptive_pool(const Node& node, ShapeEnv& env) {
  return one(input(node, "self").dtype, adaptive_sizes<count>(node));
}

// adaptive_max_pool, fractional_max_pool, also with indices: output_size is given.
template <size_t count>
Types sized_pool_with_indices(const Node& node, ShapeEnv& env) {
  const Sizes sizes = adaptive_sizes<count>(node);
  return {tensor(input(node, "self").dtype, sizes), tensor(ScalarType::Long, sizes)};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::max_pool1d", pool<1>},
    {"aten::max_pool2d", pool<2>},
    {"aten::max_pool3d", pool<3>},
    {"aten::max_pool1d_with_indices", pool_with_indices<1>},
    {"aten::max_pool2d_with_indices", pool_with_indices<2>},
    {"aten::max_pool3d_with_indices", pool_with_indices<3>},
    {"aten::avg_pool1d", pool<1>},
    {"aten::avg_pool2d", pool<2>},
    {"aten::avg_pool3d", pool<3>},
    {"aten::adaptive_avg_pool1d", adaptive_pool<1>},
    {"aten::adaptive_avg_pool2d", adaptive_pool<2>},
    {"aten::adaptive_avg_pool3d", adaptive_pool<3>},
    {"aten::_adaptive_avg_pool2d", adaptive_pool<2>},
    {"aten::_adaptive_avg_pool3d", adaptive_pool<3>},
    {"aten::adaptive_max_pool1d", sized_pool_with_indices<1>},
    {"aten::adaptive_max_pool2d", sized_pool_with_indices<2>},
    {"aten::adaptive_max_pool3d", sized_pool_with_indices<3>},
    {"aten::fractional_max_pool2d", sized_pool_with_indices<2>},
    {"aten::fractional_max_pool3d", sized_pool_with_indices<3>},
    {"aten::max_unpool2d", adaptive_pool<2>},
    {"aten::max_unpool3d", adaptive_pool<3>},
};

}  // namespace

std::span<const ShapeRuleRow> pooling_rules() { return kRows; }

}  // namespace transporters::shape_rules
