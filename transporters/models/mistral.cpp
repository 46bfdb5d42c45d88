#include "transporters/models/mistral.h"

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.intermediate_size = 14336;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  auto s = DecoderSettings::from_config(config, defaults);
  s.rope = rope_parameters(config);
  // "sliding_window": null switches it off; configs without the key have the class's default.
  if (!config.is_null("sliding_window")) s.windows.assign(s.windows.size(), config.positive("sliding_window", 4096));
  return s;
}

}  // namespace

std::vector<ModelClass> mistral_classes() { return decoder_classes("Mistral", settings); }

}  // namespace transporters
