// Decompositions of torch.fft's functions into the transforms behind them: _fft_c2c, _fft_r2c, _fft_c2r.
#include "transporters/error.h"
#include "transporters/passes/decompose.h"

namespace transporters {
namespace {

using Result = std::vector<Value*>;

// How _fft_* scale: not at all, by 1/sqrt(n) or by 1/n.
enum Scale : int64_t { kNone = 0, kByRoot = 1, kByCount = 2 };

Expr scale_of(const Node& node, bool forward) {
  const std::string norm = node.is_none("norm") ? "backward" : node.string("norm");
  if (norm == "ortho") return Expr(int64_t{kByRoot});
  return Expr(int64_t{(norm == "forward") == forward ? kByCount : kNone});
}

size_t axis_of(const Value* value, int64_t dim) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(value->rank()) : dim);
}

// Cut or padded with zeros at the end of `dim` to `size`.
Value* resized(NodeBuilder& build, Value* value, int64_t dim, const Expr& size) {
  const size_t axis = axis_of(value, dim);
  const Expr was = value->sizes()[axis];
  if (was == size) return value;
  const Expr kept = symbolic::min(was, size);
  if (!(kept == was))
    value = build("aten::slice.Tensor", {{"self", value}, {"dim", Expr(dim)}, {"start", Expr(0)}, {"end", kept}});
  if (kept == size) return value;
  std::vector<Expr> pad(2 * (value->rank() - axis), Expr(0));
  pad.back() = size - kept;
  return build("aten::constant_pad_nd", {{"self", value}, {"pad", pad}});
}

bool is_complex(const Value* value) { return c10::isComplexType(value->dtype()); }

// Integers are transformed as floats.
Value* floating(NodeBuilder& build, Value* value) {
  if (is_complex(value) || c10::isFloatingType(value->dtype())) return value;
  return build("aten::_to_copy", {{"self", value}, {"dtype", ScalarType::Float}});
}

// The dims that are transformed, and the sizes that the input gets there.
struct Axes {
  std::vector<Expr> dims;
  std::vector<Expr> sizes;  // empty: as they are
};

Axes axes_of(const Node& node) {
  const Value* self = node.tensor("self");
  const std::string_view sizes = node.schema().find("n") ? "n" : "s";
  Axes axes;
  if (!node.is_none(sizes)) axes.sizes = node.sizes(sizes);
  if (!node.is_none("dim")) {
    for (const int64_t dim : node.integers("dim")) axes.dims.emplace_back(static_cast<int64_t>(axis_of(self, dim)));
  } else {
    const auto rank = static_cast<int64_t>(self->rank());
    const auto count = axes.sizes.empty() ? rank : static_cast<int64_t>(axes.sizes.size());
    for (int64_t dim = rank - count; dim < rank; ++dim) axes.dims.emplace_back(dim);
  }
  // A size of -1 stays what it is.
  for (size_t i = 0; i < axes.sizes.size(); ++i)
    if (axes.sizes[i].is(-1)) axes.sizes[i] = self->sizes()[axis_of(self, axes.dims[i].as_integer().value())];
  return axes;
}

Value* prepared(const Node& node, NodeBuilder& build, const Axes& axes) {
  Value* value = floating(build, node.tensor("self"));
  for (size_t i = 0; i < axes.sizes.size(); ++i)
    value = resized(build, value, axes.dims[i].as_integer().value(), axes.sizes[i]);
  return value;
}

// fft, ifft, fft2, ...: to complex numbers of the same size.
template <bool kForward>
Result to_complex(const Node& node, NodeBuilder& build) {
  const Axes axes = axes_of(node);
  Value* value = prepared(node, build, axes);
  const Argument scale = scale_of(node, kForward);
  if (!is_complex(value) && kForward)
    return {
        build("aten::_fft_r2c", {{"self", value}, {"dim", axes.dims}, {"normalization", scale}, {"onesided", false}})};
  if (!is_complex(value))
    value = build("aten::complex", {{"real", value}, {"imag", build.unary("aten::zeros_like", value)}});
  return {
      build("aten::_fft_c2c", {{"self", value}, {"dim", axes.dims}, {"normalization", scale}, {"forward", kForward}})};
}

// rfft, rfft2, rfftn: of real numbers, the half of the spectrum that says all.
Result from_real(const Node& node, NodeBuilder& build) {
  const Axes axes = axes_of(node);
  Value* value = prepared(node, build, axes);
  return {build("aten::_fft_r2c",
                {{"self", value}, {"dim", axes.dims}, {"normalization", scale_of(node, true)}, {"onesided", true}})};
}

// irfft, irfft2, irfftn: back to real numbers.
Result to_real(const Node& node, NodeBuilder& build) {
  Axes axes = axes_of(node);
  Value* self = node.tensor("self");
  const int64_t last_dim = axes.dims.back().as_integer().value();
  const Expr last = axes.sizes.empty() ? (self->sizes()[axis_of(self, last_dim)] - 1) * 2 : axes.sizes.back();
  if (!axes.sizes.empty()) axes.sizes.back() = symbolic::floor_div(last, 2) + 1;
  Value* value = prepared(node, build, axes);
  if (!is_complex(value))
    value = build("aten::complex", {{"real", value}, {"imag", build.unary("aten::zeros_like", value)}});
  return {
      build("aten::_fft_c2r",
            {{"self", value}, {"dim", axes.dims}, {"normalization", scale_of(node, false)}, {"last_dim_size", last}})};
}

constexpr DecompositionRow kTable[] = {
    {"aten::fft_fft", to_complex<true>},    {"aten::fft_fft2", to_complex<true>},
    {"aten::fft_fftn", to_complex<true>},   {"aten::fft_ifft", to_complex<false>},
    {"aten::fft_ifft2", to_complex<false>}, {"aten::fft_ifftn", to_complex<false>},
    {"aten::fft_rfft", from_real},          {"aten::fft_rfft2", from_real},
    {"aten::fft_rfftn", from_real},         {"aten::fft_irfft", to_real},
    {"aten::fft_irfft2", to_real},          {"aten::fft_irfftn", to_real},
};

}  // namespace

std::span<const DecompositionRow> fft_decompositions() { return kTable; }

}  // namespace transporters
