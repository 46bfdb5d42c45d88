#include "transporters/checkpoint/index.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "transporters/checkpoint/json_text.h"
#include "transporters/error.h"

namespace transporters {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw Error({.stage = "checkpoint", .file = file}, message);
}

// Why a folder holds no weights that can be read.
[[noreturn]] void fail_without_weights(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) fail(folder.string(), "no such folder; give the path of a downloaded checkpoint");
  if (!fs::is_directory(folder, ignored)) fail(folder.string(), "expected a checkpoint folder, got a file");
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (fs::exists(folder / name, ignored))
      fail((folder / name).string(),
           "only pickled weights are here; convert them to safetensors: load the model with transformers and call "
           "model.save_pretrained(folder)");
  std::set<std::string> others;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".safetensors") others.insert(entry.path().filename().string());
  std::string found;
  for (const auto& name : others) found += (found.empty() ? "" : ", ") + name;
  fail(folder.string(), std::string("expected ") + kSingle + " or " + kIndex + ", found neither" +
                            (found.empty() ? "" : " (but " + found + "; rename it or add an index)"));
}

// tensor name -> shard file name
std::map<std::string, std::string> read_weight_map(const std::string& path) {
  const auto file = MappedFile::open(path);
  nlohmann::json index;
  try {
    index = nlohmann::json::parse(file->text());
  } catch (const nlohmann::json::exception& e) {
    fail(path, std::string("is not valid JSON (") + e.what() + "); download it again");
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    fail(path, "expected an object with a weight_map from tensor names to shard files");
  std::map<std::string, std::string> map;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      fail(path, "expected the shard of '" + name + "' to be a file name, got " + describe_json(shard));
    const auto text = shard.get<std::string>();
    if (text.empty() || fs::path(text).has_parent_path())
      fail(path, "the shard of '" + name + "' must be a file beside the index, got '" + text + "'");
    map[name] = text;
  }
  return map;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& folder) {
  const fs::path path(folder);
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  std::error_code ignored;
  if (fs::exists(path / kSingle, ignored)) {
    checkpoint.add_file(SafetensorsFile::open((path / kSingle).string()));
  } else if (fs::exists(path / kIndex, ignored)) {
    const std::string index = (path / kIndex).string();
    const auto weight_map = read_weight_map(index);
    std::map<std::string, size_t> shards;
    for (const auto& [name, shard] : weight_map) {
      if (shards.count(shard)) continue;
      if (!fs::exists(path / shard, ignored))
        fail(index, "shard '" + shard + "' is missing (it holds '" + name + "'); download it into the same folder");
      shards[shard] = checkpoint.files_.size();
      checkpoint.add_file(SafetensorsFile::open((path / shard).string()));
    }
    for (const auto& [name, shard] : weight_map) {
      const auto& file = checkpoint.files_[shards[shard]];
      if (!file.contains(name))
        fail(index, "tensor '" + name + "' should be in shard '" + shard + "' but is not there" +
                        did_you_mean(name, file.names()) +
                        (checkpoint.contains(name) ? " (another shard has it)" : ""));
    }
  } else {
    fail_without_weights(path);
  }
  if (checkpoint.shard_of_.empty())
    fail(checkpoint.files_.empty() ? folder : checkpoint.files_.front().path(),
         "the checkpoint has no tensors; download or save it again");
  return checkpoint;
}

void Checkpoint::add_file(SafetensorsFile file) {
  for (const auto& name : file.names()) {
    const auto [at, added] = shard_of_.emplace(name, files_.size());
    if (!added)
      fail(file.path(), "tensor '" + name + "' is also in '" + files_[at->second].path() +
                            "'; remove one of the shards or save the checkpoint again");
  }
  files_.push_back(std::move(file));
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : shard_of_) names.push_back(name);
  return names;
}

TensorData Checkpoint::get(const std::string& name) const {
  const auto found = shard_of_.find(name);
  if (found == shard_of_.end()) fail(folder_, "no tensor '" + name + "'" + did_you_mean(name, names()));
  return files_[found->second].get(name);
}

}  // namespace transporters
