// Values of a graph that depend on nothing but constants: code may branch on them and read numbers from them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <unordered_map>

#include "transporters/graph/graph.h"

namespace transporters {

// Computes such values when they are asked for, through libtorch, and keeps them.
class KnownValues {
 public:
  // Says what a graph input holds.
  void add(const Value* input, at::Tensor tensor) { tensors_.insert_or_assign(input, std::move(tensor)); }

  // The value, or nullopt when it depends on anything unknown, on sizes that are symbols, on chance, or is too large to
  // be computed while tracing.
  std::optional<at::Tensor> find(const Value* value);

 private:
  bool compute(const Node& node);

  std::unordered_map<const Value*, at::Tensor> tensors_;
  std::unordered_map<const Node*, bool> failed_;
};

}  // namespace transporters
