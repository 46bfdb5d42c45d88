#include "transporters/fixes/all.h"

#include "transporters/fixes/forget_strides.h"
#include "transporters/registry/registry.h"

namespace transporters {

void register_builtin_fixes(Registry& registry) {
  registry.register_fx_node_fix("onnx", "forget_strides", forget_strides);
}

}  // namespace transporters
