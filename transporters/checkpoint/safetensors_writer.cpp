#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "transporters/checkpoint/safetensors.h"
#include "transporters/error.h"
#include "transporters/export/atomic_file.h"

namespace transporters {
void write_safetensors(const std::string& path, const std::vector<NamedTensorData>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const auto fail = [&](const std::string& message) { throw Error({.stage = "checkpoint", .file = path}, message); };
  // Wide types first, so that every tensor is aligned for its type.
  std::vector<const NamedTensorData*> order;
  std::set<std::string> names;
  for (const auto& tensor : tensors) {
    if (tensor.first == "__metadata__") fail("a tensor can't be named __metadata__, the format reserves it");
    if (!names.insert(tensor.first).second) fail("tensor '" + tensor.first + "' is given twice");
    if (safetensors_dtype(tensor.second.dtype).empty())
      fail("tensor '" + tensor.first + "' has type " + c10::toString(tensor.second.dtype) +
           ", which safetensors can't hold; convert it first");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto key = [](const auto* t) { return -static_cast<int64_t>(c10::elementSize(t->second.dtype)); };
    return key(a) != key(b) ? key(a) < key(b) : a->first < b->first;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto* tensor : order) {
    const uint64_t nbytes = tensor->second.nbytes();
    header[tensor->first] = {{"dtype", safetensors_dtype(tensor->second.dtype)},
                             {"shape", tensor->second.sizes},
                             {"data_offsets", {offset, offset + nbytes}}};
    offset += nbytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& e) {
    fail(std::string("a name is not valid UTF-8 (") + e.what() + ")");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const std::filesystem::path target(path);
  AtomicFiles files(target.has_parent_path() ? target.parent_path() : ".");
  OutputFile& file = files.create(target.filename().string());
  std::array<unsigned char, 8> length{};
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  file.write(length.data(), length.size());
  file.write(text);
  for (const auto* tensor : order) file.write(tensor->second);
  files.commit();
}

}  // namespace transporters
