// Gemma 3, the text model: https://arxiv.org/abs/2503.19786.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "gemma3_text".
std::vector<ModelClass> gemma3_text_classes();

}  // namespace transporters
