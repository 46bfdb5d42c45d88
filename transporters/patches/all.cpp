#include "transporters/patches/all.h"

#include "transporters/patches/answer_equal.h"
#include "transporters/registry/registry.h"

namespace transporters {

void register_builtin_patches(Registry& registry) { registry.register_patch("dynamo", {"aten::equal"}, answer_equal); }

}  // namespace transporters
