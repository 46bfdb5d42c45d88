// Activation functions.
#include <cmath>
#include <numbers>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Value* self(Lowering& l, const AtenNode& n) { return l.input(n, "self", out_dtype(n)); }

Attribute real(std::string_view name, double value) { return {std::string(name), static_cast<float>(value)}; }

template <OpName Op>
Outputs unary(Lowering& l, const AtenNode& n) {
  return {l.emit(Op.view(), {self(l, n)})};
}

Value* clip(Lowering& l, const AtenNode& n, Value* x, double low, double high) {
  return l.emit("Clip", {x, l.scalar(low, out_dtype(n)), l.scalar(high, out_dtype(n))});
}

// ONNX has Gelu since opset 20.
Outputs gelu(Lowering& l, const AtenNode& n) {
  Value* x = self(l, n);
  const ScalarType dtype = out_dtype(n);
  const std::string approximate = n.string("approximate");
  if (l.opset() >= 20) return {l.emit("Gelu", {x}, {{"approximate", approximate}})};
  Value* one = l.scalar(1, dtype);
  Value* half = l.scalar(0.5, dtype);
  if (approximate == "none") {
    Value* erf = l.emit("Erf", {l.emit("Div", {x, l.scalar(std::numbers::sqrt2, dtype)})});
    return {l.emit("Mul", {l.emit("Mul", {x, l.emit("Add", {erf, one})}), half})};
  }
  Value* cube = l.emit("Mul", {l.emit("Mul", {x, x}), x});
  Value* inner = l.emit("Add", {x, l.emit("Mul", {cube, l.scalar(0.044715, dtype)})});
  Value* tanh = l.emit("Tanh", {l.emit("Mul", {inner, l.scalar(std::sqrt(2 / std::numbers::pi), dtype)})});
  return {l.emit("Mul", {l.emit("Mul", {x, half}), l.emit("Add", {tanh, one})})};
}

Outputs silu(Lowering& l, const AtenNode& n) {
  Value* x = self(l, n);
  return {l.emit("Mul", {x, l.emit("Sigmoid", {x})})};
}

Outputs relu6(Lowering& l, const AtenNode& n) { return {clip(l, n, self(l, n), 0, 6)}; }

Outputs hardtanh(Lowering& l, const AtenNode& n) {
  return {clip(l, n, self(l, n), n.real("min_val"), n.real("max_val"))};
}

Outputs hardsigmoid(Lowering& l, const AtenNode& n) {
  return {l.emit("HardSigmoid", {self(l, n)}, {real("alpha", 1.0 / 6), real("beta", 0.5)})};
}

Outputs leaky_relu(Lowering& l, const AtenNode& n) {
  return {l.emit("LeakyRelu", {self(l, n)}, {real("alpha", n.real("negative_slope"))})};
}

// In eval mode the slope is the mean of its range.
Outputs rrelu(Lowering& l, const AtenNode& n) {
  if (n.boolean("training")) throw l.error(n, "draws slopes at random in training mode; call eval() before exporting");
  return {l.emit("LeakyRelu", {self(l, n)}, {real("alpha", (n.real("lower") + n.real("upper")) / 2)})};
}

// The second output, the slopes drawn, is the noise that was given.
Outputs rrelu_with_noise(Lowering& l, const AtenNode& n) {
  Outputs outputs = rrelu(l, n);
  outputs.push_back(n.outputs()[1]->uses().empty() ? nullptr : l.input(n, "noise"));
  return outputs;
}

// scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
Outputs elu(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = self(l, n);
  const double scale = n.real("scale"), input_scale = n.real("input_scale");
  Value* y;
  if (input_scale == 1) {
    y = l.emit("Elu", {x}, {real("alpha", n.real("alpha"))});
  } else {
    Value* scaled = l.emit("Mul", {x, l.scalar(input_scale, dtype)});
    Value* negative = l.emit("Elu", {scaled}, {real("alpha", n.real("alpha"))});
    y = l.emit("Where", {l.emit("Greater", {x, l.scalar(0, dtype)}), x, negative});
  }
  return {scale == 1 ? y : l.emit("Mul", {y, l.scalar(scale, dtype)})};
}

Outputs celu(Lowering& l, const AtenNode& n) {
  return {l.emit("Celu", {self(l, n)}, {real("alpha", n.real("alpha"))})};
}

// One slope, or one for each channel (dimension 1).
Outputs prelu(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.tensor("self"));
  Value* weight = l.input(n, "weight", out_dtype(n));
  if (dims > 2 && !size_at(n.tensor("weight"), 0).is(1)) weight = along(l, weight, 0, dims - 1);
  return {l.emit("PRelu", {self(l, n), weight})};
}

// log(1 + exp(beta * x)) / beta; torch switches to x itself above the threshold, where the two agree.
Outputs softplus(Lowering& l, const AtenNode& n) {
  const double beta = n.real("beta");
  Value* x = self(l, n);
  if (beta == 1) return {l.emit("Softplus", {x})};
  Value* factor = l.scalar(beta, out_dtype(n));
  return {l.emit("Div", {l.emit("Softplus", {l.emit("Mul", {x, factor})}), factor})};
}

Outputs log_sigmoid(Lowering& l, const AtenNode& n) {
  return {l.emit("Neg", {l.emit("Softplus", {l.emit("Neg", {self(l, n)})})})};
}

Outputs glu(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  const Expr half = out_sizes(n)[static_cast<size_t>(dim)];
  const std::vector<Expr> halves = {half, half};
  const Outputs parts = l.emit_many("Split", {self(l, n), l.shape(halves)}, {{"axis", dim}}, 2);
  return {l.emit("Mul", {parts[0], l.emit("Sigmoid", {parts[1]})})};
}

Outputs threshold(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = self(l, n);
  Value* is_above = l.emit("Greater", {x, l.input(n, "threshold", dtype)});
  return {l.emit("Where", {is_above, x, l.input(n, "value", dtype)})};
}

Outputs hardshrink(Lowering& l, const AtenNode& n) {
  return {l.emit("Shrink", {self(l, n)}, {real("lambd", n.real("lambd"))})};
}

Outputs softshrink(Lowering& l, const AtenNode& n) {
  return {l.emit("Shrink", {self(l, n)}, {real("lambd", n.real("lambd")), real("bias", n.real("lambd"))})};
}

Outputs tanhshrink(Lowering& l, const AtenNode& n) {
  Value* x = self(l, n);
  return {l.emit("Sub", {x, l.emit("Tanh", {x})})};
}

Outputs selu(Lowering& l, const AtenNode& n) { return {l.emit("Selu", {self(l, n)})}; }

constexpr OpRow kRows[] = {
    {"aten::celu", celu},
    {"aten::elu", elu},
    {"aten::gelu", gelu},
    {"aten::glu", glu},
    {"aten::hardshrink", hardshrink},
    {"aten::hardsigmoid", hardsigmoid},
    {"aten::hardswish", unary<"HardSwish">},
    {"aten::hardtanh", hardtanh},
    {"aten::leaky_relu", leaky_relu},
    {"aten::log_sigmoid", log_sigmoid},
    {"aten::log_sigmoid_forward", log_sigmoid},
    {"aten::mish", unary<"Mish">},
    {"aten::prelu", prelu},
    {"aten::_prelu_kernel", prelu},
    {"aten::relu", unary<"Relu">},
    {"aten::relu6", relu6},
    {"aten::rrelu", rrelu},
    {"aten::rrelu_with_noise_functional", rrelu_with_noise},
    {"aten::selu", selu},
    {"aten::silu", silu},
    {"aten::softplus", softplus},
    {"aten::softshrink", softshrink},
    {"aten::softsign", unary<"Softsign">},
    {"aten::tanhshrink", tanhshrink},
    {"aten::threshold", threshold},
};

}  // namespace

std::span<const OpRow> activation_ops() { return kRows; }

}  // namespace transporters::onnx
