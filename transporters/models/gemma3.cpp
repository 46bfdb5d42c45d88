#include "transporters/models/gemma3.h"

#include <cmath>

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

// Sliding layers rotate with a base of their own.
RopeParameters sliding_rope(const Config& config) {
  if (config.is_object("rope_parameters") && config.object("rope_parameters").is_object("sliding_attention"))
    return rope_parameters(config, 10000.0, "sliding_attention");
  RopeParameters rope;
  rope.theta = config.positive_real("rope_local_base_freq", 10000.0);
  return rope;
}

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.vocab_size = 262208;
  defaults.hidden_size = 2304;
  defaults.intermediate_size = 9216;
  defaults.num_layers = 26;
  defaults.num_heads = 8;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 256;
  defaults.max_position_embeddings = 131072;
  auto s = DecoderSettings::from_config(config, defaults);
  if (config.boolean("use_bidirectional_attention", false))
    config.fail("use_bidirectional_attention", "is true, which is not supported");
  s.query_key_value_bias = s.output_bias = config.boolean("attention_bias", false);
  s.query_key_norm = true;
  s.sandwich_norms = true;
  s.norm_scale = RMSNorm::Scale::OnePlusWeight;
  s.activation_key = "hidden_activation";
  s.activation = "gelu_pytorch_tanh";
  s.embedding_scale = std::sqrt(static_cast<double>(s.hidden_size));
  s.attention_scale = 1.0 / std::sqrt(static_cast<double>(config.positive("query_pre_attn_scalar", 256)));
  s.logit_softcap = config.real_or_none("final_logit_softcapping");
  if (s.logit_softcap) config.positive_real("final_logit_softcapping", 0.0);
  s.rope = rope_parameters(config, 1000000.0);
  s.sliding_rope = sliding_rope(config);
  std::optional<int64_t> window;
  if (!config.is_null("sliding_window")) window = config.positive("sliding_window", 4096);
  const int64_t pattern = config.positive("sliding_window_pattern", 6);
  s.has_layer_types = true;
  s.windows = layer_windows(config, s.num_layers, window, [&](int64_t layer) { return (layer + 1) % pattern != 0; });
  return s;
}

}  // namespace

std::vector<ModelClass> gemma3_text_classes() {
  return decoder_classes("Gemma3Text", settings, /*ties_by_default=*/true, "Gemma3",
                         {Task::Base, Task::CausalLM, Task::SequenceClassification});
}

}  // namespace transporters
