// BERT: https://arxiv.org/abs/1810.04805.
#pragma once

#include <memory>
#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

// The classes of model_type "bert".
std::vector<ModelClass> bert_classes();

}  // namespace transporters
