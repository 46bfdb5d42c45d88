// Lets a program run whatever memory layout torch's kernels give their results.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Turns aten::view of what a node computes into aten::reshape, which gives the same values and is a view where one is
// possible. A kernel may lay out its result otherwise than the traced strides say (TensorIterator keeps permutations of
// its inputs), and a view of that would fail when the program runs.
// Tested in tests/passes/test_relax_views.cpp.
bool relax_views(Program& program);

}  // namespace transporters
