#include "transporters/graph/tensor_torch.h"

#include "transporters/checkpoint/mapped_file.h"
#include "transporters/error.h"

namespace transporters {

at::Tensor to_tensor(const TensorData& data) {
  const auto options = at::TensorOptions().dtype(data.dtype);
  if (data.data == nullptr) return at::empty_strided(data.sizes, data.strides, options);
  return at::from_blob(const_cast<void*>(data.data), data.sizes, data.strides, [owner = data.owner](void*) {}, options);
}

TensorData to_tensor_data(const at::Tensor& tensor) {
  if (tensor.is_meta()) throw Error("expected a tensor with data, got one on the meta device; load its weights first");
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided)
    throw Error("expected a strided CPU tensor, got " + tensor.toString() + "; move it with .cpu()");
  TensorData data;
  data.dtype = tensor.scalar_type();
  data.sizes = tensor.sizes().vec();
  data.strides = tensor.strides().vec();
  data.data = tensor.numel() == 0 ? nullptr : tensor.const_data_ptr();
  data.owner = std::make_shared<at::Tensor>(tensor);
  if (data.data != nullptr && data.is_contiguous()) {
    if (const auto place = locate_mapped(data.data, data.nbytes())) {
      data.file = place->path;
      data.file_offset = place->offset;
    }
  }
  return data;
}

}  // namespace transporters
