// Memory layouts of tensors with symbolic sizes and strides, as c10::TensorImpl defines them for numbers.
//
// Questions are answered as for sizes of at least 2: what is contiguous then is so at 0 and 1 too. Where that leaves a
// question open the answer is no, and nothing is recorded.
#pragma once

#include <span>

#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {

bool is_contiguous(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides);
// Channels last: the strides of a dense tensor whose channels (axis 1) vary fastest; 4 axes (2d) or 5 (3d).
bool is_channels_last_contiguous(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides,
                                 size_t rank);
// As above, without density: the order of the strides alone.
bool is_channels_last_strides(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides,
                              size_t rank);
// Dense in some order of the axes.
bool is_non_overlapping_and_dense(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides);

}  // namespace transporters::symbolic
