// Mamba, a state space model: https://arxiv.org/abs/2312.00752.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> mamba_classes();

}  // namespace transporters
