// Removes nodes that nothing reads, and state that nothing reads.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Removes nodes whose outputs are read by no node and no output, and which no symbol in use comes from. Nodes with side
// effects (asserts) stay. Parameters, buffers and constants without uses leave the signature and the state, unless a
// mutation writes to them; unused user inputs stay. Symbols that no value has any more lose their range and hint.
// Tested in tests/passes/test_eliminate_dead_code.cpp.
bool eliminate_dead_code(Program& program);

}  // namespace transporters
