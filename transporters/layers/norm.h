// Normalisation over the last axis.
#pragma once

#include "transporters/layers/module.h"

namespace transporters {

class LayerNorm : public Module {
 public:
  LayerNorm(const Weights& weights, int64_t size, double eps);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight;
  at::Tensor bias;

 private:
  int64_t size_;
  double eps_;
};

// x / sqrt(mean(x^2) + eps) * scale, computed in float32 whatever the input's type; the result has the weight's, which
// is the input's but where a sum has grown to float32.
class RMSNorm : public Module {
 public:
  enum class Scale {
    Weight,         // times weight, after the cast back to the input's type
    OnePlusWeight,  // times (1 + weight) in float32, before the cast back: Gemma
  };
  RMSNorm(const Weights& weights, int64_t size, double eps, Scale scale = Scale::Weight);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight;

 private:
  int64_t size_;
  double eps_;
  Scale scale_;
};

}  // namespace transporters
