// Whisper: from the spectrogram of speech to text. https://arxiv.org/abs/2212.04356
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

std::vector<ModelClass> whisper_classes();

}  // namespace transporters
