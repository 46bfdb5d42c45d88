// Convolutions and their transposes.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

struct Windows {
  Sizes stride, padding, dilation;
  Sizes output_padding;  // transposed only
};

// One size of the result: how many windows of the dilated kernel fit.
Expr window_count(const Expr& size, const Expr& kernel, const Expr& stride, const Expr& padding, const Expr& dilation) {
  return floor_div(size + 2 * padding - dilation * (kernel - 1) - 1, stride) + 1;
}

Expr transposed_size(const Expr& size, const Expr& kernel, const Windows& windows, size_t i) {
  return (size - 1) * windows.stride[i] - 2 * windows.padding[i] + windows.dilation[i] * (kernel - 1) +
         windows.output_padding[i] + 1;
}

// input [batch, in, ...] or [in, ...]; weight [out, in / groups, ...], transposed [in, out / groups, ...].
Sizes convolved_sizes(const Node& node, const Windows& windows, bool transposed, const Expr& groups,
                      size_t spatial_rank, ShapeEnv& env) {
  const auto& x = input(node, 0);
  const auto& weight = input(node, "weight");
  const std::string got = ", got " + describe(x) + " and " + describe(weight);
  check(weight.rank() == spatial_rank + 2, node, "expected weight of rank " + std::to_string(spatial_rank + 2) + got);
  check(x.rank() == spatial_rank + 1 || x.rank() == spatial_rank + 2, node,
        "expected input of rank " + std::to_string(spatial_rank + 1) + " or " + std::to_string(spatial_rank + 2) + got);
  check_same_dtype(node, x, weight, node.schema().arguments[0].name, "weight");
  const bool batched = x.rank() == spatial_rank + 2;
  const Expr in = x.sizes[batched ? 1 : 0];
  common_size(node, in, transposed ? weight.sizes[0] : weight.sizes[1] * groups, env,
              "expected the input's channels to be those of the weight times groups " + groups.str() + got);
  const Expr out = transposed ? weight.sizes[1] * groups : weight.sizes[0];
  if (const auto* bias = input_or_null(node, "bias")) {
    check(bias->rank() == 1 && sizes_match(bias->sizes[0], out, env), node,
          "expected one bias an output channel, got " + describe(*bias) + " for " + describe(weight));
  }
  Sizes sizes;
  if (batched) sizes.push_back(x.sizes[0]);
  sizes.push_back(out);
  for (size_t i = 0; i < spatial_rank; ++i) {
    const Expr& size = x.sizes[i + (batched ? 2 : 1)];
    const Expr& kernel = weight.sizes[i + 2];
    const Expr result = transposed
                            ? transposed_size(size, kernel, windows, i)
                            : window_count(size, kernel, windows.stride[i], windows.padding[i], windows.dilation[i]);
    check_not_negative(node, env.simplify(result), env, "a kernel that fits the padded input" + got + ": a size");
    sizes.push_back(result);
  }
  return sizes;
}

Types convolution(const Node& node, ShapeEnv& env) {
  const size_t count = input(node, "weight").rank() - 2;
  const bool transposed = flag(node, "transposed");
  const Windows windows = {spatial(node, "stride", count, {1}), spatial(node, "padding", count, {0}),
                           spatial(node, "dilation", count, {1}), spatial(node, "output_padding", count, {0})};
  return one(input(node, 0).dtype, convolved_sizes(node, windows, transposed, node.size("groups"), count, env));
}

template <size_t count, bool transposed>
Types convolution_nd(const Node& node, ShapeEnv& env) {
  Windows windows = {spatial(node, "stride", count, {1}),
                     spatial(node, "padding", count, {0}),
                     spatial(node, "dilation", count, {1}),
                     {}};
  if (transposed) windows.output_padding = spatial(node, "output_padding", count, {0});
  return one(input(node, 0).dtype, convolved_sizes(node, windows, transposed, node.size("groups"), count, env));
}

// padding="same" keeps the sizes (stride 1), "valid" pads nothing.
Types convolution_padded_by_name(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, 0);
  const size_t count = input(node, "weight").rank() - 2;
  const std::string padding = node.string("padding");
  check(padding == "same" || padding == "valid", node, "expected padding 'same' or 'valid', got '" + padding + "'");
  const Windows windows = {
      spatial(node, "stride", count, {1}), Sizes(count, Expr(0)), spatial(node, "dilation", count, {1}), {}};
  if (padding == "valid") return one(x.dtype, convolved_sizes(node, windows, false, node.size("groups"), count, env));
  for (const auto& stride : windows.stride)
    check(stride.is(1), node, "padding 'same' needs stride 1, got " + describe(windows.stride));
  // Half a kernel of padding on both sides gives the same channels and keeps every size.
  Windows same = windows;
  const auto& weight = input(node, "weight");
  for (size_t i = 0; i < count; ++i) same.padding[i] = windows.dilation[i] * (weight.sizes[i + 2] - 1);
  Sizes sizes = convolved_sizes(node, same, false, node.size("groups"), count, env);
  std::copy(x.sizes.end() - static_cast<std::ptrdiff_t>(count), x.sizes.end(),
            sizes.end() - static_cast<std::ptrdiff_t>(count));
  return one(x.dtype, sizes);
}

// conv_tbc: time, batch, channels; weight [kernel, in, out]
Types conv_tbc(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& weight = input(node, "weight");
  check_rank(node, "self", self, {3});
  check_rank(node, "weight", weight, {3});
  common_size(node, self.sizes[2], weight.sizes[1], env,
              "expected the channels of the weight, got " + describe(self) + " and " + describe(weight));
  const Expr time = window_count(self.sizes[0], weight.sizes[0], 1, node.size("pad"), 1);
  return one(self.dtype, {time, self.sizes[1], weight.sizes[2]});
}

// Backend ops that a CPU trace can show: convolution without groups.
template <size_t count, bool transposed>
Types slow_convolution(const Node& node, ShapeEnv& env) {
  const Windows windows = {spatial(node, "stride", count, {1}), spatial(node, "padding", count, {0}),
                           spatial(node, "dilation", count, {1}), spatial(node, "output_padding", count, {0})};
  return one(input(node, 0).dtype, convolved_sizes(node, windows, transposed, 1, count, env));
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::convolution", convolution},
    {"aten::_convolution", convolution},
    {"aten::convolution_overrideable", convolution},
    {"aten::conv1d", convolution_nd<1, false>},
    {"aten::conv2d", convolution_nd<2, false>},
    {"aten::conv3d", convolution_nd<3, false>},
    {"aten::conv1d.padding", convolution_padded_by_name},
    {"aten::conv2d.padding", convolution_padded_by_name},
    {"aten::conv3d.padding", convolution_padded_by_name},
    {"aten::_convolution_mode", convolution_padded_by_name},
    {"aten::conv_transpose1d", convolution_nd<1, true>},
    {"aten::conv_transpose2d", convolution_nd<2, true>},
    {"aten::conv_transpose3d", convolution_nd<3, true>},
    {"aten::conv_tbc", conv_tbc},
    {"aten::thnn_conv2d", slow_convolution<2, false>},
    {"aten::_slow_conv2d_forward", slow_convolution<2, false>},
    {"aten::slow_conv3d", slow_convolution<3, false>},
    {"aten::slow_conv3d_forward", slow_convolution<3, false>},
    {"aten::slow_conv_dilated2d", slow_convolution<2, false>},
    {"aten::slow_conv_dilated3d", slow_convolution<3, false>},
    {"aten::slow_conv_transpose2d", slow_convolution<2, true>},
    {"aten::slow_conv_transpose3d", slow_convolution<3, true>},
};

}  // namespace

std::span<const ShapeRuleRow> convolution_rules() { return kRows; }

}  // namespace transporters::shape_rules
