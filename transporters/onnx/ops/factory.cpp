// Tensors made from sizes and numbers.
#include <algorithm>
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// Constants up to this many elements are stored, so that runtimes can fold what reads them.
constexpr int64_t kSmall = 64;

Value* fill(Lowering& l, const AtenNode& n, Value* value) {
  const std::vector<Expr> none;
  return l.expand(value, none, out_sizes(n));
}

Value* fill(Lowering& l, const AtenNode& n, double value) {
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (const Expr& size : out_sizes(n)) {
    const auto constant = size.as_integer();
    count = constant && count >= 0 ? count * *constant : -1;
    dims.push_back(constant.value_or(0));
  }
  if (count >= 0 && count <= kSmall) return l.filled(value, out_dtype(n), dims);
  const Tensor element = *l.filled(value, out_dtype(n), {1})->initializer;
  return l.emit("ConstantOfShape", {l.shape(out_sizes(n))}, {{"value", element}});
}

template <int64_t Number>
Outputs constant(Lowering& l, const AtenNode& n) {
  return {fill(l, n, Number)};
}

// The number may be symbolic, computed, or whole and beyond what a double holds.
Outputs full(Lowering& l, const AtenNode& n) {
  const Argument& given = n.get(n.schema().find("fill_value") ? "fill_value" : "value");
  if (const auto* real = std::get_if<double>(&given)) return {fill(l, n, *real)};
  if (const auto* boolean = std::get_if<bool>(&given)) return {fill(l, n, *boolean)};
  if (const auto* expr = std::get_if<Expr>(&given)) {
    const auto whole = expr->as_integer();
    if (whole && std::abs(static_cast<double>(*whole)) < 0x1p53) return {fill(l, n, static_cast<double>(*whole))};
  }
  return {fill(l, n, l.input(n, n.schema().find("fill_value") ? "fill_value" : "value", out_dtype(n)))};
}

Outputs scalar_tensor(Lowering& l, const AtenNode& n) { return {l.input(n, "s", out_dtype(n))}; }

std::optional<double> number(const AtenNode& n, std::string_view argument, double otherwise) {
  if (!n.schema().find(argument)) return otherwise;
  const Argument& given = n.get(argument);
  if (const auto* real = std::get_if<double>(&given)) return *real;
  const auto* expr = std::get_if<Expr>(&given);
  const auto whole = expr ? expr->as_integer() : std::nullopt;
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

// start, start + step, ... The output's type says how many; counting whole numbers keeps reals exact.
Outputs arange(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const Expr count = out_sizes(n)[0];
  const auto start = number(n, "start", 0), step = number(n, "step", 1);
  const auto whole = [](const std::optional<double>& x) { return x && *x == std::floor(*x) && std::abs(*x) < 0x1p53; };
  if (whole(start) && whole(step)) {
    const auto first = static_cast<int64_t>(*start), by = static_cast<int64_t>(*step);
    return {l.cast(range(l, first, count * by + first, by), dtype)};
  }
  Value* places = l.cast(range(l, 0, count), dtype);
  if (!(step && *step == 1)) places = l.emit("Mul", {places, l.input(n, "step", dtype)});
  return {start && *start == 0 ? places : l.emit("Add", {places, l.input(n, "start", dtype)})};
}

// Counted from the nearer end, as torch does.
Value* line(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const ScalarType compute = is_real(dtype) ? dtype : ScalarType::Double;
  const Expr steps = out_sizes(n)[0];
  Value* start = l.input(n, "start", compute);
  Value* end = l.input(n, "end", compute);
  Value* gaps = l.number(symbolic::max(steps - 1, 1), compute);
  Value* step = l.emit("Div", {l.emit("Sub", {end, start}), gaps});
  Value* places = range(l, 0, steps);
  Value* from_start = l.emit("Add", {start, l.emit("Mul", {l.cast(places, compute), step})});
  Value* places_left = l.emit("Sub", {l.size(steps - 1), places});
  Value* from_end = l.emit("Sub", {end, l.emit("Mul", {l.cast(places_left, compute), step})});
  Value* is_near_start = l.emit("Less", {places, l.size(symbolic::floor_div(steps, 2))});
  if (steps.is(1)) is_near_start = l.integer(1, ScalarType::Bool);
  return l.emit("Where", {is_near_start, from_start, from_end});
}

Outputs linspace(Lowering& l, const AtenNode& n) { return {l.cast(line(l, n), out_dtype(n))}; }

Outputs logspace(Lowering& l, const AtenNode& n) {
  Value* exponents = line(l, n);
  return {l.cast(l.emit("Pow", {l.scalar(n.real("base"), Lowering::dtype(exponents)), exponents}), out_dtype(n))};
}

Outputs eye(Lowering& l, const AtenNode& n) {
  Value* rows = l.unsqueeze(range(l, 0, out_sizes(n)[0]), {1});
  return {l.cast(l.emit("Equal", {rows, range(l, 0, out_sizes(n)[1])}), out_dtype(n))};
}

// Windows of signal processing: a + b * cos over one period.
Value* cosine_window(Lowering& l, const AtenNode& n, double a, double b) {
  const ScalarType dtype = out_dtype(n);
  const Expr length = n.size("window_length");
  const bool periodic = !n.schema().find("periodic") || n.boolean("periodic");
  Value* period = l.number(periodic ? length : symbolic::max(length - 1, 1), dtype);
  Value* places = l.cast(range(l, 0, length), dtype);
  Value* angle = l.emit("Div", {l.emit("Mul", {places, l.scalar(2 * M_PI, dtype)}), period});
  Value* wave = l.emit("Mul", {l.emit("Cos", {angle}), l.scalar(b, dtype)});
  if (length.is(1)) return l.filled(1, dtype, {1});
  return l.emit("Add", {wave, l.scalar(a, dtype)});
}

Outputs hann_window(Lowering& l, const AtenNode& n) { return {cosine_window(l, n, 0.5, -0.5)}; }
Outputs hamming_window(Lowering& l, const AtenNode& n) {
  const double alpha = n.schema().find("alpha") ? n.real("alpha") : 0.54;
  const double beta = n.schema().find("beta") ? n.real("beta") : 0.46;
  return {cosine_window(l, n, alpha, -beta)};
}

constexpr OpRow kRows[] = {
    {"aten::arange", arange},
    {"aten::empty", constant<0>},
    {"aten::empty_like", constant<0>},
    {"aten::empty_permuted", constant<0>},
    {"aten::empty_strided", constant<0>},
    {"aten::eye", eye},
    {"aten::fill", full},
    {"aten::full", full},
    {"aten::full_like", full},
    {"aten::hamming_window", hamming_window},
    {"aten::hann_window", hann_window},
    {"aten::linspace", linspace},
    {"aten::logspace", logspace},
    {"aten::new_empty", constant<0>},
    {"aten::new_empty_strided", constant<0>},
    {"aten::new_full", full},
    {"aten::new_ones", constant<1>},
    {"aten::new_zeros", constant<0>},
    {"aten::ones", constant<1>},
    {"aten::ones_like", constant<1>},
    {"aten::scalar_tensor", scalar_tensor},
    {"aten::zero", constant<0>},
    {"aten::zeros", constant<0>},
    {"aten::zeros_like", constant<0>},
};

}  // namespace

std::span<const OpRow> factory_ops() { return kRows; }

}  // namespace transporters::onnx
