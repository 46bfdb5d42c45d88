#include "transporters/trace/known_values.h"

#include <vector>

#include "transporters/graph/program.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/runners/interpreter.h"

namespace transporters {
namespace {

constexpr int64_t kLargestResult = 1 << 16;  // elements

bool is_small_and_fixed(const Value* value) {
  if (!value->is_tensor()) return false;
  int64_t numel = 1;
  for (const Expr& size : value->sizes()) {
    const auto constant = size.as_integer();
    if (!constant || *constant < 0 || __builtin_mul_overflow(numel, *constant, &numel)) return false;
  }
  return numel <= kLargestResult;
}

bool can_be_known(const Node& node) {
  if (node.schema().is_random || node.schema().has_side_effects()) return false;
  for (const NamedArgument& argument : node.arguments()) {
    bool fixed = true;
    for_each_expr(argument.value, [&](const Expr& expr) { fixed = fixed && expr.is_constant(); });
    if (!fixed) return false;
  }
  for (const Value* output : node.outputs())
    if (!is_small_and_fixed(output)) return false;
  return !node.outputs().empty();
}

}  // namespace

std::optional<at::Tensor> KnownValues::find(const Value* value) {
  // Depth first without recursion: chains can be long.
  std::vector<const Node*> pending;
  const auto ask = [&](const Value* wanted) {
    if (tensors_.contains(wanted)) return true;
    if (wanted->producer() == nullptr || failed_.contains(wanted->producer())) return false;
    pending.push_back(wanted->producer());
    return true;
  };
  if (!ask(value)) return std::nullopt;
  while (!pending.empty()) {
    const Node* node = pending.back();
    if (failed_.contains(node) || tensors_.contains(node->outputs().empty() ? nullptr : node->outputs()[0])) {
      pending.pop_back();
      continue;
    }
    bool possible = can_be_known(*node);
    const size_t before = pending.size();
    if (possible) node->for_each_input([&](Value* input) { possible = possible && ask(input); });
    if (!possible) {
      pending.resize(before - 1);
      failed_[node] = true;
    } else if (pending.size() == before) {
      pending.pop_back();
      if (!compute(*node)) failed_[node] = true;
    }
  }
  const auto found = tensors_.find(value);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

// Runs one node as a program of its own.
bool KnownValues::compute(const Node& node) {
  Program program;
  std::unordered_map<const Value*, Value*> copies;
  std::vector<NamedArgument> arguments(node.arguments().begin(), node.arguments().end());
  const auto copy = [&](Value*& value) {
    if (value == nullptr) return;
    Value*& copied = copies[value];
    if (copied == nullptr) {
      copied = program.graph->add_input(value->name(), value->type());
      program.inputs.push_back({.kind = InputKind::Constant, .value = copied, .target = copied->name()});
      program.state[copied->name()] = to_tensor_data(tensors_.at(value).contiguous());
    }
    value = copied;
  };
  for (NamedArgument& argument : arguments) {
    if (auto* value = std::get_if<Value*>(&argument.value)) copy(*value);
    if (auto* values = std::get_if<Values>(&argument.value))
      for (Value*& element : *values) copy(element);
  }
  std::vector<ValueType> types;
  for (const Value* output : node.outputs()) types.push_back(output->type());
  Node* copied = program.graph->append(node.op(), std::move(arguments), std::move(types));
  for (Value* output : copied->outputs()) {
    program.graph->add_output(output);
    program.outputs.push_back({.kind = OutputKind::UserOutput, .value = output, .target = output->name()});
  }
  const auto results = Interpreter(program).run({});
  for (size_t i = 0; i < results.size(); ++i) tensors_[node.outputs()[i]] = results[i].toTensor();
  return true;
}

}  // namespace transporters
