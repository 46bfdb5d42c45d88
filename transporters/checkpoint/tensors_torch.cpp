#include "transporters/checkpoint/safetensors.h"
#include "transporters/checkpoint/tensors.h"
#include "transporters/graph/tensor_torch.h"

namespace transporters {

void save_tensors(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::filesystem::path& file) {
  std::vector<NamedTensorData> data;
  data.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) data.emplace_back(name, to_tensor_data(tensor));
  write_safetensors(file.string(), data);
}

std::vector<std::pair<std::string, at::Tensor>> load_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path.string());
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, to_tensor(file.get(name)));
  return tensors;
}

}  // namespace transporters
