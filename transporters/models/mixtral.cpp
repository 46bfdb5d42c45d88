#include "transporters/models/mixtral.h"

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.intermediate_size = 14336;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.rms_norm_eps = 1e-5;
  auto s = DecoderSettings::from_config(config, defaults);
  s.rope = rope_parameters(config, 1000000.0);
  if (config.has("sliding_window")) s.windows.assign(s.windows.size(), config.positive("sliding_window"));
  ExpertSettings experts;
  experts.block = "block_sparse_moe";
  experts.gate = "w1";
  experts.up = "w3";
  experts.down = "w2";
  experts.count = config.positive("num_local_experts", 8);
  experts.per_token = config.positive("num_experts_per_tok", 2);
  experts.intermediate_size = s.intermediate_size;
  experts.weights_in_float32 = true;
  s.set_experts(config, experts, [](int64_t) { return true; });
  return s;
}

}  // namespace

std::vector<ModelClass> mixtral_classes() {
  return decoder_classes("Mixtral", settings, /*ties_by_default=*/false, "",
                         {Task::Base, Task::CausalLM, Task::SequenceClassification, Task::TokenClassification});
}

}  // namespace transporters
