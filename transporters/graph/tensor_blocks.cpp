#include "transporters/graph/tensor_blocks.h"

#include <algorithm>
#include <cstring>

namespace transporters {
namespace {

// Copies rows x columns elements of `Size` bytes and the given strides (in bytes) to a row-major buffer. Tiles keep
// both sides within the cache when the columns are the far-apart ones (a transposed weight).
template <size_t Size>
void gather(char* to, const char* from, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  constexpr int64_t kTile = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, rows);
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const int64_t c1 = std::min(c0 + kTile, columns);
      for (int64_t r = r0; r < r1; ++r) {
        const char* source = from + r * row_stride;
        char* target = to + r * columns * static_cast<int64_t>(Size);
        for (int64_t c = c0; c < c1; ++c) std::memcpy(target + c * Size, source + c * column_stride, Size);
      }
    }
  }
}

void gather(char* to, const char* from, size_t element, int64_t rows, int64_t columns, int64_t row_stride,
            int64_t column_stride) {
  const size_t row_size = static_cast<size_t>(columns) * element;
  if (column_stride == static_cast<int64_t>(element)) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + static_cast<size_t>(r) * row_size, from + r * row_stride, row_size);
    return;
  }
  switch (element) {
    case 1:
      return gather<1>(to, from, rows, columns, row_stride, column_stride);
    case 2:
      return gather<2>(to, from, rows, columns, row_stride, column_stride);
    case 4:
      return gather<4>(to, from, rows, columns, row_stride, column_stride);
    case 8:
      return gather<8>(to, from, rows, columns, row_stride, column_stride);
    default:
      return gather<16>(to, from, rows, columns, row_stride, column_stride);  // complex128, the widest type
  }
}

}  // namespace

void for_each_block(const TensorData& data, size_t block_size, const std::function<void(const void*, size_t)>& f) {
  if (data.numel() == 0) return;
  if (data.is_contiguous()) return f(data.data, data.nbytes());

  const size_t element = c10::elementSize(data.dtype);
  const size_t rank = data.sizes.size();  // at least 1: a scalar is contiguous
  const auto byte_stride = [&](size_t dim) { return data.strides[dim] * static_cast<int64_t>(element); };
  const int64_t columns = data.sizes[rank - 1];
  const int64_t rows = rank > 1 ? data.sizes[rank - 2] : 1;
  const int64_t row_stride = rank > 1 ? byte_stride(rank - 2) : 0;
  const int64_t rows_per_block =
      std::clamp<int64_t>(static_cast<int64_t>(block_size / (static_cast<size_t>(columns) * element)), 1, rows);

  std::vector<char> buffer(static_cast<size_t>(rows_per_block * columns) * element);
  std::vector<int64_t> index(rank > 2 ? rank - 2 : 0);  // over the outer dimensions
  const char* outer = static_cast<const char*>(data.data);
  while (true) {
    for (int64_t r = 0; r < rows; r += rows_per_block) {
      const int64_t count = std::min(rows_per_block, rows - r);
      gather(buffer.data(), outer + r * row_stride, element, count, columns, row_stride, byte_stride(rank - 1));
      f(buffer.data(), static_cast<size_t>(count * columns) * element);
    }
    size_t dim = index.size();
    while (dim-- > 0) {
      outer += byte_stride(dim);
      if (++index[dim] < data.sizes[dim]) break;
      outer -= byte_stride(dim) * data.sizes[dim];
      index[dim] = 0;
    }
    if (dim == static_cast<size_t>(-1)) return;
  }
}

}  // namespace transporters
