#include "transporters/graph/program.h"

#include <algorithm>

#include "transporters/error.h"

namespace transporters {

Program Program::clone() const {
  Program copy;
  copy.graph = graph->clone();
  copy.inputs = inputs;
  copy.outputs = outputs;
  copy.state = state;
  copy.ranges = ranges;
  copy.hints = hints;
  copy.in_spec = in_spec;
  copy.out_spec = out_spec;
  copy.example_inputs = example_inputs;
  copy.architecture = architecture;
  // Names are unique in a graph and a clone keeps them.
  for (auto& input : copy.inputs)
    if (input.value != nullptr) input.value = copy.graph->find_value(input.value->name());
  for (auto& output : copy.outputs)
    if (output.value != nullptr) output.value = copy.graph->find_value(output.value->name());
  return copy;
}

const InputSpec* Program::find_input(std::string_view target) const {
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.target == target; });
  return found == inputs.end() ? nullptr : &*found;
}

const InputSpec* Program::find_input(const Value* value) const {
  if (value == nullptr) return nullptr;
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.value == value; });
  return found == inputs.end() ? nullptr : &*found;
}

void Program::replace_all_uses(Value* from, Value* to) {
  graph->replace_all_uses(from, to);
  for (auto& output : outputs)
    if (output.value == from) output.value = to;
}

void Program::update_outputs() {
  size_t index = 0;
  for (auto& output : outputs) {
    if (output.value == nullptr) continue;
    if (index == graph->outputs().size()) throw InternalError("the signature has more outputs than the graph");
    output.value = graph->outputs()[index++];
  }
  if (index != graph->outputs().size()) throw InternalError("the graph has more outputs than the signature");
}

void Program::erase_input(Value* input) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const auto& spec) { return spec.value == input; });
  if (found == inputs.end()) throw InternalError("value %" + input->name() + " is no input of the program");
  graph->erase_input(input);
  if (found->kind != InputKind::UserInput) state.erase(found->target);
  inputs.erase(found);
}

}  // namespace transporters
