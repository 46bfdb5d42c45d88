// The built-in node and program fixes, one explicit list.
#pragma once

namespace transporters {

class Registry;

void register_builtin_fixes(Registry& registry);

}  // namespace transporters
