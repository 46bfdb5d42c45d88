#include "transporters/passes/relax_views.h"

#include "transporters/passes/rewrite.h"

namespace transporters {

bool relax_views(Program& program) {
  bool changed = false;
  for (auto it = program.graph->begin(); it != program.graph->end();) {
    Node& node = *it++;
    if (!node.is("aten::view") || node.tensor("self")->producer() == nullptr) continue;
    replace_node(program, &node, "aten::reshape", {{"self", node.tensor("self")}, {"shape", *node.try_get("size")}});
    changed = true;
  }
  return changed;
}

}  // namespace transporters
