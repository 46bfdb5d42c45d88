// Padding. torch lists pads from the last dimension, low and high side together; ONNX from the first, low sides first.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// torch's list in ONNX's order.
std::vector<Expr> onnx_order(const std::vector<Expr>& pads, int64_t rank) {
  std::vector<Expr> result(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const auto dim = static_cast<size_t>(rank) - 1 - i;
    result[dim] = pads[2 * i];
    result[static_cast<size_t>(rank) + dim] = pads[2 * i + 1];
  }
  return result;
}

Value* pad(Lowering& l, const AtenNode& n, const std::string& mode, std::string_view argument) {
  const auto pads = n.sizes(argument);
  Value* x = l.input(n, "self");
  if (std::all_of(pads.begin(), pads.end(), [](const Expr& pad) { return pad.is(0); })) return x;
  const int64_t dims = rank(n.tensor("self"));
  if (mode == "wrap" && l.opset() < 19) {
    // The far end goes in front and the near end behind.
    for (size_t i = 0; i < pads.size() / 2; ++i) {
      const int64_t dim = dims - 1 - static_cast<int64_t>(i);
      const Expr size = size_at(n.tensor("self"), dim);
      std::vector<Value*> parts;
      if (!pads[2 * i].is(0)) parts.push_back(l.slice(x, dim, size - pads[2 * i], size));
      parts.push_back(x);
      if (!pads[2 * i + 1].is(0)) parts.push_back(l.slice(x, dim, 0, pads[2 * i + 1]));
      x = l.concat(parts, dim);
    }
    return x;
  }
  std::vector<Value*> inputs = {x, l.shape(onnx_order(pads, dims))};
  if (mode == "constant") {
    const std::string_view value = n.schema().find("value") ? "value" : "fill";
    const bool has_value = n.schema().find(value) && !n.is_none(value);
    inputs.push_back(has_value ? l.input(n, value, out_dtype(n)) : l.integer(0, out_dtype(n)));
  }
  return l.emit("Pad", inputs, {{"mode", mode}});
}

Outputs constant_pad(Lowering& l, const AtenNode& n) { return {pad(l, n, "constant", "pad")}; }
Outputs reflection_pad(Lowering& l, const AtenNode& n) { return {pad(l, n, "reflect", "padding")}; }
Outputs replication_pad(Lowering& l, const AtenNode& n) { return {pad(l, n, "edge", "padding")}; }
Outputs circular_pad(Lowering& l, const AtenNode& n) { return {pad(l, n, "wrap", "pad")}; }

Outputs pad_op(Lowering& l, const AtenNode& n) {
  const std::string mode = n.string("mode");
  const std::string onnx_mode = mode == "reflect"     ? "reflect"
                                : mode == "replicate" ? "edge"
                                : mode == "circular"  ? "wrap"
                                                      : mode;
  return {pad(l, n, onnx_mode, "pad")};
}

constexpr OpRow kRows[] = {
    {"aten::_pad_circular", circular_pad},
    {"aten::constant_pad_nd", constant_pad},
    {"aten::pad", pad_op},
    {"aten::reflection_pad1d", reflection_pad},
    {"aten::reflection_pad2d", reflection_pad},
    {"aten::reflection_pad3d", reflection_pad},
    {"aten::replication_pad1d", replication_pad},
    {"aten::replication_pad2d", replication_pad},
    {"aten::replication_pad3d", replication_pad},
};

}  // namespace

std::span<const OpRow> padding_ops() { return kRows; }

}  // namespace transporters::onnx
