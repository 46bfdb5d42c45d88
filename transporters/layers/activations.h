// Activation functions by the names transformers' configs use.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "transporters/checkpoint/config.h"

namespace transporters {

using Activation = at::Tensor (*)(const at::Tensor&);

// The function that `config`'s `key` names ("hidden_act": "gelu"). Throws Error with near names for an unknown one.
Activation activation(const Config& config, const std::string& key, const std::string& missing);

}  // namespace transporters
