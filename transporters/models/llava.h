// LLaVA, a model of text with an image tower before it: https://arxiv.org/abs/2310.03744.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> llava_classes();

}  // namespace transporters
