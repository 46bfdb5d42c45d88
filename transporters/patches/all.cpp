#include "transporters/patches/all.h"

#include "transporters/registry/registry.h"

namespace transporters {

void register_builtin_patches(Registry&) {}

}  // namespace transporters
