// Vision Transformer: https://arxiv.org/abs/2010.11929.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "vit".
std::vector<ModelClass> vit_classes();

}  // namespace transporters
