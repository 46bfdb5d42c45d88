#include "transporters/layers/norm.h"

namespace transporters {

LayerNorm::LayerNorm(const Weights& weights, int64_t size, double eps) : Module(weights), size_(size), eps_(eps) {
  weight = parameter(weights, "weight", {size});
  bias = parameter(weights, "bias", {size});
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  return at::layer_norm(x, {size_}, weight, bias, eps_);
}

RMSNorm::RMSNorm(const Weights& weights, int64_t size, double eps, Scale scale)
    : Module(weights), size_(size), eps_(eps), scale_(scale) {
  weight = parameter(weights, "weight", {size});
}

at::Tensor RMSNorm::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  if (scale_ == Scale::OnePlusWeight)
    return at::rms_norm(x.to(at::kFloat), {size_}, weight.to(at::kFloat) + 1.0, eps_).to(x.scalar_type());
  // In float32 both orders of scaling and casting are one, and the op stays whole.
  const auto dtype = weight.scalar_type();
  if (dtype == at::kFloat) return at::rms_norm(x, {size_}, weight, eps_);
  return weight * at::rms_norm(x.to(at::kFloat), {size_}, std::nullopt, eps_).to(dtype);
}

}  // namespace transporters
