// What a model is called with and what it returns: named tensors, and a cache that nests more of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transporters/graph/tree_spec.h"
#include "transporters/layers/cache.h"

namespace transporters {

// Tensors by name, such as a mask for each kind of attention, or a model's output that is another's input.
struct TensorDict {
  std::vector<NamedTensor> entries;
  // The dotted path of a transformers ModelOutput; "" for a dictionary; kTuple for a tuple, whose entries are "0", "1",
  // ...
  std::string type = {};
  // Undefined when there is none.
  at::Tensor find(const std::string& name) const;
};

inline constexpr const char* kTuple = "builtins.tuple";

using ModelValue = std::variant<at::Tensor, Cache, TensorDict>;

// Named values in order. Leaves are all tensors, those of a cache too, by dotted path: "input_ids",
// "cache.layers.0.keys", "attention_mask.full_attention".
class NamedValues {
 public:
  // Null when there is none of that name.
  const ModelValue* find(const std::string& name) const;
  // Undefined when there is none; throws Error when it is no tensor.
  at::Tensor tensor(const std::string& name) const;
  // Null when there is none, or it is no dictionary.
  const TensorDict* dict(const std::string& name) const;
  // The value named "cache"; null without one.
  const Cache* cache() const;
  // Adds or replaces. An undefined tensor adds nothing.
  void set(const std::string& name, at::Tensor tensor);
  void set(const std::string& name, Cache cache) { replace(name, std::move(cache)); }
  void set(const std::string& name, TensorDict dict) { replace(name, std::move(dict)); }

  const std::vector<std::pair<std::string, ModelValue>>& fields() const { return fields_; }
  std::vector<std::string> names() const;
  std::vector<NamedTensor> leaves() const;
  // Replaces all leaves, in their order.
  void set_leaves(std::span<const at::Tensor> leaves);

 protected:
  // One spec for each field.
  std::vector<TreeSpec> field_specs() const;
  void replace(const std::string& name, ModelValue value);

  std::vector<std::pair<std::string, ModelValue>> fields_;
};

// Keyword arguments of a transformers model's forward.
class ModelInputs : public NamedValues {
 public:
  ModelInputs() = default;
  ModelInputs(std::initializer_list<std::pair<std::string, at::Tensor>> tensors);
  // The same values in memory of their own, for what a run writes to.
  ModelInputs copied() const;
  // Structure of (args, kwargs): ((), {name: ...}).
  TreeSpec spec() const;

  // Overrides the config's use_cache: whether the output has a cache.
  std::optional<bool> use_cache;
  // Logits of only the last so many tokens; 0 for all.
  int64_t logits_to_keep = 0;
};

// A transformers ModelOutput: only fields with a value, in the class's order.
class ModelOutput : public NamedValues {
 public:
  // `type` is the class's dotted path; a bare name stands for one of transformers.modeling_outputs.
  explicit ModelOutput(const std::string& type);
  // A tensor that is returned as it is, called "output".
  static ModelOutput of_tensor(at::Tensor tensor);
  // "" for a tensor as it is.
  const std::string& type() const { return type_; }
  TreeSpec spec() const;

 private:
  std::string type_;
};

}  // namespace transporters
