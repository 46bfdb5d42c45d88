// LLaVA, a model of text with an image tower before it: https://arxiv.org/abs/2310.03744.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// Tokens that an image takes in the prompt: its patches, and with the strategy "full" one of the whole.
int64_t llava_image_tokens(const Config& config);

std::vector<ModelClass> llava_classes();

}  // namespace transporters
