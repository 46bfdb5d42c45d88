#include "transporters/passes/canonicalize_views.h"

#include <algorithm>

#include "transporters/passes/rewrite.h"

namespace transporters {
namespace {

bool is_squeeze(const Node& node) {
  const auto base = node.schema().base_name();
  return base.starts_with("aten::squeeze") || base.starts_with("aten::unsqueeze");
}

// A reshape that never copies, so that its strides allow what follows.
bool is_pure_view(const Node& node) {
  const auto base = node.schema().base_name();
  return base == "aten::view" || base == "aten::_unsafe_view" || base == "aten::unflatten" || is_squeeze(node);
}

bool may_replace(const Program& program, const Value* output, const Value* by) {
  // A graph output stays apart from inputs and other outputs, which callers may write to.
  const bool shared = by->producer() == nullptr || program.graph->is_output(by);
  return output->type() == by->type() && !(shared && program.graph->is_output(output));
}

bool merge_permutations(Program& program, Node& node) {
  const auto order = permutation_of(node);
  if (!order) return false;
  Node* producer = first_tensor(node)->producer();
  const auto before = producer == nullptr ? std::nullopt : permutation_of(*producer);
  if (!before) return false;
  std::vector<Expr> dims;
  for (const int64_t dim : *order) dims.emplace_back(before->at(static_cast<size_t>(dim)));
  replace_node(program, &node, "aten::permute", {{"self", first_tensor(*producer)}, {"dims", std::move(dims)}});
  return true;
}

bool merge_reshapes(Program& program, Node& node) {
  if (!is_reshape(node)) return false;
  Node* producer = first_tensor(node)->producer();
  if (producer == nullptr || !is_reshape(*producer)) return false;
  Value* output = node.output();
  for (Node* earlier = producer; earlier != nullptr && is_reshape(*earlier);
       earlier = first_tensor(*earlier)->producer()) {
    if (!may_replace(program, output, first_tensor(*earlier))) continue;
    program.replace_all_uses(output, first_tensor(*earlier));
    program.graph->erase(&node);
    return true;
  }
  if (is_squeeze(node) && is_squeeze(*producer)) return false;
  Value* source = first_tensor(*producer);
  const bool view = source->tensor().is_contiguous() || (is_pure_view(node) && is_pure_view(*producer));
  replace_node(program, &node, view ? "aten::view" : "aten::reshape",
               {{"self", source}, {view ? "size" : "shape", output->sizes()}});
  return true;
}

bool merge_expands(Program& program, Node& node) {
  if (!node.is("aten::expand")) return false;
  Node* producer = node.tensor("self")->producer();
  if (producer == nullptr || !producer->is("aten::expand")) return false;
  replace_node(program, &node, "aten::expand", {{"self", producer->tensor("self")}, {"size", node.output()->sizes()}});
  return true;
}

}  // namespace

bool canonicalize_views(Program& program) {
  bool changed = false;
  // In execution order a node's producer is canonical already, so that one look back is enough.
  for (auto it = program.graph->begin(); it != program.graph->end();) {
    Node& node = *it;
    ++it;
    changed |= merge_permutations(program, node) || merge_reshapes(program, node) || merge_expands(program, node);
  }
  return changed;
}

}  // namespace transporters
