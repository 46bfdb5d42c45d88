// Rotary position embedding settings of a config, in any of the spellings that transformers has used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transporters/checkpoint/config.h"

namespace transporters {

struct RopeParameters {
  std::string type = "default";  // default, linear, dynamic, yarn, longrope, llama3
  double theta = 10000.0;
  double partial_rotary_factor = 1.0;
  // Frequencies that rotate by time, height and width, in turns; empty where positions are one number.
  std::vector<int64_t> mrope_section;
  // The kinds that scale:
  double factor = 1.0;
  std::optional<double> attention_factor;
  int64_t original_max_position_embeddings = 0;
  // yarn
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double mscale = 0.0;
  double mscale_all_dim = 0.0;
  bool truncate = true;
  // longrope: one number per rotary frequency
  std::vector<double> short_factor;
  std::vector<double> long_factor;
  // llama3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
};

// Reads "rope_parameters" (transformers 5; one object, or one for each layer type), or "rope_theta" with
// "rope_scaling" (transformers 4). `layer_type` picks the object of a layer type ("full_attention") when they are
// nested. Throws Error for an unknown kind or a value that makes no sense.
RopeParameters rope_parameters(const Config& config, double default_theta = 10000.0,
                               const std::string& layer_type = "full_attention");

}  // namespace transporters
