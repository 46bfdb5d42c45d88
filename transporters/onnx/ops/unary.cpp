// Elementwise functions of one tensor, and ops that change nothing.
#include <cmath>
#include <numbers>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// Integers are converted to the output's type first, as torch does: sin of int64 is float32.
Value* operand(Lowering& l, const AtenNode& n) { return l.input(n, "self", out_dtype(n)); }

template <OpName Op>
Outputs unary(Lowering& l, const AtenNode& n) {
  return {l.emit(Op.view(), {operand(l, n)})};
}

// For integers and bools already whole.
template <OpName Op>
Outputs rounding(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  return {is_real(Lowering::dtype(x)) ? l.emit(Op.view(), {x}) : x};
}

Outputs identity(Lowering& l, const AtenNode& n) { return {l.input(n, n.schema().arguments.front().name)}; }

// Dropout of a model in eval mode passes its input on; (output, mask) for native_dropout.
Outputs dropout(Lowering& l, const AtenNode& n) {
  const std::string& training = n.schema().arguments.at(2).name;  // "train" or "training"
  const bool is_training = !n.is_none(training) && n.boolean(training);
  if (is_training && n.real("p") != 0) {
    throw l.error(n, "drops elements at random: the model is in training mode; call eval() before exporting");
  }
  Value* x = l.input(n, "input");
  Outputs outputs = {x};
  if (n.outputs().size() > 1 && is_used(n.outputs()[1])) {
    outputs.push_back(l.expand(l.integer(1, ScalarType::Bool), {}, out_sizes(n, 1)));
  }
  return outputs;
}

Outputs rsqrt(Lowering& l, const AtenNode& n) { return {l.emit("Reciprocal", {l.emit("Sqrt", {operand(l, n)})})}; }

Outputs square(Lowering& l, const AtenNode& n) {
  Value* x = operand(l, n);
  return {l.emit("Mul", {x, x})};
}

Outputs trunc(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  return {is_real(Lowering::dtype(x)) ? truncate(l, x) : x};
}

Outputs frac(Lowering& l, const AtenNode& n) {
  Value* x = operand(l, n);
  return {l.emit("Sub", {x, truncate(l, x)})};
}

Outputs round_decimals(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  if (!is_real(Lowering::dtype(x))) return {x};
  const int64_t decimals = n.integer("decimals");
  // Scaled by a whole power of ten on either side, so that the factor is exact.
  Value* factor = l.scalar(std::pow(10.0, std::abs(decimals)), out_dtype(n));
  const char* scale = decimals >= 0 ? "Mul" : "Div";
  const char* unscale = decimals >= 0 ? "Div" : "Mul";
  return {l.emit(unscale, {l.emit("Round", {l.emit(scale, {x, factor})}), factor})};
}

// log(1 + x), right for small x, too: W. Kahan's correction of log(u) by x / (u - 1), where u is 1 + x as rounded.
Outputs log1p(Lowering& l, const AtenNode& n) {
  Value* x = operand(l, n);
  Value* one = l.scalar(1, out_dtype(n));
  Value* u = l.emit("Add", {x, one});
  Value* rounded = l.emit("Sub", {u, one});
  Value* corrected = l.emit("Div", {l.emit("Mul", {l.emit("Log", {u}), x}), rounded});
  Value* is_small = l.emit("Equal", {rounded, l.scalar(0, out_dtype(n))});
  Value* is_infinite = l.emit("Equal", {u, l.scalar(INFINITY, out_dtype(n))});
  return {l.emit("Where", {is_small, x, l.emit("Where", {is_infinite, u, corrected})})};
}

// exp(x) - 1, right for small x, too: (u - 1) * x / log(u), where u is exp(x) as rounded.
Outputs expm1(Lowering& l, const AtenNode& n) {
  Value* x = operand(l, n);
  Value* one = l.scalar(1, out_dtype(n));
  Value* u = l.emit("Exp", {x});
  Value* difference = l.emit("Sub", {u, one});
  Value* corrected = l.emit("Mul", {difference, l.emit("Div", {x, l.emit("Log", {u})})});
  // Away from 0 the plain difference is right; there the correction could divide infinities.
  Value* is_large = l.emit("Greater", {l.emit("Abs", {x}), one});
  Value* is_tiny = l.emit("Equal", {difference, l.scalar(0, out_dtype(n))});
  return {l.emit("Where", {is_large, difference, l.emit("Where", {is_tiny, x, corrected})})};
}

Value* log_of_base(Lowering& l, const AtenNode& n, double base) {
  return l.emit("Mul", {l.emit("Log", {operand(l, n)}), l.scalar(1 / std::log(base), out_dtype(n))});
}
Outputs log2(Lowering& l, const AtenNode& n) { return {log_of_base(l, n, 2)}; }
Outputs log10(Lowering& l, const AtenNode& n) { return {log_of_base(l, n, 10)}; }

Outputs exp2(Lowering& l, const AtenNode& n) { return {l.emit("Pow", {l.scalar(2, out_dtype(n)), operand(l, n)})}; }

Outputs deg2rad(Lowering& l, const AtenNode& n) {
  return {l.emit("Mul", {operand(l, n), l.scalar(std::numbers::pi / 180, out_dtype(n))})};
}
Outputs rad2deg(Lowering& l, const AtenNode& n) {
  return {l.emit("Mul", {operand(l, n), l.scalar(180 / std::numbers::pi, out_dtype(n))})};
}

Outputs erfc(Lowering& l, const AtenNode& n) {
  return {l.emit("Sub", {l.scalar(1, out_dtype(n)), l.emit("Erf", {operand(l, n)})})};
}

Outputs logit(Lowering& l, const AtenNode& n) {
  Value* x = operand(l, n);
  if (const auto eps = n.real_or_none("eps")) {
    x = l.emit("Clip", {x, l.scalar(*eps, out_dtype(n)), l.scalar(1 - *eps, out_dtype(n))});
  }
  Value* odds = l.emit("Div", {x, l.emit("Sub", {l.scalar(1, out_dtype(n)), x})});
  return {l.emit("Log", {odds})};
}

// sin(pi * x) / (pi * x), and 1 at 0.
Outputs sinc(Lowering& l, const AtenNode& n) {
  Value* x = l.emit("Mul", {operand(l, n), l.scalar(std::numbers::pi, out_dtype(n))});
  Value* is_zero = l.emit("Equal", {x, l.scalar(0, out_dtype(n))});
  Value* ratio = l.emit("Div", {l.emit("Sin", {x}), x});
  return {l.emit("Where", {is_zero, l.scalar(1, out_dtype(n)), ratio})};
}

constexpr OpRow kRows[] = {
    {"aten::_neg_view", unary<"Neg">},
    {"aten::_neg_view_copy", unary<"Neg">},
    {"aten::abs", unary<"Abs">},
    {"aten::acos", unary<"Acos">},
    {"aten::acosh", unary<"Acosh">},
    {"aten::arccos", unary<"Acos">},
    {"aten::arcsin", unary<"Asin">},
    {"aten::arctan", unary<"Atan">},
    {"aten::asin", unary<"Asin">},
    {"aten::asinh", unary<"Asinh">},
    {"aten::atan", unary<"Atan">},
    {"aten::atanh", unary<"Atanh">},
    {"aten::ceil", rounding<"Ceil">},
    {"aten::cos", unary<"Cos">},
    {"aten::cosh", unary<"Cosh">},
    {"aten::deg2rad", deg2rad},
    {"aten::erf", unary<"Erf">},
    {"aten::erfc", erfc},
    {"aten::exp", unary<"Exp">},
    {"aten::exp2", exp2},
    {"aten::expm1", expm1},
    {"aten::floor", rounding<"Floor">},
    {"aten::frac", frac},
    {"aten::log", unary<"Log">},
    {"aten::log10", log10},
    {"aten::log1p", log1p},
    {"aten::log2", log2},
    {"aten::logit", logit},
    {"aten::neg", unary<"Neg">},
    {"aten::negative", unary<"Neg">},
    {"aten::rad2deg", rad2deg},
    {"aten::reciprocal", unary<"Reciprocal">},
    {"aten::round", rounding<"Round">},
    {"aten::round.decimals", round_decimals},
    {"aten::rsqrt", rsqrt},
    {"aten::sgn", unary<"Sign">},
    {"aten::sigmoid", unary<"Sigmoid">},
    {"aten::sign", unary<"Sign">},
    {"aten::sin", unary<"Sin">},
    {"aten::sinc", sinc},
    {"aten::sinh", unary<"Sinh">},
    {"aten::special_erf", unary<"Erf">},
    {"aten::special_expit", unary<"Sigmoid">},
    {"aten::sqrt", unary<"Sqrt">},
    {"aten::square", square},
    {"aten::tan", unary<"Tan">},
    {"aten::tanh", unary<"Tanh">},
    {"aten::trunc", trunc},
    {"aten::fix", trunc},

    {"aten::alias", identity},
    {"aten::alias_copy", identity},
    {"aten::clone", identity},
    {"aten::conj", identity},
    {"aten::contiguous", identity},
    {"aten::detach", identity},
    {"aten::detach_copy", identity},
    {"aten::lift", identity},
    {"aten::lift_fresh", identity},
    {"aten::lift_fresh_copy", identity},
    {"aten::positive", identity},
    {"aten::resolve_conj", identity},
    {"aten::resolve_neg", identity},

    {"aten::alpha_dropout", dropout},
    {"aten::dropout", dropout},
    {"aten::feature_alpha_dropout", dropout},
    {"aten::feature_dropout", dropout},
    {"aten::native_dropout", dropout},
};

}  // namespace

std::span<const OpRow> unary_ops() { return kRows; }

}  // namespace transporters::onnx
