#include "transporters/graph/tensor_data.h"

#include <numeric>

namespace transporters {

int64_t TensorData::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

uint64_t TensorData::nbytes() const { return static_cast<uint64_t>(numel()) * c10::elementSize(dtype); }

bool TensorData::is_contiguous() const {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool TensorData::is_same_as(const TensorData& other) const {
  return data != nullptr && data == other.data && dtype == other.dtype && sizes == other.sizes &&
         strides == other.strides;
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i] > 0 ? sizes[i] : 1;
  }
  return strides;
}

}  // namespace transporters
