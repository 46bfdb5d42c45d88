// Qwen3 with a mixture of experts. https://arxiv.org/abs/2505.09388
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> qwen3_moe_classes();

}  // namespace transporters
