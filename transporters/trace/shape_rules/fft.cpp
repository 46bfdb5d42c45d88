// Fourier transforms: torch.fft's functions, the private ops behind them, and short-time transforms.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

ScalarType complex_dtype(ScalarType dtype) { return c10::toComplexType(to_floating(dtype)); }

// What a transform does to the last of its dims: keeps it, halves it (real in), doubles it (real out).
enum class Form { Complex, RealIn, RealOut };

ScalarType output_dtype(Form form, ScalarType dtype) {
  return form == Form::RealOut ? to_real_dtype(to_floating(dtype)) : complex_dtype(dtype);
}

template <Form form>
Types transform(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  Sizes sizes = self.sizes;
  const bool sized = has(node, "n");
  const Expr length = sized ? node.size("n") : form == Form::RealOut ? 2 * (sizes[d] - 1) : sizes[d];
  sizes[d] = form == Form::RealIn ? floor_div(length, 2) + 1 : length;
  return one(output_dtype(form, self.dtype), sizes);
}

// fft2, fftn: the dims given, else the last ones that `s` is for, else all.
std::vector<size_t> transformed_dims(const Node& node, const TensorType& self, const Sizes& lengths) {
  auto dims = dim_list(node, "dim", self.rank());
  if (!dims.empty()) return dims;
  const size_t count = lengths.empty() ? self.rank() : lengths.size();
  check(count <= self.rank(), node, "expected at most " + std::to_string(self.rank()) + " lengths");
  for (size_t i = self.rank() - count; i < self.rank(); ++i) dims.push_back(i);
  return dims;
}

template <Form form>
Types transform_n(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Sizes lengths = has(node, "s") ? node.sizes("s") : Sizes{};
  const auto dims = transformed_dims(node, self, lengths);
  check(lengths.empty() || lengths.size() == dims.size(), node, "expected as many lengths as dims");
  Sizes sizes = self.sizes;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool last = i + 1 == dims.size();
    // -1 stands for the size itself.
    const bool sized = !lengths.empty() && !lengths[i].is(-1);
    Expr& size = sizes[dims[i]];
    const Expr length = sized ? lengths[i] : last && form == Form::RealOut ? 2 * (size - 1) : size;
    size = last && form == Form::RealIn ? floor_div(length, 2) + 1 : length;
  }
  return one(output_dtype(form, self.dtype), sizes);
}

Types fft_r2c(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  Sizes sizes = self.sizes;
  const auto dims = dim_list(node, "dim", self.rank());
  if (node.boolean("onesided") && !dims.empty()) sizes[dims.back()] = floor_div(sizes[dims.back()], 2) + 1;
  return one(complex_dtype(self.dtype), sizes);
}

Types fft_c2r(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  Sizes sizes = self.sizes;
  const auto dims = dim_list(node, "dim", self.rank());
  check(!dims.empty(), node, "expected at least one dim");
  sizes[dims.back()] = node.size("last_dim_size");
  return one(to_real_dtype(self.dtype), sizes);
}

// [batch, length] -> [batch, frequencies, frames], complex or with a last dim of 2
Types stft(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {1, 2});
  const int64_t n_fft = node.integer("n_fft");
  const int64_t hop = integer(node, "hop_length", n_fft / 4);
  const auto* window = input_or_null(node, "window");
  const bool is_complex = c10::isComplexType(self.dtype) || (window && c10::isComplexType(window->dtype));
  Expr length = self.sizes.back();
  if (flag(node, "center")) length = length + 2 * (n_fft / 2);
  const int64_t window_length = integer(node, "win_length", n_fft);
  const int64_t frame = flag(node, "align_to_window") ? window_length : n_fft;
  Sizes sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.push_back(flag(node, "onesided", !is_complex) ? n_fft / 2 + 1 : n_fft);
  sizes.push_back(floor_div(length - frame, hop) + 1);
  const bool return_complex = flag(node, "return_complex", is_complex);
  if (!return_complex) sizes.push_back(2);
  return one(return_complex ? complex_dtype(self.dtype) : to_real_dtype(self.dtype), sizes);
}

// The reverse: [batch, frequencies, frames] complex -> [batch, length]
Types istft(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {2, 3});
  check(c10::isComplexType(self.dtype), node, "expected complex numbers, got " + describe(self));
  const int64_t n_fft = node.integer("n_fft");
  const int64_t hop = integer(node, "hop_length", n_fft / 4);
  Expr length = (self.sizes.back() - 1) * hop + n_fft;
  if (flag(node, "center", true)) length = length - 2 * (n_fft / 2);
  if (has(node, "length")) length = node.size("length");
  Sizes sizes(self.sizes.begin(), self.sizes.end() - 2);
  sizes.push_back(length);
  return one(flag(node, "return_complex") ? self.dtype : to_real_dtype(self.dtype), sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::fft_fft", transform<Form::Complex>},
    {"aten::fft_ifft", transform<Form::Complex>},
    {"aten::fft_rfft", transform<Form::RealIn>},
    {"aten::fft_ihfft", transform<Form::RealIn>},
    {"aten::fft_irfft", transform<Form::RealOut>},
    {"aten::fft_hfft", transform<Form::RealOut>},
    {"aten::fft_fft2", transform_n<Form::Complex>},
    {"aten::fft_ifft2", transform_n<Form::Complex>},
    {"aten::fft_fftn", transform_n<Form::Complex>},
    {"aten::fft_ifftn", transform_n<Form::Complex>},
    {"aten::fft_rfft2", transform_n<Form::RealIn>},
    {"aten::fft_rfftn", transform_n<Form::RealIn>},
    {"aten::fft_ihfft2", transform_n<Form::RealIn>},
    {"aten::fft_ihfftn", transform_n<Form::RealIn>},
    {"aten::fft_irfft2", transform_n<Form::RealOut>},
    {"aten::fft_irfftn", transform_n<Form::RealOut>},
    {"aten::fft_hfft2", transform_n<Form::RealOut>},
    {"aten::fft_hfftn", transform_n<Form::RealOut>},
    {"aten::fft_fftshift", same_as_input},
    {"aten::fft_ifftshift", same_as_input},
    {"aten::_fft_c2c", same_as_input},
    {"aten::_fft_r2c", fft_r2c},
    {"aten::_fft_c2r", fft_c2r},
    {"aten::stft", stft},
    {"aten::istft", istft},
};

}  // namespace

std::span<const ShapeRuleRow> fft_rules() { return kRows; }

}  // namespace transporters::shape_rules
