#include "transporters/layers/rope.h"

#include <algorithm>
#include <cmath>

#include "transporters/registry/method.h"

namespace transporters {
namespace {

at::Tensor tensor_of(const std::vector<double>& values) { return at::tensor(values, at::kDouble).to(at::kFloat); }

double yarn_scale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

// Frequencies interpolate where wavelengths exceed the trained length, extrapolate where they are short, and mix
// linearly in between.
at::Tensor yarn_frequencies(const RopeParameters& p, const at::Tensor& exponents, int64_t dim) {
  const auto correction = [&](double rotations) {
    const auto length = static_cast<double>(p.original_max_position_embeddings);
    return static_cast<double>(dim) * std::log(length / (rotations * 2.0 * M_PI)) / (2.0 * std::log(p.theta));
  };
  double low = correction(p.beta_fast);
  double high = correction(p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  const auto ramp = at::clamp((at::arange(dim / 2, at::kFloat) - low) / (high - low), 0, 1);
  const auto extrapolated = 1.0 / at::pow(p.theta, exponents);
  const auto interpolated = 1.0 / (p.factor * at::pow(p.theta, exponents));
  const auto keep = 1.0 - ramp;
  return interpolated * (1.0 - keep) + extrapolated * keep;
}

at::Tensor llama3_frequencies(const RopeParameters& p, const at::Tensor& inv_freq) {
  const auto length = static_cast<double>(p.original_max_position_embeddings);
  const double low_wavelength = length / p.low_freq_factor;
  const double high_wavelength = length / p.high_freq_factor;
  const auto wavelength = 2.0 * M_PI / inv_freq;
  const auto scaled = at::where(wavelength.gt(low_wavelength), inv_freq / p.factor, inv_freq);
  const auto smooth = (length / wavelength - p.low_freq_factor) / (p.high_freq_factor - p.low_freq_factor);
  const auto smoothed = (1.0 - smooth) * scaled / p.factor + smooth * scaled;
  const auto medium = wavelength.ge(high_wavelength).logical_and(wavelength.le(low_wavelength));
  return at::where(medium, smoothed, scaled);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const Weights& weights, const Config& config, const RopeParameters& parameters,
                                 int64_t head_dim, int64_t max_position_embeddings)
    : Module(weights), parameters_(parameters), dim_(head_dim), max_position_embeddings_(max_position_embeddings) {
  const auto& p = parameters_;
  if (dim_ % 2 != 0)
    config.fail("head_dim", "expected an even number for rotary embeddings, got " + std::to_string(dim_));
  exponents_ = at::arange(0, dim_, 2, at::kFloat) / static_cast<double>(dim_);
  inv_freq_ = 1.0 / at::pow(p.theta, exponents_);
  if (p.type == "linear") {
    inv_freq_ = inv_freq_ / p.factor;
  } else if (p.type == "dynamic") {
    if (dim_ <= 2)
      config.fail("head_dim", "expected more than 2 for dynamic rotary embeddings, got " + std::to_string(dim_));
  } else if (p.type == "yarn") {
    inv_freq_ = yarn_frequencies(p, exponents_, dim_);
    scaling_ = p.attention_factor ? *p.attention_factor
               : p.mscale != 0.0 && p.mscale_all_dim != 0.0
                   ? yarn_scale(p.factor, p.mscale) / yarn_scale(p.factor, p.mscale_all_dim)
                   : yarn_scale(p.factor, 1.0);
  } else if (p.type == "longrope") {
    for (const auto& [key, factors] : {std::pair{"short_factor", &p.short_factor}, {"long_factor", &p.long_factor}})
      if (static_cast<int64_t>(factors->size()) != dim_ / 2)
        config.fail(key, "expected " + std::to_string(dim_ / 2) + " numbers (half of the rotary size), got " +
                             std::to_string(factors->size()));
    const auto powers = at::pow(p.theta, exponents_);
    inv_freq_ = 1.0 / (tensor_of(p.short_factor) * powers);
    long_inv_freq_ = 1.0 / (tensor_of(p.long_factor) * powers);
    const auto length = static_cast<double>(p.original_max_position_embeddings);
    scaling_ = p.attention_factor ? *p.attention_factor
               : p.factor <= 1.0  ? 1.0
                                  : std::sqrt(1.0 + std::log(p.factor) / std::log(length));
  } else if (p.type == "llama3") {
    inv_freq_ = llama3_frequencies(p, inv_freq_);
  }
  if (!p.mrope_section.empty()) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < p.mrope_section.size(); ++i)
      axes.insert(axes.end(), static_cast<size_t>(std::max<int64_t>(p.mrope_section[i], 0)),
                  static_cast<int64_t>(i % 3));
    if (static_cast<int64_t>(axes.size()) != dim_ / 2)
      config.fail("mrope_section", "expected numbers whose sum is " + std::to_string(dim_ / 2) +
                                       " (half of the rotary size), got " + std::to_string(axes.size()));
    axes_ = at::tensor(axes, at::kLong);
    register_buffer("axes", axes_);
  }
  if (p.type == "dynamic") {
    register_buffer("exponents", exponents_);
  } else {
    register_buffer("inv_freq", inv_freq_);
  }
  if (long_inv_freq_.defined()) register_buffer("long_inv_freq", long_inv_freq_);
}

at::Tensor RotaryEmbedding::frequencies(const at::Tensor& position_ids) const {
  if (parameters_.type == "dynamic") {
    // At or below the trained length the base is multiplied by exactly 1.
    const auto length = at::clamp_min(position_ids.max() + 1, max_position_embeddings_);
    const double factor = parameters_.factor;
    const auto stretched = length * factor / static_cast<double>(max_position_embeddings_) - (factor - 1.0);
    const auto dim = static_cast<double>(dim_);
    const auto base = parameters_.theta * at::pow(stretched, dim / (dim - 2.0));
    return 1.0 / at::pow(base, exponents_);
  }
  if (parameters_.type == "longrope") {
    const auto length = position_ids.max() + 1;
    return at::where(length.gt(parameters_.original_max_position_embeddings), long_inv_freq_, inv_freq_);
  }
  return inv_freq_;
}

std::pair<at::Tensor, at::Tensor> RotaryEmbedding::forward(const at::Tensor& position_ids, at::ScalarType dtype) const {
  const ModuleScope scope(path());
  const auto places =
      position_ids.dim() == 3 ? position_ids.index_select(0, axes_).permute({1, 2, 0}) : position_ids.unsqueeze(-1);
  const auto angles = places.to(at::kFloat) * frequencies(position_ids);
  const auto both = at::cat({angles, angles}, -1);
  auto cos = both.cos();
  auto sin = both.sin();
  if (scaling_ != 1.0) {
    cos = cos * scaling_;
    sin = sin * scaling_;
  }
  return {cos.to(dtype), sin.to(dtype)};
}

namespace {

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t head_dim = x.sym_size(3).expect_int();
  const int64_t dim = cos.sym_size(2).expect_int();
  const auto rotating = dim == head_dim ? x : x.narrow(3, 0, dim);
  const auto first = rotating.narrow(3, 0, dim / 2);
  const auto second = rotating.narrow(3, dim / 2, dim / 2);
  const auto turned = at::cat({second.neg(), first}, -1);
  const auto result = rotating * cos.unsqueeze(1) + turned * sin.unsqueeze(1);
  return dim == head_dim ? result : at::cat({result, x.narrow(3, dim, head_dim - dim)}, -1);
}

const Method<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)> apply("layers.rope.apply_rotary",
                                                                                        rotate);

}  // namespace

at::Tensor apply_rotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return apply(x, cos, sin);
}

}  // namespace transporters
