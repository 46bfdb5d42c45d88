// Convolutions.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Geometry {
  std::vector<int64_t> stride, padding_low, padding_high, dilation, output_padding;
  bool is_transposed = false;
};

Value* convolve(Lowering& l, const AtenNode& n, const Geometry& geometry) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* input = n.tensor("input");
  const size_t spatial = n.tensor("weight")->rank() - 2;
  const bool is_unbatched = input->rank() == spatial + 1;
  Value* x = l.input(n, "input", dtype);
  if (is_unbatched) x = l.unsqueeze(x, {0});
  std::vector<int64_t> pads = geometry.padding_low;
  pads.insert(pads.end(), geometry.padding_high.begin(), geometry.padding_high.end());
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < spatial; ++i) {
    const auto size = n.tensor("weight")->sizes()[2 + i].as_integer();
    if (!size) throw l.error(n, "has a kernel of symbolic size, which ONNX can't express");
    kernel.push_back(*size);
  }
  Attributes attributes = {{"dilations", geometry.dilation},
                           {"group", n.integer("groups")},
                           {"kernel_shape", kernel},
                           {"pads", pads},
                           {"strides", geometry.stride}};
  if (geometry.is_transposed) attributes.push_back({"output_padding", geometry.output_padding});
  std::vector<Value*> inputs = {x, l.input(n, "weight", dtype)};
  if (Value* bias = l.input_or_null(n, "bias", dtype)) inputs.push_back(bias);
  Value* y = l.emit(geometry.is_transposed ? "ConvTranspose" : "Conv", inputs, attributes);
  return is_unbatched ? l.squeeze(y, {0}) : y;
}

size_t spatial_dims(const AtenNode& n) { return n.tensor("weight")->rank() - 2; }

Outputs convolution(Lowering& l, const AtenNode& n) {
  const size_t count = spatial_dims(n);
  Geometry geometry;
  geometry.stride = per_dimension(n, "stride", count);
  geometry.padding_low = geometry.padding_high = per_dimension(n, "padding", count);
  geometry.dilation = per_dimension(n, "dilation", count);
  geometry.is_transposed = n.schema().find("transposed") && n.boolean("transposed");
  if (geometry.is_transposed) geometry.output_padding = per_dimension(n, "output_padding", count);
  return {convolve(l, n, geometry)};
}

Outputs conv_transpose(Lowering& l, const AtenNode& n) {
  const size_t count = spatial_dims(n);
  Geometry geometry;
  geometry.stride = per_dimension(n, "stride", count);
  geometry.padding_low = geometry.padding_high = per_dimension(n, "padding", count);
  geometry.dilation = per_dimension(n, "dilation", count);
  geometry.output_padding = per_dimension(n, "output_padding", count);
  geometry.is_transposed = true;
  return {convolve(l, n, geometry)};
}

// "valid" pads nothing; "same" keeps the sizes, an odd rest going to the high side.
Outputs conv_named_padding(Lowering& l, const AtenNode& n) {
  const size_t count = spatial_dims(n);
  Geometry geometry;
  geometry.stride = per_dimension(n, "stride", count);
  geometry.dilation = per_dimension(n, "dilation", count);
  for (size_t i = 0; i < count; ++i) {
    const auto kernel = n.tensor("weight")->sizes()[2 + i].as_integer();
    const int64_t total = n.string("padding") == "same" ? geometry.dilation[i] * (kernel.value_or(1) - 1) : 0;
    geometry.padding_low.push_back(total / 2);
    geometry.padding_high.push_back(total - total / 2);
  }
  return {convolve(l, n, geometry)};
}

constexpr OpRow kRows[] = {
    {"aten::_convolution", convolution},          {"aten::conv1d", convolution},
    {"aten::conv1d.padding", conv_named_padding}, {"aten::conv2d", convolution},
    {"aten::conv2d.padding", conv_named_padding}, {"aten::conv3d", convolution},
    {"aten::conv3d.padding", conv_named_padding}, {"aten::conv_transpose1d", conv_transpose},
    {"aten::conv_transpose2d", conv_transpose},   {"aten::conv_transpose3d", conv_transpose},
    {"aten::convolution", convolution},
};

}  // namespace

std::span<const OpRow> convolution_ops() { return kRows; }

}  // namespace transporters::onnx
