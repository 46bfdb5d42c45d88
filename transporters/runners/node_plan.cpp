#include "transporters/runners/node_plan.h"

#include <ATen/ScalarOps.h>

#include "transporters/graph/ivalue_torch.h"
#include "transporters/graph/text.h"

namespace transporters {
namespace {

c10::OperatorHandle find_operator(const Node& node) {
  const auto& schema = node.schema();
  const auto found =
      c10::Dispatcher::singleton().findSchema({std::string(schema.base_name()), std::string(schema.overload())});
  if (!found)
    throw Error({.stage = "run", .op = node.op(), .module = node.module_path}, "the op is not registered any more");
  return *found;
}

bool has_symbols(const Expr& expr) { return !expr.is_constant(); }

// A number in a tensor's place takes part in type promotion as a number.
c10::IValue wrapped(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue to_ivalue(const symbolic::Number& number) {
  return std::visit([](auto value) { return c10::IValue(value); }, number);
}

// A number as the schema's kind takes it.
c10::IValue fit(const c10::IValue& number, ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Tensor:
      return number.isTensor() ? number : wrapped(number.toScalar());
    case ArgumentKind::Float:
      return number.isInt() ? c10::IValue(static_cast<double>(number.toInt())) : number;
    case ArgumentKind::Int:
      return number.isBool() ? c10::IValue(static_cast<int64_t>(number.toBool())) : number;
    case ArgumentKind::Bool:
      return number.isInt() ? c10::IValue(number.toInt() != 0) : number;
    default:
      return number;
  }
}

std::string describe_value(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value.tagKind();
  const auto& tensor = value.toTensor();
  return to_text(TensorType{tensor.scalar_type(), {tensor.sizes().begin(), tensor.sizes().end()}, {}});
}

}  // namespace

NodePlan::NodePlan(const Node& node, const Slots& slots, SymbolValues& symbols)
    : op_(find_operator(node)), context_{.stage = "run", .op = node.op(), .module = node.module_path} {
  const auto& schema = node.schema();
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const auto* argument = node.try_get(schema.arguments[i].name);
    try {
      inputs_.push_back(argument == nullptr ? Input{}
                                            : input(*argument, schema.arguments[i].kind, arguments[i], slots, symbols));
    } catch (const Error& error) {
      throw Error(context_, "argument '" + schema.arguments[i].name + "': " + error.message());
    }
  }
  for (const auto* output : node.outputs()) {
    outputs_.push_back(slots.at(output));
    output_names_.push_back(output->name());
    bindings_.push_back(&symbols.bindings(output));
  }
  list_output_ = schema.returns.size() == 1 && (schema.returns[0].kind == ArgumentKind::TensorList ||
                                                schema.returns[0].kind == ArgumentKind::IntList);
}

bool NodePlan::find_in_place() {
  // Ops that write some elements: the others make a value of their own anyway.
  const c10::OperatorName& name = op_.operator_name();
  if (name.name != "aten::index_copy" && name.name != "aten::index_put") return false;
  in_place_op_ = c10::Dispatcher::singleton().findSchema({name.name + "_", name.overload_name});
  return in_place_op_.has_value();
}

std::optional<size_t> NodePlan::first_input() const {
  if (inputs_.empty() || inputs_[0].source != Source::Slot) return std::nullopt;
  return static_cast<size_t>(inputs_[0].slots[0]);
}

NodePlan::Input NodePlan::input(const Argument& argument, ArgumentKind kind, const c10::Argument& schema,
                                const Slots& slots, SymbolValues& symbols) const {
  Input result;
  result.kind = kind;
  if (auto* const* value = std::get_if<Value*>(&argument)) {
    result.source = Source::Slot;
    result.slots = {static_cast<std::ptrdiff_t>(slots.at(*value))};
    return result;
  }
  if (const auto* values = std::get_if<Values>(&argument)) {
    result.source = kind == ArgumentKind::OptionalTensorList ? Source::OptionalSlots : Source::Slots;
    for (const auto* value : *values)
      result.slots.push_back(value == nullptr ? -1 : static_cast<std::ptrdiff_t>(slots.at(value)));
    return result;
  }
  if (const auto* expr = std::get_if<Expr>(&argument); expr != nullptr && kind == ArgumentKind::IntList) {
    // One number for a list of fixed length stands for all of them.
    result.source = Source::Exprs;
    result.exprs.assign(static_cast<size_t>(schema.N().value_or(1)), symbols.add(*expr));
    return result;
  }
  if (const auto* expr = std::get_if<Expr>(&argument); expr != nullptr && has_symbols(*expr)) {
    result.source = Source::Expr;
    result.exprs = {symbols.add(*expr)};
    return result;
  }
  if (const auto* exprs = std::get_if<std::vector<Expr>>(&argument);
      exprs != nullptr && std::any_of(exprs->begin(), exprs->end(), has_symbols)) {
    result.source = Source::Exprs;
    for (const auto& expr : *exprs) result.exprs.push_back(symbols.add(expr));
    return result;
  }
  result.constant = transporters::to_ivalue(argument, kind);
  if (kind == ArgumentKind::Tensor && !result.constant.isNone()) result.constant = fit(result.constant, kind);
  return result;
}

c10::IValue NodePlan::read(const Input& input, const Registers& registers, SymbolValues& symbols) const {
  switch (input.source) {
    case Source::Constant:
      return input.constant;
    case Source::Slot:
      return fit(registers[static_cast<size_t>(input.slots[0])], input.kind);
    case Source::Slots: {
      c10::List<at::Tensor> list;
      list.reserve(input.slots.size());
      for (const auto slot : input.slots) list.push_back(registers[static_cast<size_t>(slot)].toTensor());
      return list;
    }
    case Source::OptionalSlots: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(input.slots.size());
      for (const auto slot : input.slots)
        list.push_back(slot < 0 ? std::optional<at::Tensor>() : registers[static_cast<size_t>(slot)].toTensor());
      return list;
    }
    case Source::Expr:
      return fit(to_ivalue(symbols.value(input.exprs[0])), input.kind);
    case Source::Exprs: {
      c10::List<int64_t> list;
      list.reserve(input.exprs.size());
      for (const size_t expr : input.exprs) list.push_back(symbols.integer(expr));
      return list;
    }
  }
  throw InternalError("unknown source of an argument");
}

void NodePlan::run(Registers& registers, SymbolValues& symbols, std::vector<c10::IValue>& stack) const {
  stack.clear();
  try {
    for (const auto& input : inputs_) stack.push_back(read(input, registers, symbols));
    (is_in_place ? *in_place_op_ : op_).callBoxed(&stack);
  } catch (const Error& error) {
    throw Error(context_, error.message());
  } catch (const c10::Error& error) {
    throw Error(context_, std::string(error.what_without_backtrace()) + describe(registers));
  } catch (const std::exception& error) {
    throw Error(context_, std::string(error.what()) + describe(registers));
  }
  store(registers, symbols, stack);
}

std::vector<c10::IValue> NodePlan::outputs(const Registers& registers) const {
  std::vector<c10::IValue> outputs;
  for (const size_t slot : outputs_) outputs.push_back(registers[slot]);
  return outputs;
}

void NodePlan::release(Registers& registers) const {
  for (const size_t slot : last_uses) registers[slot] = {};
}

void NodePlan::store(Registers& registers, SymbolValues& symbols, std::vector<c10::IValue>& stack) const {
  if (list_output_) {
    const auto list = stack.at(0).toList();
    stack.clear();
    for (size_t i = 0; i < list.size(); ++i) stack.push_back(list.get(i));
  }
  if (stack.size() != outputs_.size())
    throw Error(context_, "expected " + std::to_string(outputs_.size()) + " outputs, as the graph has them, got " +
                              std::to_string(stack.size()));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!bindings_[i]->empty()) symbols.bind(*bindings_[i], stack[i], context_, "output %" + output_names_[i]);
    registers[outputs_[i]] = std::move(stack[i]);
  }
}

std::string NodePlan::describe(const Registers& registers) const {
  std::string text;
  for (size_t i = 0; i < inputs_.size(); ++i)
    for (const auto slot : inputs_[i].slots)
      if (slot >= 0)
        text += (text.empty() ? " [inputs: " : ", ") + op_.schema().arguments()[i].name() + " " +
                describe_value(registers[static_cast<size_t>(slot)]);
  return text.empty() ? text : text + "]";
}

}  // namespace transporters
