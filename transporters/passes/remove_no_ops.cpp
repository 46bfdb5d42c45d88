#include "transporters/passes/remove_no_ops.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "transporters/passes/rewrite.h"

namespace transporters {
namespace {

// A value that output 0 of the node may equal; the caller compares the types. Null when there is none.
using Rule = Value* (*)(const Program& program, const Node& node);

// Ops whose result has all elements of the first argument, in order, whenever the types are equal. A slice of step 1
// that keeps the size keeps everything.
Value* same_elements(const Program&, const Node& node) { return first_tensor(node); }

Value* value_or_null(const Argument& argument) {
  const auto* value = std::get_if<Value*>(&argument);
  return value == nullptr ? nullptr : *value;
}

bool is_filled(const Program& program, const Node& node, std::string_view argument, double with) {
  return fill_value(program, node.get(argument)) == with;
}

bool all_are(const std::vector<Expr>& exprs, int64_t value) {
  return std::all_of(exprs.begin(), exprs.end(), [value](const Expr& expr) { return expr.is(value); });
}

Value* repeat(const Program&, const Node& node) {
  return all_are(node.sizes(node.is("aten::tile") ? "dims" : "repeats"), 1) ? node.tensor("self") : nullptr;
}

Value* pad(const Program&, const Node& node) { return all_are(node.sizes("pad"), 0) ? node.tensor("self") : nullptr; }

Value* permute(const Program&, const Node& node) {
  const auto order = permutation_of(node);
  if (!order) return nullptr;
  Value* self = first_tensor(node);
  if (std::is_sorted(order->begin(), order->end())) return self;
  const auto before = self->producer() == nullptr ? std::nullopt : permutation_of(*self->producer());
  if (!before) return nullptr;
  for (size_t i = 0; i < order->size(); ++i)
    if (before->at(static_cast<size_t>((*order)[i])) != static_cast<int64_t>(i)) return nullptr;
  return first_tensor(*self->producer());
}

Value* dropout(const Program& program, const Node& node) {
  const bool off = !node.boolean("train") || fill_value(program, node.get("p")) == 0.0;
  return off ? node.tensor("input") : nullptr;
}

Value* native_dropout(const Program&, const Node& node) {
  const auto* train = std::get_if<bool>(&node.get("train"));
  return train != nullptr && !*train ? node.tensor("input") : nullptr;
}

Value* add(const Program& program, const Node& node) {
  if (is_filled(program, node, "other", 0)) return value_or_null(node.get("self"));
  const bool plain = fill_value(program, node.get("alpha")) == 1.0;
  return plain && is_filled(program, node, "self", 0) ? value_or_null(node.get("other")) : nullptr;
}

Value* sub(const Program& program, const Node& node) {
  return is_filled(program, node, "other", 0) ? value_or_null(node.get("self")) : nullptr;
}

Value* mul(const Program& program, const Node& node) {
  if (is_filled(program, node, "other", 1)) return value_or_null(node.get("self"));
  return is_filled(program, node, "self", 1) ? value_or_null(node.get("other")) : nullptr;
}

Value* div(const Program& program, const Node& node) {
  // Rounding modes round floats.
  const auto* mode = node.try_get("rounding_mode");
  const bool rounds = mode != nullptr && !std::holds_alternative<None>(*mode);
  if (rounds && !c10::isIntegralType(node.outputs()[0]->dtype(), false)) return nullptr;
  return is_filled(program, node, "other", 1) ? value_or_null(node.get("self")) : nullptr;
}

Value* pow(const Program& program, const Node& node) {
  return is_filled(program, node, "exponent", 1) ? value_or_null(node.get("self")) : nullptr;
}

// And with all True, or with all False, xor with all False; of booleans.
template <int neutral>
Value* logical(const Program& program, const Node& node) {
  if (node.outputs()[0]->dtype() != ScalarType::Bool) return nullptr;
  if (is_filled(program, node, "other", neutral)) return value_or_null(node.get("self"));
  return is_filled(program, node, "self", neutral) ? value_or_null(node.get("other")) : nullptr;
}

Value* where(const Program& program, const Node& node) {
  if (!node.is("aten::where.self")) return nullptr;
  if (identical(node.get("self"), node.get("other"))) return value_or_null(node.get("self"));
  const auto condition = fill_value(program, node.get("condition"));
  if (!condition) return nullptr;
  return value_or_null(node.get(*condition != 0 ? "self" : "other"));
}

Value* cat(const Program&, const Node& node) {
  const auto& tensors = node.tensors("tensors");
  return tensors.size() == 1 ? tensors[0] : nullptr;
}

Value* scatter(const Program&, const Node& node) { return node.tensor("src"); }

Value* split(const Program&, const Node& node) { return node.outputs().size() == 1 ? first_tensor(node) : nullptr; }

Rule find_rule(std::string_view op) {
  static const std::unordered_map<std::string_view, Rule> kRules = {
      {"aten::clone", same_elements},
      {"aten::contiguous", same_elements},
      {"aten::detach", same_elements},
      {"aten::detach_copy", same_elements},
      {"aten::alias", same_elements},
      {"aten::alias_copy", same_elements},
      {"aten::lift", same_elements},
      {"aten::lift_fresh", same_elements},
      {"aten::lift_fresh_copy", same_elements},
      {"aten::to", same_elements},
      {"aten::_to_copy", same_elements},
      {"aten::type_as", same_elements},
      {"aten::positive", same_elements},
      {"aten::resolve_conj", same_elements},
      {"aten::resolve_neg", same_elements},
      {"aten::real", same_elements},
      {"aten::view", same_elements},
      {"aten::_unsafe_view", same_elements},
      {"aten::view_copy", same_elements},
      {"aten::view_as", same_elements},
      {"aten::reshape", same_elements},
      {"aten::reshape_as", same_elements},
      {"aten::squeeze", same_elements},
      {"aten::squeeze_copy", same_elements},
      {"aten::flatten", same_elements},
      {"aten::unflatten", same_elements},
      {"aten::expand", same_elements},
      {"aten::expand_copy", same_elements},
      {"aten::expand_as", same_elements},
      {"aten::broadcast_to", same_elements},
      {"aten::slice", same_elements},
      {"aten::slice_copy", same_elements},
      {"aten::narrow", same_elements},
      {"aten::narrow_copy", same_elements},
      {"aten::repeat", repeat},
      {"aten::tile", repeat},
      {"aten::constant_pad_nd", pad},
      {"aten::pad", pad},
      {"aten::permute", permute},
      {"aten::permute_copy", permute},
      {"aten::transpose", permute},
      {"aten::transpose_copy", permute},
      {"aten::swapaxes", permute},
      {"aten::swapdims", permute},
      {"aten::t", permute},
      {"aten::t_copy", permute},
      {"aten::mT", permute},
      {"aten::dropout", dropout},
      {"aten::feature_dropout", dropout},
      {"aten::alpha_dropout", dropout},
      {"aten::feature_alpha_dropout", dropout},
      {"aten::native_dropout", native_dropout},
      {"aten::add", add},
      {"aten::sub", sub},
      {"aten::mul", mul},
      {"aten::div", div},
      {"aten::pow", pow},
      {"aten::bitwise_and", logical<1>},
      {"aten::logical_and", logical<1>},
      {"aten::bitwise_or", logical<0>},
      {"aten::logical_or", logical<0>},
      {"aten::bitwise_xor", logical<0>},
      {"aten::logical_xor", logical<0>},
      {"aten::where", where},
      {"aten::cat", cat},
      {"aten::concat", cat},
      {"aten::copy", scatter},
      {"aten::slice_scatter", scatter},
      {"aten::split", split},
      {"aten::split_with_sizes", split},
      {"aten::split_copy", split},
      {"aten::split_with_sizes_copy", split},
      {"aten::unsafe_split", split},
      {"aten::unsafe_split_with_sizes", split},
      {"aten::chunk", split},
      {"aten::unsafe_chunk", split},
      {"aten::tensor_split", split},
  };
  const auto found = kRules.find(op);
  return found == kRules.end() ? nullptr : found->second;
}

bool is_empty_part(const Value* part, int64_t dim) {
  // cat also skips 1-dim tensors without elements, whatever the rank of the others.
  if (part->rank() == 1 && part->sizes()[0].is(0)) return true;
  const auto rank = static_cast<int64_t>(part->rank());
  const int64_t wrapped = dim < 0 ? dim + rank : dim;
  return wrapped >= 0 && wrapped < rank && part->sizes()[static_cast<size_t>(wrapped)].is(0);
}

// Drops parts without elements where the rest has the result's dtype already.
bool drop_empty_parts(Node& node) {
  if (!node.is("aten::cat")) return false;
  Values rest = node.tensors("tensors");
  const int64_t dim = node.integer("dim");
  std::erase_if(rest, [dim](const Value* part) { return is_empty_part(part, dim); });
  if (rest.empty() || rest.size() == node.tensors("tensors").size()) return false;
  const ScalarType dtype = node.output()->dtype();
  if (std::any_of(rest.begin(), rest.end(), [dtype](const Value* part) { return part->dtype() != dtype; }))
    return false;
  node.set("tensors", std::move(rest));
  return true;
}

Value* replacement(const Program& program, const Node& node) {
  if (node.outputs().empty() || !node.outputs()[0]->is_tensor() || node.schema().has_side_effects()) return nullptr;
  for (size_t i = 1; i < node.outputs().size(); ++i)
    if (!node.outputs()[i]->uses().empty() || program.graph->is_output(node.outputs()[i])) return nullptr;
  const Rule rule = find_rule(node.schema().base_name());
  Value* same = rule == nullptr ? nullptr : rule(program, node);
  if (same == nullptr || !same->is_tensor() || same->type() != node.outputs()[0]->type()) return nullptr;
  const bool shared = same->producer() == nullptr || program.graph->is_output(same);
  return shared && program.graph->is_output(node.outputs()[0]) ? nullptr : same;
}

}  // namespace

bool remove_no_ops(Program& program) {
  bool changed = false;
  for (auto it = program.graph->begin(); it != program.graph->end();) {
    Node& node = *it;
    ++it;
    changed |= drop_empty_parts(node);
    Value* same = replacement(program, node);
    if (same == nullptr) continue;
    program.replace_all_uses(node.outputs()[0], same);
    program.graph->erase(&node);
    changed = true;
  }
  return changed;
}

}  // namespace transporters
