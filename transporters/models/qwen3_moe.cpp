#include "transporters/models/qwen3_moe.h"

#include <algorithm>

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.vocab_size = 151936;
  defaults.hidden_size = 2048;
  defaults.intermediate_size = 6144;
  defaults.num_layers = 24;
  defaults.num_key_value_heads = 4;
  defaults.max_position_embeddings = 32768;
  auto s = DecoderSettings::from_config(config, defaults);
  s.query_key_value_bias = s.output_bias = config.boolean("attention_bias", false);
  s.query_key_norm = true;
  s.rope = rope_parameters(config);
  if (config.boolean("use_sliding_window", false))
    s.windows.assign(s.windows.size(), config.positive("sliding_window", 4096));
  ExpertSettings experts;
  experts.count =
      config.has("num_local_experts") ? config.positive("num_local_experts") : config.positive("num_experts", 128);
  experts.per_token = config.positive("num_experts_per_tok", 8);
  experts.intermediate_size = config.positive("moe_intermediate_size", 768);
  experts.normalize = config.boolean("norm_topk_prob", false);
  const int64_t step = config.positive("decoder_sparse_step", 1);
  const auto dense = config.reals("mlp_only_layers");
  s.set_experts(config, experts, [&](int64_t layer) {
    return (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), static_cast<double>(layer)) == dense.end();
  });
  return s;
}

}  // namespace

std::vector<ModelClass> qwen3_moe_classes() { return decoder_classes("Qwen3Moe", settings); }

}  // namespace transporters
