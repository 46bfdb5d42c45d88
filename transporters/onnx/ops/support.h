// What several op families share.
#pragma once

#include <cstdint>
#include <vector>

#include "transporters/onnx/op_table.h"

namespace transporters::onnx {

inline int64_t rank(const AtenValue* value) { return static_cast<int64_t>(value->rank()); }
// The i-th size; i counts from the end when negative.
inline const Expr& size_at(const AtenValue* value, int64_t i) {
  return value->sizes()[static_cast<size_t>(i < 0 ? i + rank(value) : i)];
}
inline ScalarType out_dtype(const AtenNode& node, size_t index = 0) { return node.outputs()[index]->dtype(); }
inline const std::vector<Expr>& out_sizes(const AtenNode& node, size_t index = 0) {
  return node.outputs()[index]->sizes();
}
inline bool is_used(const AtenValue* value) { return !value->uses().empty() || value->graph().is_output(value); }
inline bool is_real(ScalarType dtype) { return c10::isFloatingType(dtype); }
inline bool is_half(ScalarType dtype) { return dtype == ScalarType::Half || dtype == ScalarType::BFloat16; }

// 0, 1, ..., count - 1.
std::vector<int64_t> iota(int64_t count);
// The order of dimensions that moves dimension `from` to place `to`.
std::vector<int64_t> moved(int64_t rank, int64_t from, int64_t to);
// An order of dimensions undone.
std::vector<int64_t> inverse(const std::vector<int64_t>& order);
// Sizes that broadcasting gives.
std::vector<Expr> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b);
// [start, start + step, ...] as 1-D int64, up to but without `end`; constant where the bounds are.
Value* range(Lowering& l, const Expr& start, const Expr& end, int64_t step = 1);

// Rounds toward zero.
Value* truncate(Lowering& l, Value* value);
// Quotient of integers, rounded toward minus infinity as Python's //.
Value* floor_divide_integers(Lowering& l, Value* a, Value* b);
// Negative indices count from the end: the same index from the start.
Value* wrap_index(Lowering& l, Value* index, const Expr& size);
// `value` reshaped from a 1-D tensor so that it broadcasts along `dim` of a tensor of `rank` dimensions.
Value* along(Lowering& l, Value* value, int64_t dim, int64_t rank);
// A list with one entry per spatial dimension: a single given one stands for all.
std::vector<int64_t> per_dimension(const AtenNode& node, std::string_view argument, size_t count);

}  // namespace transporters::onnx
