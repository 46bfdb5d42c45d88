#include "transporters/passes/merge_common_subexpressions.h"

#include <algorithm>
#include <unordered_map>

namespace transporters {
namespace {

size_t hash(const Node& node) {
  size_t seed = std::hash<const void*>()(&node.schema());
  for (const auto& argument : node.arguments()) {
    const size_t part = std::hash<std::string>()(argument.name) ^ hash_argument(argument.value);
    seed ^= part + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  }
  return seed;
}

bool same_computation(const Node& a, const Node& b) {
  const auto same_argument = [](const NamedArgument& x, const NamedArgument& y) {
    return x.name == y.name && identical(x.value, y.value);
  };
  const auto same_type = [](const Value* x, const Value* y) { return x->type() == y->type(); };
  return &a.schema() == &b.schema() && std::ranges::equal(a.arguments(), b.arguments(), same_argument) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_type);
}

}  // namespace

bool merge_common_subexpressions(Program& program) {
  Graph& graph = *program.graph;
  bool changed = false;
  std::unordered_multimap<size_t, Node*> seen;
  for (auto it = graph.begin(); it != graph.end();) {
    Node* node = &*it;
    ++it;
    if (node->schema().is_random || node->schema().has_side_effects()) continue;
    const size_t key = hash(*node);
    const auto [first, last] = seen.equal_range(key);
    const auto earlier =
        std::find_if(first, last, [&](const auto& entry) { return same_computation(*entry.second, *node); });
    if (earlier == last) {
      seen.emplace(key, node);
      continue;
    }
    for (size_t i = 0; i < node->outputs().size(); ++i)
      program.replace_all_uses(node->outputs()[i], earlier->second->outputs()[i]);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace transporters
