#include "transporters/trace/value_evaluator.h"

#include <string>
#include <vector>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/runners/interpreter.h"

namespace transporters {
namespace {

using symbolic::Number;

std::optional<Expr> constant_of(const Expr& expr, const ValueEvaluator::Symbols& symbols) {
  if (expr.is_constant()) return expr;
  if (!symbols) return std::nullopt;
  const auto value = expr.evaluate([&](std::string_view symbol) { return symbols(symbol); });
  if (!value) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&*value)) return Expr(*integer);
  if (const auto* real = std::get_if<double>(&*value)) return Expr::real(*real);
  return Expr::boolean(std::get<bool>(*value));
}

bool make_constant(Argument& argument, const ValueEvaluator::Symbols& symbols) {
  if (auto* expr = std::get_if<Expr>(&argument)) {
    const auto constant = constant_of(*expr, symbols);
    if (constant) *expr = *constant;
    return constant.has_value();
  }
  if (auto* list = std::get_if<std::vector<Expr>>(&argument)) {
    for (Expr& expr : *list) {
      const auto constant = constant_of(expr, symbols);
      if (!constant) return false;
      expr = *constant;
    }
  }
  return true;
}

// A type of that kind whose sizes nothing is known of.
ValueType open_type(const ValueType& type, Program& program, int& next) {
  const auto fresh = [&] {
    const std::string name = "d" + std::to_string(next++);
    program.ranges[name] = symbolic::Range{};
    return Expr::symbol(name);
  };
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    TensorType open{.dtype = tensor->dtype};
    for (size_t dim = 0; dim < tensor->sizes.size(); ++dim) open.sizes.push_back(fresh());
    return open;
  }
  const Expr& expr = std::get<NumberType>(type).expr;
  return expr.type() == symbolic::Type::Integer ? ValueType(NumberType{fresh()}) : type;
}

}  // namespace

bool ValueEvaluator::can_be_known(const Node& node) const {
  if (node.schema().is_random || node.schema().has_side_effects() || node.outputs().empty()) return false;
  if (largest_result_ == std::numeric_limits<int64_t>::max()) return true;
  for (const Value* output : node.outputs()) {
    if (!output->is_tensor()) return false;
    int64_t numel = 1;
    for (const Expr& size : output->sizes()) {
      const auto constant = size.as_integer();
      if (!constant || *constant < 0 || __builtin_mul_overflow(numel, *constant, &numel)) return false;
    }
    if (numel > largest_result_) return false;
  }
  return true;
}

std::optional<c10::IValue> ValueEvaluator::find(const Value* value) {
  // Depth first without recursion: chains can be long.
  std::vector<const Node*> pending;
  const auto ask = [&](const Value* wanted) {
    if (values_.contains(wanted)) return true;
    if (wanted->producer() == nullptr || failed_.contains(wanted->producer())) return false;
    pending.push_back(wanted->producer());
    return true;
  };
  if (!ask(value)) return std::nullopt;
  while (!pending.empty()) {
    const Node* node = pending.back();
    if (failed_.contains(node) || (!node->outputs().empty() && values_.contains(node->outputs()[0]))) {
      pending.pop_back();
      continue;
    }
    bool possible = can_be_known(*node);
    const size_t before = pending.size();
    if (possible) node->for_each_input([&](Value* input) { possible = possible && ask(input); });
    if (!possible) {
      pending.resize(before - 1);
      failed_.insert(node);
    } else if (pending.size() == before) {
      pending.pop_back();
      if (!compute(*node)) failed_.insert(node);
    }
  }
  const auto found = values_.find(value);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

// Runs one node as a program of its own.
bool ValueEvaluator::compute(const Node& node) {
  Program program;
  std::unordered_map<const Value*, Argument> copies;
  int next = 0;
  const auto copy = [&](Value* value) -> Argument {
    const auto known = copies.find(value);
    if (known != copies.end()) return known->second;
    const c10::IValue& held = values_.at(value);
    Argument copied;
    if (held.isTensor()) {
      const at::Tensor tensor = held.toTensor().contiguous();
      TensorType type{.dtype = tensor.scalar_type()};
      for (const int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
      Value* input = program.graph->add_input(value->name(), std::move(type));
      program.inputs.push_back({.kind = InputKind::Constant, .value = input, .target = input->name()});
      program.state[input->name()] = to_tensor_data(tensor);
      copied = input;
    } else if (held.isInt()) {
      copied = Expr(held.toInt());
    } else if (held.isBool()) {
      copied = held.toBool();
    } else {
      copied = held.toDouble();
    }
    return copies.emplace(value, copied).first->second;
  };
  std::vector<NamedArgument> arguments(node.arguments().begin(), node.arguments().end());
  for (NamedArgument& argument : arguments) {
    if (auto* value = std::get_if<Value*>(&argument.value)) {
      argument.value = copy(*value);
    } else if (auto* values = std::get_if<Values>(&argument.value)) {
      for (Value*& element : *values)
        if (element != nullptr) element = std::get<Value*>(copy(element));
    } else if (!make_constant(argument.value, symbols_)) {
      return false;
    }
  }
  std::vector<ValueType> types;
  for (const Value* output : node.outputs()) types.push_back(open_type(output->type(), program, next));
  Node* copied = program.graph->append(node.op(), std::move(arguments), std::move(types));
  for (Value* output : copied->outputs()) {
    program.graph->add_output(output);
    program.outputs.push_back({.kind = OutputKind::UserOutput, .value = output, .target = output->name()});
  }
  const auto results = Interpreter(program).run({});
  for (size_t i = 0; i < results.size(); ++i) values_[node.outputs()[i]] = results[i];
  return true;
}

}  // namespace transporters
