// A tensor's bytes where they already lie (a mapped checkpoint, a torch storage), without libtorch's headers.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace transporters {

using ScalarType = c10::ScalarType;

// Dense or strided view of memory that `owner` keeps alive. Copying a TensorData copies no bytes.
struct TensorData {
  ScalarType dtype = ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements; always set, contiguous or not
  const void* data = nullptr;    // first element; null only for tensors without elements
  std::shared_ptr<const void> owner;
  // Where the bytes lie on disk when they are mapped; lets a writer refer to the file in place of copying.
  std::string file;
  uint64_t file_offset = 0;

  int64_t numel() const;
  uint64_t nbytes() const;  // of a contiguous copy
  bool is_contiguous() const;
  // Same bytes seen the same way: tied weights.
  bool is_same_as(const TensorData& other) const;
};

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes);

}  // namespace transporters
