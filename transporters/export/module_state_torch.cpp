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

}  // namespace transporters
