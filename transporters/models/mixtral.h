// Mixtral: Mistral with a mixture of experts. https://arxiv.org/abs/2401.04088
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> mixtral_classes();

}  // namespace transporters
