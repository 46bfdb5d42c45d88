// RoBERTa: https://arxiv.org/abs/1907.11692.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "roberta".
std::vector<ModelClass> roberta_classes();

}  // namespace transporters
