// A mixture of experts in place of an MLP: a router sends each token to a few of many gated MLPs.
#pragma once

#include <string>
#include <vector>

#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"

namespace transporters {

struct ExpertSettings {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate_size = 0;
  // The chosen experts' weights add up to 1.
  bool normalize = true;
  // The weights stay float32, whatever the type of the model.
  bool weights_in_float32 = false;
  // Names in checkpoints: of the block in its layer, and of an expert's projections.
  std::string block = "mlp";
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};

class MixtureOfExperts : public Module {
 public:
  MixtureOfExperts(const Weights& weights, int64_t hidden_size, const ExpertSettings& settings, Activation activation);
  // [batch, sequence, hidden]. Each expert computes the tokens that were sent to it, in the graph too.
  at::Tensor forward(const at::Tensor& x) const;

 private:
  class Expert;

  std::shared_ptr<Linear> gate;
  std::vector<std::shared_ptr<Expert>> experts;
  ExpertSettings settings_;
};

}  // namespace transporters
