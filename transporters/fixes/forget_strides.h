// Drops the strides of a node's outputs, for targets whose tensors have none: clone, contiguous and reshape are then
// seen to change nothing. Values that as_strided or view.dtype read keep theirs.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Returns whether an output had strides.
bool forget_strides(Program& program, Node& node);

}  // namespace transporters
