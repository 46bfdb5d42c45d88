// Mistral: https://arxiv.org/abs/2310.06825.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "mistral".
std::vector<ModelClass> mistral_classes();

}  // namespace transporters
