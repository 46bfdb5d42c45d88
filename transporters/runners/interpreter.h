// Runs a program op by op through libtorch's dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters {

// A program made ready to run: operators are looked up and constants converted once. It keeps what it needs (weights by
// reference to their bytes, which are never written), so that the Program may change or go afterwards.
//
// Runs are without gradients. Values are freed after their last use. Buffers that the program mutates keep their new
// value for the next run; user inputs that it mutates are written to in place: without a second buffer where one node
// reads the input, and only to write some of its elements. An output that is the new value of such an input is that
// tensor. One object must not run in two threads at a time.
class Interpreter {
 public:
  // Throws Error for an op that the dispatcher does not have, and for state without bytes.
  explicit Interpreter(const Program& program);
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

  // Names of what run() takes and gives: the leaf paths of user inputs that are values, and of all user outputs.
  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;

  // Runs with one tensor per input name; an input that is a number takes a 0-dim tensor. Returns one value per output
  // name: a tensor, a number, or a constant of the signature. Throws Error when an input does not fit its declared
  // dtype, rank, sizes or symbol ranges, when a runtime assert does not hold, and when an op fails.
  std::vector<c10::IValue> run(const std::vector<at::Tensor>& user_inputs);
  // The same by name; throws Error for a missing or an unknown name.
  std::map<std::string, c10::IValue> run_named(const std::map<std::string, at::Tensor>& user_inputs);

  // Calls `observer` after each node with its place in the graph, from 0, and its outputs; null stops that. What it is
  // given shares bytes with the run, so it copies what it keeps.
  using Observer = std::function<void(size_t node, const std::vector<c10::IValue>& outputs)>;
  void observe(Observer observer);

  // A copy of the current value of a buffer; throws Error for an unknown one.
  at::Tensor buffer(const std::string& target) const;

 private:
  class Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace transporters
