// TensorData <-> at::Tensor, without copying bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include "transporters/graph/tensor_data.h"

namespace transporters {

// A CPU tensor over the same bytes, keeping their owner alive. Writing through it writes to the bytes: read-only
// mappings must not be mutated.
at::Tensor to_tensor(const TensorData& data);
// The bytes of a CPU tensor, keeping its storage alive; `file` is set when a mapped checkpoint holds them. Throws Error
// for meta tensors and for other devices and layouts.
TensorData to_tensor_data(const at::Tensor& tensor);

}  // namespace transporters
