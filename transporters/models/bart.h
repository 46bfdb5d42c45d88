// BART: an encoder-decoder with learned positions. https://arxiv.org/abs/1910.13461
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> bart_classes();

}  // namespace transporters
