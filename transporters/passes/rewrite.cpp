#include "transporters/passes/rewrite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace transporters {
namespace {

template <size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kReshapes[] = {"aten::view",    "aten::_unsafe_view",   "aten::view_copy",
                                          "aten::reshape", "aten::_reshape_copy",  "aten::unsqueeze",
                                          "aten::squeeze", "aten::unsqueeze_copy", "aten::squeeze_copy",
                                          "aten::flatten", "aten::unflatten"};

// Ops whose result has the elements of their first argument only.
constexpr std::string_view kCarriers[] = {"aten::expand",          "aten::expand_copy",  "aten::clone",
                                          "aten::contiguous",      "aten::detach",       "aten::alias",
                                          "aten::_to_copy",        "aten::to",           "aten::lift_fresh",
                                          "aten::permute",         "aten::broadcast_to", "aten::repeat",
                                          "aten::lift_fresh_copy", "aten::transpose",    "aten::t",
                                          "aten::slice",           "aten::select"};

std::optional<double> number(const Argument& argument) {
  if (const auto* real = std::get_if<double>(&argument)) return *real;
  if (const auto* boolean = std::get_if<bool>(&argument)) return *boolean ? 1 : 0;
  if (const auto* expr = std::get_if<Expr>(&argument)) {
    if (const auto integer = expr->as_integer()) return static_cast<double>(*integer);
    if (const auto real = expr->as_real()) return *real;
  }
  return std::nullopt;
}

template <typename T>
double first_element(const TensorData& data) {
  T value;
  std::memcpy(&value, data.data, sizeof(T));
  return static_cast<double>(value);
}

std::optional<double> only_element(const TensorData& data) {
  if (data.data == nullptr || data.numel() != 1) return std::nullopt;
  switch (data.dtype) {
    case ScalarType::Float:
      return first_element<float>(data);
    case ScalarType::Double:
      return first_element<double>(data);
    case ScalarType::Long:
      return first_element<int64_t>(data);
    case ScalarType::Int:
      return first_element<int32_t>(data);
    case ScalarType::Bool:
      return first_element<uint8_t>(data) != 0 ? 1 : 0;
    case ScalarType::Half:
      return first_element<c10::Half>(data);
    case ScalarType::BFloat16:
      return first_element<c10::BFloat16>(data);
    default:
      return std::nullopt;
  }
}

// `value` as an element of that type.
std::optional<double> cast(std::optional<double> value, ScalarType dtype) {
  if (!value || c10::isComplexType(dtype)) return std::nullopt;
  if (dtype == ScalarType::Bool) return *value != 0 ? 1 : 0;
  if (dtype == ScalarType::Float) return static_cast<float>(*value);
  if (c10::isFloatingType(dtype) || *value == std::trunc(*value)) return value;
  return std::nullopt;
}

int64_t wrap(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

std::vector<int64_t> swapped(size_t rank, int64_t a, int64_t b) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (rank > 0) std::swap(order.at(static_cast<size_t>(wrap(a, rank))), order.at(static_cast<size_t>(wrap(b, rank))));
  return order;
}

}  // namespace

Node* replace_node(Program& program, Node* node, std::string_view op, std::vector<NamedArgument> arguments) {
  Value* old = node->output();
  Node* made = program.graph->insert(node, op, std::move(arguments), {old->type()});
  made->module_path = node->module_path;
  made->source = node->source;
  program.replace_all_uses(old, made->output());
  const std::string name = old->name();
  program.graph->erase(node);
  program.graph->rename(made->output(), name);
  return made;
}

std::optional<double> fill_value(const Program& program, const Argument& argument) {
  const auto* found = std::get_if<Value*>(&argument);
  if (found == nullptr) return number(argument);
  const Value* value = *found;
  if (!value->is_tensor()) return std::nullopt;
  const Node* node = value->producer();
  if (node == nullptr) {
    const auto* input = program.find_input(value);
    if (input == nullptr || input->kind != InputKind::Constant) return std::nullopt;
    const auto state = program.state.find(input->target);
    return state == program.state.end() ? std::nullopt : only_element(state->second);
  }
  const auto base = node->schema().base_name();
  if (base == "aten::full" || base == "aten::full_like" || base == "aten::new_full")
    return cast(fill_value(program, node->get("fill_value")), value->dtype());
  if (base == "aten::scalar_tensor") return cast(number(node->get("s")), value->dtype());
  if (base == "aten::zeros" || base == "aten::zeros_like" || base == "aten::new_zeros") return 0;
  if (base == "aten::ones" || base == "aten::ones_like" || base == "aten::new_ones") return cast(1.0, value->dtype());
  if ((is_one_of(base, kCarriers) || is_reshape(*node)) && first_tensor(*node) != nullptr)
    return cast(fill_value(program, Argument(first_tensor(*node))), value->dtype());
  return std::nullopt;
}

std::optional<std::vector<int64_t>> permutation_of(const Node& node) {
  const Value* self = first_tensor(node);
  if (self == nullptr || node.outputs().size() != 1 || !node.outputs()[0]->is_tensor()) return std::nullopt;
  const size_t rank = self->rank();
  if (node.is("aten::permute") || node.is("aten::permute_copy")) {
    auto order = node.integers("dims");
    for (auto& dim : order) dim = wrap(dim, rank);
    return order;
  }
  if (node.is("aten::transpose.int") || node.is("aten::transpose_copy.int"))
    return swapped(rank, node.integer("dim0"), node.integer("dim1"));
  if (node.is("aten::swapaxes")) return swapped(rank, node.integer("axis0"), node.integer("axis1"));
  if (node.is("aten::swapdims")) return swapped(rank, node.integer("dim0"), node.integer("dim1"));
  if (node.is("aten::t") || node.is("aten::t_copy")) return swapped(rank, 0, rank < 2 ? 0 : 1);
  if (node.is("aten::mT") && rank >= 2) return swapped(rank, -1, -2);
  return std::nullopt;
}

bool is_reshape(const Node& node) {
  return is_one_of(node.schema().base_name(), kReshapes) && !node.is("aten::view.dtype") &&
         !node.is("aten::view_copy.dtype") && first_tensor(node) != nullptr;
}

Value* first_tensor(const Node& node) {
  if (node.schema().arguments.empty()) return nullptr;
  const auto* argument = node.try_get(node.schema().arguments[0].name);
  if (argument == nullptr) return nullptr;
  const auto* value = std::get_if<Value*>(argument);
  return value != nullptr && (*value)->is_tensor() ? *value : nullptr;
}

}  // namespace transporters
