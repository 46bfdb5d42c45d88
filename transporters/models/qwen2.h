// Qwen2: https://arxiv.org/abs/2407.10671.
#pragma once

#include <optional>
#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "qwen2".
std::vector<ModelClass> qwen2_classes();

// How far back each layer looks, for the Qwen models: with "use_sliding_window", the layers from "max_window_layers" on
// have a window.
std::vector<std::optional<int64_t>> qwen_windows(const Config& config, int64_t num_layers);

}  // namespace transporters
