// Comparisons, logic, bits, choices.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// The operands in the type torch compares them in; "self" and "other", order-preserving types only.
std::vector<Value*> compared(Lowering& l, const AtenNode& n, bool needs_order) {
  ScalarType dtype = l.result_type(n, {"self", "other"});
  if (needs_order && dtype == ScalarType::Bool) dtype = ScalarType::Int;
  return {l.input(n, "self", dtype), l.input(n, "other", dtype)};
}

template <OpName Op>
Outputs order(Lowering& l, const AtenNode& n) {
  return {l.emit(Op.view(), compared(l, n, true))};
}

Outputs eq(Lowering& l, const AtenNode& n) { return {l.emit("Equal", compared(l, n, false))}; }
Outputs ne(Lowering& l, const AtenNode& n) { return {l.emit("Not", {l.emit("Equal", compared(l, n, false))})}; }

template <OpName Op>
Outputs logical(Lowering& l, const AtenNode& n) {
  return {l.emit(Op.view(), {l.input(n, "self", ScalarType::Bool), l.input(n, "other", ScalarType::Bool)})};
}

Outputs logical_not(Lowering& l, const AtenNode& n) { return {l.emit("Not", {l.input(n, "self", ScalarType::Bool)})}; }

template <OpName Op, OpName BoolOp>
Outputs bitwise(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {l.emit(dtype == ScalarType::Bool ? BoolOp.view() : Op.view(),
                 {l.input(n, "self", dtype), l.input(n, "other", dtype)})};
}

Outputs bitwise_not(Lowering& l, const AtenNode& n) {
  return {l.emit(out_dtype(n) == ScalarType::Bool ? "Not" : "BitwiseNot", {l.input(n, "self")})};
}

Value* all_false(Lowering& l, const AtenNode& n) { return l.expand(l.integer(0, ScalarType::Bool), {}, out_sizes(n)); }

Outputs isnan(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  return {is_real(Lowering::dtype(x)) ? l.emit("IsNaN", {x}) : all_false(l, n)};
}

// IsInf takes float and double only before opset 20.
Value* is_infinite(Lowering& l, Value* x, bool negative, bool positive) {
  if (is_half(Lowering::dtype(x))) x = l.cast(x, ScalarType::Float);
  return l.emit("IsInf", {x}, {{"detect_negative", int64_t{negative}}, {"detect_positive", int64_t{positive}}});
}

template <bool Negative, bool Positive>
Outputs isinf(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  return {is_real(Lowering::dtype(x)) ? is_infinite(l, x, Negative, Positive) : all_false(l, n)};
}

Outputs isfinite(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  if (!is_real(Lowering::dtype(x))) return {l.emit("Not", {all_false(l, n)})};
  return {l.emit("Not", {l.emit("Or", {l.emit("IsNaN", {x}), is_infinite(l, x, true, true)})})};
}

Outputs nan_to_num(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  const ScalarType dtype = Lowering::dtype(x);
  if (!is_real(dtype)) return {x};
  const double largest = dtype == ScalarType::Double     ? std::numeric_limits<double>::max()
                         : dtype == ScalarType::Half     ? 65504.0
                         : dtype == ScalarType::BFloat16 ? 3.3895313892515355e38
                                                         : static_cast<double>(std::numeric_limits<float>::max());
  const auto replace = [&](Value* condition, std::string_view argument, double otherwise) {
    const double number = n.real_or_none(argument).value_or(otherwise);
    x = l.emit("Where", {condition, l.scalar(number, dtype), x});
  };
  Value* original = x;
  replace(l.emit("IsNaN", {original}), "nan", 0);
  replace(is_infinite(l, original, false, true), "posinf", largest);
  replace(is_infinite(l, original, true, false), "neginf", -largest);
  return {x};
}

Outputs isclose(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = l.result_type(n, {"self", "other"});
  if (!is_real(dtype)) throw l.error(n, "compares integers; use == for them");
  Value* a = l.input(n, "self", dtype);
  Value* b = l.input(n, "other", dtype);
  Value* allowed = l.emit(
      "Add", {l.scalar(n.real("atol"), dtype), l.emit("Mul", {l.scalar(n.real("rtol"), dtype), l.emit("Abs", {b})})});
  Value* distance = l.emit("Abs", {l.emit("Sub", {a, b})});
  Value* is_finite = l.emit("Less", {distance, l.scalar(INFINITY, dtype)});
  Value* near = l.emit("And", {l.emit("LessOrEqual", {distance, allowed}), is_finite});
  near = l.emit("Or", {near, l.emit("Equal", {a, b})});
  if (n.boolean("equal_nan")) near = l.emit("Or", {near, l.emit("And", {l.emit("IsNaN", {a}), l.emit("IsNaN", {b})})});
  return {near};
}

Outputs where(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {l.emit("Where",
                 {l.input(n, "condition", ScalarType::Bool), l.input(n, "self", dtype), l.input(n, "other", dtype)})};
}

Outputs masked_fill(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {
      l.emit("Where", {l.input(n, "mask", ScalarType::Bool), l.input(n, "value", dtype), l.input(n, "self", dtype)})};
}

// Bounds may be numbers, tensors that broadcast, or absent. Where they cross, the upper one wins.
Outputs clamp(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  const auto bound = [&](std::string_view argument) {
    return n.schema().find(argument) ? l.input_or_null(n, argument, dtype) : nullptr;
  };
  if (Value* low = bound("min")) x = l.emit("Max", {x, low});
  if (Value* high = bound("max")) x = l.emit("Min", {x, high});
  return {x};
}

constexpr OpRow kRows[] = {
    {"aten::__and__", bitwise<"BitwiseAnd", "And">},
    {"aten::__or__", bitwise<"BitwiseOr", "Or">},
    {"aten::__xor__", bitwise<"BitwiseXor", "Xor">},
    {"aten::bitwise_and", bitwise<"BitwiseAnd", "And">},
    {"aten::bitwise_not", bitwise_not},
    {"aten::bitwise_or", bitwise<"BitwiseOr", "Or">},
    {"aten::bitwise_xor", bitwise<"BitwiseXor", "Xor">},
    {"aten::clamp", clamp},
    {"aten::clamp_max", clamp},
    {"aten::clamp_min", clamp},
    {"aten::clip", clamp},
    {"aten::eq", eq},
    {"aten::ge", order<"GreaterOrEqual">},
    {"aten::greater", order<"Greater">},
    {"aten::greater_equal", order<"GreaterOrEqual">},
    {"aten::gt", order<"Greater">},
    {"aten::isclose", isclose},
    {"aten::isfinite", isfinite},
    {"aten::isinf", isinf<true, true>},
    {"aten::isnan", isnan},
    {"aten::isneginf", isinf<true, false>},
    {"aten::isposinf", isinf<false, true>},
    {"aten::le", order<"LessOrEqual">},
    {"aten::less", order<"Less">},
    {"aten::less_equal", order<"LessOrEqual">},
    {"aten::logical_and", logical<"And">},
    {"aten::logical_not", logical_not},
    {"aten::logical_or", logical<"Or">},
    {"aten::logical_xor", logical<"Xor">},
    {"aten::lt", order<"Less">},
    {"aten::masked_fill", masked_fill},
    {"aten::nan_to_num", nan_to_num},
    {"aten::ne", ne},
    {"aten::not_equal", ne},
    {"aten::where.ScalarOther", where},
    {"aten::where.ScalarSelf", where},
    {"aten::where.Scalar", where},
    {"aten::where.self", where},
};

}  // namespace

std::span<const OpRow> comparison_ops() { return kRows; }

}  // namespace transporters::onnx
