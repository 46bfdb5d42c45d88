// Computes equal things once.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Replaces a node by an earlier one of the same op with identical arguments and output types. Random ops and ops with
// side effects stay, and so do ops that give a fresh symbol each (nonzero), as their types differ.
// Tested in tests/passes/test_merge_common_subexpressions.cpp.
bool merge_common_subexpressions(Program& program);

}  // namespace transporters
