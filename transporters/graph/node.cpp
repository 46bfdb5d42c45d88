// Node: reading and setting arguments.
#include <algorithm>

#include "transporters/error.h"
#include "transporters/graph/graph.h"

namespace transporters {
namespace {

std::string kind_of(const Argument& argument) {
  static const char* const kNames[] = {"None",
                                       "a tensor",
                                       "a list of tensors",
                                       "an integer",
                                       "a size list",
                                       "a float",
                                       "a list of floats",
                                       "a boolean",
                                       "a list of booleans",
                                       "a string",
                                       "a list of strings",
                                       "a dtype",
                                       "a layout",
                                       "a memory format",
                                       "a device"};
  static_assert(std::size(kNames) == std::variant_size_v<Argument>);
  return kNames[argument.index()];
}

[[noreturn]] void wrong_type(const Node& node, std::string_view name, const std::string& expected,
                             const Argument& argument) {
  throw Error({.op = node.op(), .module = node.module_path},
              "argument '" + std::string(name) + "' is " + kind_of(argument) + ", expected " + expected);
}

template <typename T>
const T& read(const Node& node, std::string_view name, const std::string& expected) {
  const Argument& argument = node.get(name);
  if (const T* value = std::get_if<T>(&argument)) return *value;
  wrong_type(node, name, expected, argument);
}

int64_t constant(const Node& node, std::string_view name, const Expr& expr) {
  if (const auto value = expr.as_integer()) return *value;
  throw Error(
      {.op = node.op(), .module = node.module_path},
      "argument '" + std::string(name) + "' is the symbolic size " + expr.str() + ", expected a constant integer");
}

// The type that the schema gives to a constant written another way: an integer for a float, a constant expression.
Argument normalize(const SchemaArgument& schema, Argument argument) {
  const auto* expr = std::get_if<Expr>(&argument);
  if (expr == nullptr) return argument;
  const bool number = schema.kind == ArgumentKind::Scalar || schema.kind == ArgumentKind::Tensor;
  if (schema.kind == ArgumentKind::Float || number) {
    if (const auto value = expr->as_real()) return *value;
  }
  if (schema.kind == ArgumentKind::Float) {
    if (const auto value = expr->as_integer()) return static_cast<double>(*value);
  }
  if (schema.kind == ArgumentKind::Bool || number) {
    if (const auto value = expr->as_boolean()) return *value;
  }
  return argument;
}

}  // namespace

const Argument* Node::try_get(std::string_view name) const {
  for (const auto& argument : arguments_)
    if (argument.name == name) return &argument.value;
  const auto index = schema_->find(name);
  if (!index) return nullptr;
  const auto& value = schema_->arguments[*index].default_value;
  return value ? &*value : nullptr;
}

const Argument& Node::get(std::string_view name) const {
  if (const auto* argument = try_get(name)) return *argument;
  throw InternalError("op '" + op() + "' has no argument '" + std::string(name) + "', or it was not given");
}

bool Node::is_none(std::string_view name) const { return std::holds_alternative<None>(get(name)); }

Value* Node::tensor(std::string_view name) const { return read<Value*>(*this, name, "a tensor"); }

Value* Node::tensor_or_null(std::string_view name) const { return is_none(name) ? nullptr : tensor(name); }

const Values& Node::tensors(std::string_view name) const { return read<Values>(*this, name, "a list of tensors"); }

Expr Node::size(std::string_view name) const { return read<Expr>(*this, name, "an integer"); }

int64_t Node::integer(std::string_view name) const { return constant(*this, name, size(name)); }

std::optional<int64_t> Node::integer_or_none(std::string_view name) const {
  if (is_none(name)) return std::nullopt;
  return integer(name);
}

std::vector<Expr> Node::sizes(std::string_view name) const {
  if (const auto* single = std::get_if<Expr>(&get(name))) return {*single};
  return read<std::vector<Expr>>(*this, name, "a list of integers");
}

std::vector<int64_t> Node::integers(std::string_view name) const {
  std::vector<int64_t> values;
  for (const auto& expr : sizes(name)) values.push_back(constant(*this, name, expr));
  return values;
}

double Node::real(std::string_view name) const {
  if (const auto* expr = std::get_if<Expr>(&get(name))) return static_cast<double>(constant(*this, name, *expr));
  return read<double>(*this, name, "a float");
}

std::optional<double> Node::real_or_none(std::string_view name) const {
  if (is_none(name)) return std::nullopt;
  return real(name);
}

bool Node::boolean(std::string_view name) const { return read<bool>(*this, name, "a boolean"); }

std::string Node::string(std::string_view name) const { return read<std::string>(*this, name, "a string"); }

ScalarType Node::dtype(std::string_view name) const { return read<ScalarType>(*this, name, "a dtype"); }

std::optional<ScalarType> Node::dtype_or_none(std::string_view name) const {
  if (is_none(name)) return std::nullopt;
  return dtype(name);
}

void Node::set(std::string_view name, Argument value) {
  const auto index = schema_->find(name);
  if (!index) {
    std::vector<std::string> known;
    for (const auto& argument : schema_->arguments) known.push_back(argument.name);
    throw Error({.op = op(), .module = module_path},
                "there is no argument '" + std::string(name) + "'" + did_you_mean(name, known));
  }
  const SchemaArgument& schema = schema_->arguments[*index];
  value = normalize(schema, std::move(value));
  const bool is_default = schema.default_value && identical(value, *schema.default_value);

  // Position among the stored arguments, which follow the schema's order.
  size_t at = 0;
  while (at < arguments_.size() && *schema_->find(arguments_[at].name) < *index) ++at;
  const auto position = arguments_.begin() + static_cast<std::ptrdiff_t>(at);
  const bool stored = at < arguments_.size() && arguments_[at].name == name;
  if (stored && !is_default) {
    graph_->remove_uses(this, at);
    arguments_[at].value = std::move(value);
    graph_->add_uses(this, at);
  } else if (stored) {
    graph_->remove_uses(this, at);
    arguments_.erase(position);
    graph_->shift_uses(this, at, -1);
  } else if (!is_default) {
    arguments_.insert(position, NamedArgument{schema.name, std::move(value)});
    graph_->shift_uses(this, at + 1, 1);
    graph_->add_uses(this, at);
  }
}

Value* Node::output() const {
  if (outputs_.size() != 1)
    throw InternalError("op '" + op() + "' has " + std::to_string(outputs_.size()) + " outputs where one was expected");
  return outputs_.front();
}

void Node::for_each_input(const std::function<void(Value*)>& f) const {
  for (const auto& argument : arguments_) for_each_value(argument.value, f);
}

Node* Node::next() const {
  const auto after = std::next(position_);
  return after == graph_->nodes_.end() ? nullptr : after->get();
}

Node* Node::prev() const { return position_ == graph_->nodes_.begin() ? nullptr : std::prev(position_)->get(); }

}  // namespace transporters
