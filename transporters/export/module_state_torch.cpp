#include <algorithm>

#include "transporters/export/module_call.h"

namespace transporters {

std::vector<TraceState> module_state(const torch::nn::Module& module) {
  std::vector<TraceState> state;
  for (const auto& entry : module.named_parameters())
    if (entry.value().defined()) state.push_back({.name = entry.key(), .tensor = entry.value()});
  for (const auto& entry : module.named_buffers())
    if (entry.value().defined())
      state.push_back({.name = entry.key(), .tensor = entry.value(), .kind = InputKind::Buffer});
  return state;
}

bool any_is_training(const torch::nn::Module& module) {
  const auto modules = module.modules(/*include_self=*/false);
  return module.is_training() ||
         std::any_of(modules.begin(), modules.end(), [](const auto& inner) { return inner->is_training(); });
}

}  // namespace transporters
