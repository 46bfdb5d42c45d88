#include "transporters/fixes/forget_strides.h"

#include <algorithm>

namespace transporters {
namespace {

// What reads the layout of its argument, not only its elements.
bool reads_strides(const Node& node) {
  return node.schema().base_name().starts_with("aten::as_strided") || node.is("aten::view.dtype") ||
         node.is("aten::view_copy.dtype");
}

}  // namespace

bool forget_strides(Program&, Node& node) {
  bool changed = false;
  for (Value* output : node.outputs()) {
    if (!output->is_tensor() || output->tensor().strides.empty()) continue;
    const auto& uses = output->uses();
    if (std::any_of(uses.begin(), uses.end(), [](const Use& use) { return reads_strides(*use.node); })) continue;
    TensorType type = output->tensor();
    type.strides.clear();
    output->set_type(std::move(type));
    changed = true;
  }
  return changed;
}

}  // namespace transporters
