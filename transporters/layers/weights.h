// Where modules take their tensors from: a checkpoint, by the names that transformers gives its parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transporters/checkpoint/index.h"

namespace transporters {

// Hands out a checkpoint's tensors for one model and keeps account of them. Nothing is copied unless a type must be
// converted; nothing is ever made up. Problems are collected, so that one error can name them all.
class WeightStore {
 public:
  // How the model's names relate to those in the file.
  struct Naming {
    // Name of the base model's member in a model with a head ("model", "bert").
    std::string base_prefix;
    // Whether the model being built is the base model itself.
    bool is_base = false;
    // Members or parameters of the base model that a checkpoint may hold without the model using them ("pooler").
    std::vector<std::string> optional;
    // Ends of names that are never parameters today, though old checkpoints hold them ("rotary_emb.inv_freq").
    std::vector<std::string> obsolete;
    // Parts of names that transformers has renamed since: old and new, applied in order. With a ^ before it the old one
    // counts at the beginning of a name only.
    std::vector<std::pair<std::string, std::string>> renames;
    // Members whose parameters are float32 in models of float16, as their values would overflow.
    std::vector<std::string> kept_float32 = {};
  };

  // `dtype`: floating-point tensors are converted to it; nullopt keeps each tensor's own. `checkpoint` must outlive the
  // store.
  WeightStore(const Checkpoint& checkpoint, Naming naming, std::optional<at::ScalarType> dtype);

  // Makes two parameters one tensor, whichever of them the file has. When it has both with different values they stay
  // apart, as the config is then wrong about them. Call it before taking either.
  void tie(const std::string& name, const std::string& other);

  // The parameter of that name, which must have exactly these sizes. When it is missing or differs the problem is noted
  // and an uninitialised tensor returned, which finish() never lets out.
  at::Tensor take(const std::string& name, at::IntArrayRef sizes);
  bool contains(const std::string& name) const { return find(name).has_value(); }

  // Throws Error naming every missing tensor (with near names), every one of another size, and every tensor of the
  // base model that nothing took. Tensors outside the base model (another head's) are returned, sorted.
  std::vector<std::string> finish() const;

 private:
  // A name of the file in today's spelling.
  std::string modern_name(std::string name) const;
  // The model's name as the file has it (in today's spelling); nullopt when the file has none.
  std::optional<std::string> find(const std::string& name) const;
  bool is_obsolete(const std::string& name) const;
  // What the parameter is converted to; nullopt keeps the file's type.
  std::optional<at::ScalarType> dtype_of(const std::string& name) const;

  const Checkpoint& checkpoint_;
  Naming naming_;
  std::optional<at::ScalarType> dtype_;
  std::string file_prefix_;                        // of base model tensors in the file: "model." or ""
  std::map<std::string, std::string> file_names_;  // with today's spelling -> in the file
  std::map<std::string, std::string> tied_;        // name -> the one it shares its tensor with
  std::map<std::string, at::Tensor> taken_;        // by today's name in the file
  std::vector<std::string> missing_;
  std::vector<std::string> mismatched_;
};

// A store seen from one module: names are relative to the module's path.
class Weights {
 public:
  explicit Weights(WeightStore& store, std::string path = "") : store_(&store), path_(std::move(path)) {}

  // For the member of that name.
  Weights at(const std::string& name) const { return Weights(*store_, full(name)); }
  Weights at(int64_t index) const { return at(std::to_string(index)); }
  at::Tensor take(const std::string& name, at::IntArrayRef sizes) const { return store_->take(full(name), sizes); }
  bool contains(const std::string& name) const { return store_->contains(full(name)); }
  const std::string& path() const { return path_; }

 private:
  std::string full(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }

  WeightStore* store_;
  std::string path_;
};

}  // namespace transporters
