// Qwen3: https://arxiv.org/abs/2505.09388.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "qwen3".
std::vector<ModelClass> qwen3_classes();

}  // namespace transporters
