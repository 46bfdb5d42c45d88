#include "transporters/models/experts.h"

#include <ATen/ATen.h>

namespace transporters {

class MixtureOfExperts::Expert : public Module {
 public:
  Expert(const Weights& weights, int64_t hidden_size, const ExpertSettings& settings, Activation activation)
      : Module(weights), activation_(activation) {
    gate_ = member<Linear>(weights, settings.gate, hidden_size, settings.intermediate_size, /*bias=*/false);
    up_ = member<Linear>(weights, settings.up, hidden_size, settings.intermediate_size, /*bias=*/false);
    down_ = member<Linear>(weights, settings.down, settings.intermediate_size, hidden_size, /*bias=*/false);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return down_->forward(activation_(gate_->forward(x)) * up_->forward(x));
  }

 private:
  std::shared_ptr<Linear> gate_, up_, down_;
  Activation activation_;
};

MixtureOfExperts::MixtureOfExperts(const Weights& weights, int64_t hidden_size, const ExpertSettings& settings,
                                   Activation activation)
    : Module(weights), settings_(settings) {
  gate = member<Linear>(weights, "gate", hidden_size, settings.count, /*bias=*/false);
  experts = members<Expert>(weights, "experts", settings.count, [&](const Weights& w, int64_t) {
    return std::make_shared<Expert>(w, hidden_size, settings, activation);
  });
}

at::Tensor MixtureOfExperts::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  const auto tokens = x.flatten(0, 1);
  const auto scores = at::softmax(gate->forward(tokens), -1, at::kFloat);
  auto [weights, chosen] = at::topk(scores, settings_.per_token, -1);
  if (settings_.normalize) weights = weights / weights.sum(-1, /*keepdim=*/true);
  if (!settings_.weights_in_float32) weights = weights.to(x.scalar_type());
  auto result = at::zeros_like(tokens);
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto is_chosen = chosen.eq(static_cast<int64_t>(i));
    // An expert is chosen once for a token, if at all.
    const auto rows = is_chosen.any(-1).nonzero().squeeze(1);
    const auto weight = (weights * is_chosen).sum(-1, /*keepdim=*/true).index_select(0, rows);
    const auto output = experts[i]->forward(tokens.index_select(0, rows)) * weight;
    result = result.index_add(0, rows, output.to(result.scalar_type()));
  }
  return result.view_symint(x.sym_sizes());
}

}  // namespace transporters
