// The built-in patches, one explicit list.
#pragma once

namespace transporters {

class Registry;

void register_builtin_patches(Registry& registry);

}  // namespace transporters
