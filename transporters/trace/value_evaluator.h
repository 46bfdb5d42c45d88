// Values of a graph while it is traced, computed when they are asked for: from constants alone, or from the user's
// sample.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "transporters/graph/graph.h"

namespace transporters {

// Runs the nodes that a value comes from through libtorch and keeps their results.
class ValueEvaluator {
 public:
  // Says what a graph input holds.
  void add(const Value* input, at::Tensor tensor) { values_.insert_or_assign(input, c10::IValue(std::move(tensor))); }
  // Gives symbols in arguments a value; without it, nodes that have any are unknown.
  using Symbols = std::function<std::optional<int64_t>(std::string_view symbol)>;
  void set_symbols(Symbols symbols) { symbols_ = std::move(symbols); }
  // Results with more elements are unknown.
  void set_largest_result(int64_t elements) { largest_result_ = elements; }

  // The value, a tensor or a number; nullopt when it depends on an input that was not added or on chance.
  std::optional<c10::IValue> find(const Value* value);

 private:
  bool can_be_known(const Node& node) const;
  bool compute(const Node& node);

  std::unordered_map<const Value*, c10::IValue> values_;
  std::unordered_set<const Node*> failed_;
  Symbols symbols_;
  int64_t largest_result_ = std::numeric_limits<int64_t>::max();
};

}  // namespace transporters
