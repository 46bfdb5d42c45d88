// Asking ATen's meta kernels for shapes: for ops without a rule, and to check the rules.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

#include "transporters/graph/graph.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

// Output types of an op without a rule: its meta kernel runs at the example sizes and at several others, and every
// output size is read as the simplest expression over the arguments' sizes that agrees with all answers.
// `stack` ends with the op's arguments. Throws Error when the op has no meta kernel or no expression agrees.
std::vector<ValueType> probe_types(const c10::OperatorHandle& op, const Node& node, const torch::jit::Stack& stack,
                                   symbolic::ShapeEnv& env);

// Throws InternalError when `types` at the hints differ from the meta kernel's answer. Ops without a meta kernel, and
// sizes that depend on data, pass.
void check_types(const c10::OperatorHandle& op, const Node& node, const torch::jit::Stack& stack,
                 const std::vector<ValueType>& types, symbolic::ShapeEnv& env);

}  // namespace transporters
