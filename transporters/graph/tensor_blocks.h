// Streaming a strided tensor's elements in row-major order, without a contiguous copy of the whole.
#pragma once

#include <cstddef>
#include <functional>

#include "transporters/graph/tensor_data.h"

namespace transporters {

// Calls f(bytes, size) with consecutive pieces of the row-major elements. A contiguous tensor is one piece, straight
// from its memory; others are gathered in a buffer of about `block_size` bytes (at least one row of the last
// dimension).
void for_each_block(const TensorData& data, size_t block_size, const std::function<void(const void*, size_t)>& f);

}  // namespace transporters
