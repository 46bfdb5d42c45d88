// Softmax and its logarithm.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

template <OpName Op>
Value* normalized(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self", out_dtype(n));
  const bool is_scalar = rank(n.tensor("self")) == 0;
  if (is_scalar) x = l.unsqueeze(x, {0});
  Value* y = l.emit(Op.view(), {x}, {{"axis", l.dim(n, "dim")}});
  return is_scalar ? l.squeeze(y, {0}) : y;
}

template <OpName Op>
Outputs softmax(Lowering& l, const AtenNode& n) {
  return {normalized<Op>(l, n)};
}

// Rows of -inf give zeros.
Outputs safe_softmax(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  Value* largest = l.reduce("ReduceMax", x, {l.dim(n, "dim")}, true);
  Value* is_empty = l.emit("Equal", {largest, l.scalar(-INFINITY, dtype)});
  return {l.emit("Where", {is_empty, l.scalar(0, dtype), normalized<"Softmax">(l, n)})};
}

constexpr OpRow kRows[] = {
    {"aten::_log_softmax", softmax<"LogSoftmax">}, {"aten::_safe_softmax", safe_softmax},
    {"aten::_softmax", softmax<"Softmax">},        {"aten::log_softmax", softmax<"LogSoftmax">},
    {"aten::softmax", softmax<"Softmax">},         {"aten::special_log_softmax", softmax<"LogSoftmax">},
    {"aten::special_softmax", softmax<"Softmax">},
};

}  // namespace

std::span<const OpRow> softmax_ops() { return kRows; }

}  // namespace transporters::onnx
