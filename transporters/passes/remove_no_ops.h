// Removes nodes that give back one of their inputs.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Replaces the output of a node by an input of equal value: copies, casts to the same dtype, views to the same sizes,
// slices of everything, x + 0, x * 1, x & True, dropout outside training, cat and split of one, transposing twice.
// Only when dtype, sizes and strides are equal by their canonical forms, so that promotion, broadcasting and views of
// the result stay as they were. Empty parts of a cat are dropped. A graph output is never replaced by a graph input or
// another output: callers may write to one of them.
// Tested in tests/passes/test_remove_no_ops.cpp.
bool remove_no_ops(Program& program);

}  // namespace transporters
