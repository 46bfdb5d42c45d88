// The safetensors format: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
// Source of the format: https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transporters/checkpoint/mapped_file.h"
#include "transporters/graph/tensor_data.h"

namespace transporters {

// A safetensors file mapped into memory. Tensors refer to the mapping and keep it alive.
class SafetensorsFile {
 public:
  // Reads the header and checks all of it, so that later reads can't fail. Throws Error naming the file, what was
  // expected, what is there and what to do about it.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return mapping_->path(); }
  // Size of the file in bytes.
  size_t size() const { return mapping_->size(); }
  // In the order of the header.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  // The tensor; throws Error with near names. Bytes that are not aligned for their type are copied to memory that is.
  TensorData get(const std::string& name) const;
  // "__metadata__": free-form strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsFile() = default;

  std::shared_ptr<const MappedFile> mapping_;
  std::vector<std::string> names_;
  std::map<std::string, TensorData> tensors_;  // `owner` is left empty until get
  std::map<std::string, std::string> metadata_;
};

using NamedTensorData = std::pair<std::string, TensorData>;

// Writes tensors to a file that appears whole or not at all. Bytes are streamed; the order in the file (and the file)
// depends only on names, types, sizes and contents. Strided tensors are written contiguously.
// Throws Error for a type the format lacks, a name given twice, or a failing disk.
void write_safetensors(const std::string& path, const std::vector<NamedTensorData>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The format's name of a type ("F32"), or "" when it has none; and back, or nullopt.
std::string safetensors_dtype(ScalarType dtype);
std::optional<ScalarType> dtype_from_safetensors(const std::string& name);

}  // namespace transporters
