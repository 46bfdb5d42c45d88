#include "transporters/models/qwen2.h"

#include "transporters/models/decoder.h"

namespace transporters {
namespace {

DecoderSettings settings(const Config& config) {
  DecoderSettings defaults;
  defaults.vocab_size = 151936;
  defaults.intermediate_size = 22016;
  defaults.max_position_embeddings = 32768;
  auto s = DecoderSettings::from_config(config, defaults);
  s.query_key_value_bias = true;
  s.rope = rope_parameters(config);
  s.has_layer_types = true;
  s.windows = qwen_windows(config, s.num_layers);
  return s;
}

}  // namespace

std::vector<std::optional<int64_t>> qwen_windows(const Config& config, int64_t num_layers) {
  std::optional<int64_t> window;
  if (config.boolean("use_sliding_window", false)) window = config.positive("sliding_window", 4096);
  const int64_t first = config.integer("max_window_layers", 28);
  return layer_windows(config, num_layers, window, [&](int64_t layer) { return layer >= first; });
}

std::vector<ModelClass> qwen2_classes() { return decoder_classes("Qwen2", settings); }

}  // namespace transporters
