// Qwen2-VL, a model of text, images and videos of any size: https://arxiv.org/abs/2409.12191.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> qwen2_vl_classes();
// Its part that reads text.
std::vector<ModelClass> qwen2_vl_text_classes();

}  // namespace transporters
