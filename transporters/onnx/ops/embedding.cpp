// Table look-ups.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Outputs embedding(Lowering& l, const AtenNode& n) {
  return {l.emit("Gather", {l.input(n, "weight"), l.input(n, "indices")})};
}

// Sums, means or maxima of the rows that belong to each bag; bags of one-dimensional indices start at `offsets`.
Outputs embedding_bag(Lowering& l, const AtenNode& n) {
  constexpr int64_t kSum = 0, kMean = 1;
  const ScalarType dtype = out_dtype(n);
  const int64_t mode = n.integer("mode");
  if (n.schema().find("padding_idx") && n.integer_or_none("padding_idx").value_or(-1) != -1) {
    throw l.error(n, "with a padding_idx is not supported; mask those rows before");
  }
  Value* rows = l.emit("Gather", {l.input(n, "weight"), l.input(n, "indices")});  // [count, width]
  if (Value* weights = l.input_or_null(n, "per_sample_weights", dtype)) {
    rows = l.emit("Mul", {rows, l.unsqueeze(weights, {1})});
  }
  // belongs[b, i]: bag b holds index i, which is where the number of offsets up to i is b + 1.
  const Expr count = size_at(n.tensor("indices"), 0);
  const Expr bags = out_sizes(n)[0];
  Value* offsets = l.input(n, "offsets", ScalarType::Long);
  if (n.boolean("include_last_offset")) offsets = l.slice(offsets, 0, Expr(0), Expr(-1));
  Value* started = l.emit("LessOrEqual", {l.unsqueeze(offsets, {1}), range(l, 0, count)});
  Value* bag = l.emit("Sub", {l.reduce("ReduceSum", l.cast(started, ScalarType::Long), {0}, false), l.integer(1)});
  Value* belongs = l.emit("Equal", {l.unsqueeze(range(l, 0, bags), {1}), bag});
  if (mode == kSum || mode == kMean) {
    Value* weights = l.cast(belongs, dtype);
    Value* sum = l.emit("MatMul", {weights, rows});
    if (mode == kSum) return {sum};
    Value* members = l.emit("Max", {l.reduce("ReduceSum", weights, {1}, true), l.scalar(1, dtype)});
    return {l.emit("Div", {sum, members})};
  }
  Value* lowest = l.scalar(dtype == ScalarType::Half ? -65504.0 : -3.4028234e38, dtype);
  Value* kept = l.emit("Where", {l.unsqueeze(belongs, {2}), l.unsqueeze(rows, {0}), lowest});
  Value* largest = l.reduce("ReduceMax", kept, {1}, false);
  Value* is_empty =
      l.emit("Not", {l.cast(l.reduce("ReduceSum", l.cast(belongs, ScalarType::Long), {1}, true), ScalarType::Bool)});
  return {l.emit("Where", {is_empty, l.scalar(0, dtype), largest})};
}

// num_classes of -1 means as many as the largest index asks for, which the output's type then names.
Outputs one_hot(Lowering& l, const AtenNode& n) {
  Value* index = l.input(n, "self");
  Value* depth = n.integer("num_classes") >= 0 ? l.vector(std::vector<int64_t>{n.integer("num_classes")}) : nullptr;
  if (depth == nullptr) {
    Value* largest = l.reduce("ReduceMax", index, iota(rank(n.tensor("self"))), false);
    depth = l.unsqueeze(l.emit("Add", {largest, l.integer(1)}), {0});
  }
  return {l.emit("OneHot", {index, depth, l.vector(std::vector<int64_t>{0, 1})}, {{"axis", int64_t{-1}}})};
}

constexpr OpRow kRows[] = {
    {"aten::_embedding_bag", embedding_bag},
    {"aten::_embedding_bag_forward_only", embedding_bag},
    {"aten::embedding", embedding},
    {"aten::embedding_bag", embedding_bag},
    {"aten::one_hot", one_hot},
};

}  // namespace

std::span<const OpRow> embedding_ops() { return kRows; }

}  // namespace transporters::onnx
