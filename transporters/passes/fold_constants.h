// Computes ahead what depends on constants alone.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Evaluates, through libtorch, the nodes that read nothing but constants of the program (lifted tensors and numbers)
// and have fixed sizes, and puts their results into the state as new constants ("folded_NAME"). Parameters and buffers
// are no constants: their bytes are the user's and are never copied into folded forms. Random ops, ops with side
// effects and results over 1 MiB that are also larger than the constants they come from stay; so do lone fills (full,
// arange), which are smaller than their result.
// Tested in tests/passes/test_fold_constants.cpp.
bool fold_constants(Program& program);

}  // namespace transporters
