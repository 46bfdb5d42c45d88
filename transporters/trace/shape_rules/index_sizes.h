// Sizes of advanced indexing, which reading (index) and writing (index_put) share.
#pragma once

#include <vector>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {

// The sizes of self[indices]; null for a dim that is kept whole. A mask of booleans gives an unbacked size. Throws
// Error when the indices do not fit.
Sizes indexed_sizes(const Node& node, const TensorType& self, const std::vector<const TensorType*>& indices,
                    ShapeEnv& env);

}  // namespace transporters::shape_rules
