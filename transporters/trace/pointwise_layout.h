// The memory layout of what pointwise kernels compute.
#pragma once

#include <vector>

#include "transporters/graph/graph.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

// A size or stride at the hints; each symbol that the data decides counts as one large number, so that strides keep
// their order.
int64_t layout_hint(const Expr& expr, const symbolic::ShapeEnv& env);

// Gives the outputs of a pointwise node the strides that ATen's TensorIterator gives them: dims in the order of the
// operands' strides, without gaps. Views of the result depend on it. Strides are compared at the hints.
void keep_layout(const Node& node, std::vector<ValueType>& types, const symbolic::ShapeEnv& env);

}  // namespace transporters
