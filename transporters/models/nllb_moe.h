// NLLB-MoE: an encoder-decoder for translation, some of whose layers choose among experts.
// https://arxiv.org/abs/2207.04672
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> nllb_moe_classes();

}  // namespace transporters
