#include "transporters/models/qwen3.h"

#include "transporters/models/decoder.h"
#include "transporters/models/qwen2.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.vocab_size = 151936;
  defaults.intermediate_size = 22016;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 32768;
  auto s = DecoderSettings::from_config(config, defaults);
  s.query_key_value_bias = s.output_bias = config.boolean("attention_bias", false);
  s.query_key_norm = true;
  s.rope = rope_parameters(config);
  s.has_layer_types = true;
  s.windows = qwen_windows(config, s.num_layers);
  return s;
}

}  // namespace

std::vector<ModelClass> qwen3_classes() { return decoder_classes("Qwen3", settings); }

}  // namespace transporters
