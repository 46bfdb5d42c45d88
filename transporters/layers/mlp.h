// A projection, an activation and a projection back: the feed-forward part of a transformer layer.
#pragma once

#include <memory>
#include <string>

#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"

namespace transporters {

// `Projection` is Linear or Conv1D.
template <typename Projection>
class MLP : public Module {
 public:
  // `first` and `second` are the projections' names in checkpoints.
  MLP(const Weights& weights, const std::string& first, const std::string& second, int64_t hidden_size,
      int64_t intermediate_size, Activation activation)
      : Module(weights), activation_(activation) {
    first_ = member<Projection>(weights, first, hidden_size, intermediate_size);
    second_ = member<Projection>(weights, second, intermediate_size, hidden_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return second_->forward(activation_(first_->forward(x)));
  }

 private:
  std::shared_ptr<Projection> first_, second_;
  Activation activation_;
};

}  // namespace transporters
