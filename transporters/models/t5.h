// T5: an encoder-decoder with relative positions. https://arxiv.org/abs/1910.10683
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> t5_classes();

}  // namespace transporters
