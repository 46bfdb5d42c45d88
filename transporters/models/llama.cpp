#include "transporters/models/llama.h"

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  auto s = DecoderSettings::from_config(config, {});
  if (s.hidden_size % s.num_heads != 0)
    config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(s.num_heads) +
                                   "), got " + std::to_string(s.hidden_size));
  s.query_key_value_bias = s.output_bias = config.boolean("attention_bias", false);
  s.mlp_bias = config.boolean("mlp_bias", false);
  s.rope = rope_parameters(config);
  return s;
}

}  // namespace

std::vector<ModelClass> llama_classes() { return decoder_classes("Llama", settings); }

}  // namespace transporters
