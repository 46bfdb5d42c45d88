// Arithmetic of two or three tensors. Operands are converted to the type torch computes in, which is the output's.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Pair {
  Value* a;
  Value* b;
};

// "self" and "other" in the output's type.
Pair operands(Lowering& l, const AtenNode& n) {
  return {l.input(n, "self", out_dtype(n)), l.input(n, "other", out_dtype(n))};
}

template <OpName Op>
Outputs binary(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit(Op.view(), {a, b})};
}

// `value` times the argument `factor`, left out when that is 1.
Value* times(Lowering& l, const AtenNode& n, Value* value, std::string_view factor) {
  const Argument& given = n.get(factor);
  const auto* expr = std::get_if<Expr>(&given);
  const auto* real = std::get_if<double>(&given);
  if ((expr && expr->is(1)) || (real && *real == 1)) return value;
  return l.emit("Mul", {value, l.input(n, factor, Lowering::dtype(value))});
}

// Sums and products of bools are "or" and "and".
Outputs add(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  if (out_dtype(n) == ScalarType::Bool) return {l.emit("Or", {a, b})};
  return {l.emit("Add", {a, times(l, n, b, "alpha")})};
}

Outputs sub(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit("Sub", {a, times(l, n, b, "alpha")})};
}

Outputs rsub(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit("Sub", {b, times(l, n, a, "alpha")})};
}

Outputs mul(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit(out_dtype(n) == ScalarType::Bool ? "And" : "Mul", {a, b})};
}

bool is_nonzero_number(const AtenNode& n, std::string_view argument) {
  const Argument& given = n.get(argument);
  if (const auto* expr = std::get_if<Expr>(&given)) return expr->is_constant() && !expr->is(0);
  const auto* real = std::get_if<double>(&given);
  return real && *real != 0;
}

// torch's floor division of reals: from the exact remainder, so that 0.6 // 0.2 is 2 although 0.6 / 0.2 rounds to 3.
Value* floor_divide_reals(Lowering& l, const AtenNode& n, Value* a, Value* b) {
  const ScalarType dtype = Lowering::dtype(a);
  Value* zero = l.scalar(0, dtype);
  Value* remainder = l.emit("Mod", {a, b}, {{"fmod", int64_t{1}}});
  Value* quotient = l.emit("Div", {l.emit("Sub", {a, remainder}), b});
  // The remainder has the sign of `a`; where that is not the sign of `b`, the quotient is one too large.
  Value* signs_differ = l.emit("Xor", {l.emit("Less", {b, zero}), l.emit("Less", {remainder, zero})});
  Value* has_remainder = l.emit("Not", {l.emit("Equal", {remainder, zero})});
  Value* too_large = l.emit("And", {has_remainder, signs_differ});
  quotient = l.emit("Sub", {quotient, l.cast(too_large, dtype)});
  quotient = l.emit("Round", {quotient});  // whole but for rounding
  if (is_nonzero_number(n, "other")) return quotient;
  return l.emit("Where", {l.emit("Equal", {b, zero}), l.emit("Div", {a, b}), quotient});
}

Value* floor_divide(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return is_real(out_dtype(n)) ? floor_divide_reals(l, n, a, b) : floor_divide_integers(l, a, b);
}

Outputs div(Lowering& l, const AtenNode& n) {
  const bool has_mode = n.schema().find("rounding_mode") && !n.is_none("rounding_mode");
  if (!has_mode) return binary<"Div">(l, n);
  if (n.string("rounding_mode") == "floor") return {floor_divide(l, n)};
  const auto [a, b] = operands(l, n);
  Value* quotient = l.emit("Div", {a, b});
  return {is_real(out_dtype(n)) ? truncate(l, quotient) : quotient};
}

Outputs floor_divide_op(Lowering& l, const AtenNode& n) { return {floor_divide(l, n)}; }

// Remainder with the divisor's sign.
Outputs remainder(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  const ScalarType dtype = out_dtype(n);
  if (!is_real(dtype)) return {l.emit("Mod", {a, b})};
  // ONNX's Mod of reals takes the dividend's sign.
  Value* zero = l.scalar(0, dtype);
  Value* rest = l.emit("Mod", {a, b}, {{"fmod", int64_t{1}}});
  Value* signs_differ = l.emit("Xor", {l.emit("Less", {b, zero}), l.emit("Less", {rest, zero})});
  Value* is_nonzero = l.emit("Not", {l.emit("Equal", {rest, zero})});
  return {l.emit("Where", {l.emit("And", {is_nonzero, signs_differ}), l.emit("Add", {rest, b}), rest})};
}

// Remainder with the dividend's sign.
Outputs fmod(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit("Mod", {a, b}, {{"fmod", int64_t{1}}})};
}

Outputs pow(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* base = l.input(n, "self", dtype);
  const Argument& given = n.get("exponent");
  std::optional<double> exponent;
  if (const auto* real = std::get_if<double>(&given)) exponent = *real;
  if (const auto* expr = std::get_if<Expr>(&given)) {
    if (const auto whole = expr->as_integer()) exponent = static_cast<double>(*whole);
  }
  if (exponent == 1) return {base};
  if (is_real(dtype)) {
    if (exponent == 0.5) return {l.emit("Sqrt", {base})};
    if (exponent == -0.5) return {l.emit("Reciprocal", {l.emit("Sqrt", {base})})};
    if (exponent == -1) return {l.emit("Reciprocal", {base})};
  }
  return {l.emit("Pow", {base, l.input(n, "exponent", dtype)})};
}

// Largest or smallest of two; NaN wins, as in torch.
template <OpName Op, OpName BoolOp>
Outputs extremum(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit(out_dtype(n) == ScalarType::Bool ? BoolOp.view() : Op.view(), {a, b})};
}

// As extremum, but the other one wins over NaN.
template <OpName Op, OpName BoolOp>
Outputs extremum_without_nan(Lowering& l, const AtenNode& n) {
  if (!is_real(out_dtype(n))) return extremum<Op, BoolOp>(l, n);
  const auto [a, b] = operands(l, n);
  Value* chosen = l.emit(Op.view(), {a, b});
  chosen = l.emit("Where", {l.emit("IsNaN", {b}), a, chosen});
  return {l.emit("Where", {l.emit("IsNaN", {a}), b, chosen})};
}

// Angle of (other, self) from the quotient, moved by half a turn where the abscissa is negative.
Outputs atan2(Lowering& l, const AtenNode& n) {
  const auto [y, x] = operands(l, n);
  const ScalarType dtype = out_dtype(n);
  Value* zero = l.scalar(0, dtype);
  Value* x_is_zero = l.emit("Equal", {x, zero});
  Value* y_is_negative = l.emit("Less", {y, zero});
  Value* quarter = l.emit("Mul", {l.emit("Sign", {y}), l.scalar(M_PI_2, dtype)});
  Value* angle = l.emit("Atan", {l.emit("Div", {y, l.emit("Where", {x_is_zero, l.scalar(1, dtype), x})})});
  Value* half_turn = l.emit("Where", {y_is_negative, l.scalar(-M_PI, dtype), l.scalar(M_PI, dtype)});
  angle = l.emit("Where", {l.emit("Less", {x, zero}), l.emit("Add", {angle, half_turn}), angle});
  return {l.emit("Where", {x_is_zero, quarter, angle})};
}

Outputs hypot(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit("Sqrt", {l.emit("Add", {l.emit("Mul", {a, a}), l.emit("Mul", {b, b})})})};
}

// log(base^a + base^b), from the larger one, so that nothing overflows.
Value* log_add(Lowering& l, const AtenNode& n, double scale) {
  const auto [a, b] = operands(l, n);
  const ScalarType dtype = out_dtype(n);
  Value* larger = l.emit("Max", {a, b});
  Value* distance = l.emit("Neg", {l.emit("Abs", {l.emit("Sub", {a, b})})});
  Value* factor = l.scalar(scale, dtype);
  if (scale != 1) distance = l.emit("Mul", {distance, factor});
  Value* rest = l.emit("Log", {l.emit("Add", {l.emit("Exp", {distance}), l.scalar(1, dtype)})});
  if (scale != 1) rest = l.emit("Div", {rest, factor});
  Value* sum = l.emit("Add", {larger, rest});
  // Two equal infinities have no distance.
  return l.emit("Where", {l.emit("Equal", {a, b}), l.emit("Add", {a, l.scalar(std::log(2.0) / scale, dtype)}), sum});
}
Outputs logaddexp(Lowering& l, const AtenNode& n) { return {log_add(l, n, 1)}; }
Outputs logaddexp2(Lowering& l, const AtenNode& n) { return {log_add(l, n, std::log(2.0))}; }

// self * log(other), and 0 where self is 0.
Outputs xlogy(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  Value* zero = l.scalar(0, out_dtype(n));
  Value* product = l.emit("Mul", {a, l.emit("Log", {b})});
  Value* is_zero = l.emit("And", {l.emit("Equal", {a, zero}), l.emit("Not", {l.emit("IsNaN", {b})})});
  return {l.emit("Where", {is_zero, zero, product})};
}

Outputs copysign(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  Value* magnitude = l.emit("Abs", {a});
  Value* is_negative = l.emit("Less", {b, l.scalar(0, out_dtype(n))});
  return {l.emit("Where", {is_negative, l.emit("Neg", {magnitude}), magnitude})};
}

Outputs heaviside(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  Value* zero = l.scalar(0, dtype);
  Value* step = l.cast(l.emit("Greater", {x, zero}), dtype);
  return {l.emit("Where", {l.emit("Equal", {x, zero}), l.input(n, "values", dtype), step})};
}

// start + weight * (end - start), from the nearer end.
Outputs lerp(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* start = l.input(n, "self", dtype);
  Value* end = l.input(n, "end", dtype);
  Value* weight = l.input(n, "weight", dtype);
  Value* difference = l.emit("Sub", {end, start});
  Value* from_start = l.emit("Add", {start, l.emit("Mul", {weight, difference})});
  Value* rest = l.emit("Sub", {l.scalar(1, dtype), weight});
  Value* from_end = l.emit("Sub", {end, l.emit("Mul", {difference, rest})});
  Value* is_near_start = l.emit("Less", {l.emit("Abs", {weight}), l.scalar(0.5, dtype)});
  return {l.emit("Where", {is_near_start, from_start, from_end})};
}

template <OpName Op>
Outputs add_combined(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* combined = l.emit(Op.view(), {l.input(n, "tensor1", dtype), l.input(n, "tensor2", dtype)});
  return {l.emit("Add", {l.input(n, "self", dtype), times(l, n, combined, "value")})};
}

// a * 2^b, and the floor of a / 2^b: shifts of two's complement numbers. ONNX shifts unsigned types only.
Outputs shift_left(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {l.emit("Mul", {a, l.emit("Pow", {l.integer(2, out_dtype(n)), b})})};
}
Outputs shift_right(Lowering& l, const AtenNode& n) {
  const auto [a, b] = operands(l, n);
  return {floor_divide_integers(l, a, l.emit("Pow", {l.integer(2, out_dtype(n)), b}))};
}

constexpr OpRow kRows[] = {
    {"aten::add", add},
    {"aten::addcdiv", add_combined<"Div">},
    {"aten::addcmul", add_combined<"Mul">},
    {"aten::arctan2", atan2},
    {"aten::atan2", atan2},
    {"aten::bitwise_left_shift", shift_left},
    {"aten::bitwise_right_shift", shift_right},
    {"aten::__lshift__", shift_left},
    {"aten::__rshift__", shift_right},
    {"aten::copysign", copysign},
    {"aten::div", div},
    {"aten::divide", div},
    {"aten::floor_divide", floor_divide_op},
    {"aten::fmax", extremum_without_nan<"Max", "Or">},
    {"aten::fmin", extremum_without_nan<"Min", "And">},
    {"aten::fmod", fmod},
    {"aten::heaviside", heaviside},
    {"aten::hypot", hypot},
    {"aten::lerp", lerp},
    {"aten::logaddexp", logaddexp},
    {"aten::logaddexp2", logaddexp2},
    {"aten::max.other", extremum<"Max", "Or">},
    {"aten::maximum", extremum<"Max", "Or">},
    {"aten::min.other", extremum<"Min", "And">},
    {"aten::minimum", extremum<"Min", "And">},
    {"aten::mul", mul},
    {"aten::multiply", mul},
    {"aten::pow", pow},
    {"aten::remainder", remainder},
    {"aten::rsub", rsub},
    {"aten::sub", sub},
    {"aten::subtract", sub},
    {"aten::true_divide", div},
    {"aten::xlogy", xlogy},
    {"aten::special_xlogy", xlogy},
};

}  // namespace

std::span<const OpRow> arithmetic_ops() { return kRows; }

}  // namespace transporters::onnx
