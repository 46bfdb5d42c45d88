// What the pass complex_to_real leaves of complex numbers: Fourier transforms, and the conversions around them. A
// complex tensor of the program is a real one here with real and imaginary parts in a last dimension of 2, as DFT has
// it.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Outputs same_pairs(Lowering& l, const AtenNode& n) { return {l.input(n, "self")}; }

Value* transform(Lowering& l, Value* pairs, int64_t dim, bool inverse, bool onesided) {
  Attributes attributes = {{"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}};
  if (l.opset() >= 20) return l.emit("DFT", {pairs, nullptr, l.integer(dim)}, attributes);
  attributes.push_back({"axis", dim});
  return l.emit("DFT", {pairs}, attributes);
}

// torch scales by 1, 1/sqrt(n) or 1/n; DFT by 1/n when it is the inverse one.
Value* scaled(Lowering& l, const AtenNode& n, Value* y, const Expr& count, bool inverse) {
  const int64_t normalization = n.integer("normalization");
  const double power = (normalization == 0 ? 0 : normalization == 1 ? -0.5 : -1) + (inverse ? 1 : 0);
  if (power == 0) return y;
  const ScalarType dtype = Lowering::dtype(y);
  Value* factor = l.emit("Pow", {l.number(count, dtype), l.scalar(power, dtype)});
  return l.emit("Mul", {y, factor});
}

// DFT has kernels for these two types.
ScalarType compute_type(ScalarType dtype) {
  return c10::toRealValueType(dtype) == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

Expr count_of(const AtenNode& n, const std::vector<int64_t>& dims) {
  Expr count = 1;
  for (const int64_t dim : dims) count = count * size_at(n.tensor("self"), dim);
  return count;
}

// Complex to complex, along any dimensions.
Outputs c2c(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = c10::toRealValueType(out_dtype(n));
  const auto dims = l.dims(n, "dim");
  const bool inverse = !n.boolean("forward");
  Value* y = l.input(n, "self", compute_type(dtype));
  for (const int64_t dim : dims) y = transform(l, y, dim, inverse, false);
  return {l.cast(scaled(l, n, y, count_of(n, dims), inverse), dtype)};
}

// Real to complex; onesided halves the last of the dimensions.
Outputs r2c(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = c10::toRealValueType(out_dtype(n));
  const auto dims = l.dims(n, "dim");
  Value* y = l.unsqueeze(l.input(n, "self", compute_type(dtype)), {rank(n.tensor("self"))});
  for (size_t i = dims.size(); i-- > 0;) {
    y = transform(l, y, dims[i], false, i + 1 == dims.size() && n.boolean("onesided"));
  }
  return {l.cast(scaled(l, n, y, count_of(n, dims), false), dtype)};
}

// Half of a symmetric spectrum to real numbers, n of them: the other half is the conjugate of elements 1 to (n - 1) / 2
// in reverse.
Outputs c2r(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n), compute = compute_type(dtype);
  auto dims = l.dims(n, "dim");
  const int64_t pair = rank(n.tensor("self")), last = dims.back();
  const Expr size = n.size("last_dim_size");
  dims.pop_back();
  Value* y = l.input(n, "self", compute);
  for (const int64_t dim : dims) y = transform(l, y, dim, true, false);
  Value* mirrored = l.slice(y, last, symbolic::floor_div(size - 1, 2), Expr(0), -1);
  mirrored = l.emit("Mul", {mirrored, l.vector(std::vector<double>{1, -1}, compute)});
  y = transform(l, l.concat({y, mirrored}, last), last, true, false);
  y = l.emit("Gather", {y, l.integer(0)}, {{"axis", pair}});
  return {l.cast(scaled(l, n, y, count_of(n, dims) * size, true), dtype)};
}

constexpr OpRow kRows[] = {
    {"aten::_fft_c2c", c2c},
    {"aten::_fft_c2r", c2r},
    {"aten::_fft_r2c", r2c},
    {"aten::view_as_complex", same_pairs},
    {"aten::view_as_complex_copy", same_pairs},
    {"aten::view_as_real", same_pairs},
    {"aten::view_as_real_copy", same_pairs},
};

}  // namespace

std::span<const OpRow> complex_ops() { return kRows; }

bool reads_pairs(std::string_view op) {
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const OpRow& row) { return row.op == op; });
}

}  // namespace transporters::onnx
