// The precompiled header of every source that needs libtorch. Not all of torch/nn.h: what its inline functions use is
// instantiated again in every source, 4 s of compile time each.
#pragma once

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
