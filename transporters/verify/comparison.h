// What the formats give to find_divergence: their values in order, and runs that show them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <unordered_map>

#include "transporters/verify/align.h"
#include "transporters/verify/divergence.h"

namespace transporters {

using NamedTensors = std::map<std::string, at::Tensor>;

// A value of the artefact that has a counterpart.
struct ComparedValue {
  std::string name;
  std::string op;
  std::string module;
  const Value* reference;
};

class ComparedArtefact {
 public:
  virtual ~ComparedArtefact() = default;
  // Called once, before run(), with the ranges of values() that runs will ask for.
  virtual void prepare(const std::vector<std::pair<size_t, size_t>>& ranges) {}
  // Runs the graph and calls `found` with values number `begin` to `end - 1`, as far as they are tensors or numbers.
  using Found = std::function<void(size_t value, const at::Tensor& tensor)>;
  virtual void run(const NamedTensors& inputs, size_t begin, size_t end, const Found& found) = 0;
  // The tensor of that parameter, buffer or constant.
  virtual std::optional<at::Tensor> weight(const std::string& target) const = 0;

  const std::vector<ComparedValue>& values() const { return values_; }
  // Values that the artefact computes, those without a counterpart among them.
  size_t value_count() const { return value_count_; }
  // False when counterparts were guessed from order and kind.
  bool by_name() const { return by_name_; }

 protected:
  std::vector<ComparedValue> values_;  // in execution order
  size_t value_count_ = 0;
  bool by_name_ = false;
};

DivergenceReport compare(ComparedArtefact& artefact, const Program& reference, const NamedTensors& inputs,
                         const DivergenceOptions& options);

// The values of a program that say something: what is read later, except for memory that is not written yet.
std::vector<const Value*> telling_values(const Program& program);

// The targets of user outputs, mutated buffers and inputs, by the value that they take.
std::unordered_map<const Value*, std::string> output_targets(const Program& program);

// Runs a program from its initial state and shows each value that is a tensor or a number. Inputs are not written to.
void run_program(const Program& program, const NamedTensors& inputs,
                 const std::function<void(const Value* value, const at::Tensor& tensor)>& found);

}  // namespace transporters
