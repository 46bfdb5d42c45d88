// A checkpoint folder's weights: one safetensors file, or shards with an index.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "transporters/checkpoint/safetensors.h"

namespace transporters {

// All tensors of a checkpoint folder by name, whichever file they lie in.
class Checkpoint {
 public:
  // `folder` holds model.safetensors, or model.safetensors.index.json and its shards. Every header is read and checked.
  // Throws Error when there are no safetensors (saying what to do about a pytorch_model.bin), a shard is missing, the
  // index and the shards disagree, or there are no tensors at all.
  static Checkpoint open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  // Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return shard_of_.count(name) != 0; }
  // Throws Error with near names when there is none.
  TensorData get(const std::string& name) const;
  const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  void add_file(SafetensorsFile file);

  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> shard_of_;
};

}  // namespace transporters
