#include "transporters/fixes/all.h"

#include "transporters/registry/registry.h"

namespace transporters {

void register_builtin_fixes(Registry&) {}

}  // namespace transporters
