// Llama: https://arxiv.org/abs/2302.13971.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "llama".
std::vector<ModelClass> llama_classes();

}  // namespace transporters
