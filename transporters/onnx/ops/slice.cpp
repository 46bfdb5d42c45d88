// Parts of a tensor along dimensions.
#include <limits>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// Slice counts negative bounds from the end and clamps as torch does.
Outputs slice(Lowering& l, const AtenNode& n) {
  const Expr start = n.is_none("start") ? Expr(0) : n.size("start");
  const Expr end = n.is_none("end") ? Expr(kEnd) : n.size("end");
  const int64_t dim = l.dim(n, "dim"), step = n.integer("step");
  Value* x = l.input(n, "self");
  const bool is_whole = start.is(0) && step == 1 && (end.is(kEnd) || end == size_at(n.tensor("self"), dim));
  return {is_whole ? x : l.slice(x, dim, start, end, step)};
}

Outputs narrow(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  Expr start = n.size("start");
  if (const auto constant = start.as_integer(); constant && *constant < 0)
    start = start + size_at(n.tensor("self"), dim);
  return {l.slice(l.input(n, "self"), dim, start, start + n.size("length"))};
}

Outputs select(Lowering& l, const AtenNode& n) {
  return {l.emit("Gather", {l.input(n, "self"), l.size(n.size("index"))}, {{"axis", l.dim(n, "dim")}})};
}

// Every op that cuts a tensor in parts: the outputs' types say how long each is.
Outputs split(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  const int64_t dim = n.schema().find("dim") ? l.dim(n, "dim") : 0;
  if (n.outputs().size() == 1) return {x};
  std::vector<Expr> sizes;
  for (const AtenValue* output : n.outputs()) sizes.push_back(output->sizes()[static_cast<size_t>(dim)]);
  return l.emit_many("Split", {x, l.shape(sizes)}, {{"axis", dim}}, sizes.size());
}

Outputs unbind(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  Value* x = l.input(n, "self");
  Outputs outputs;
  for (size_t i = 0; i < n.outputs().size(); ++i) {
    Value* index = l.integer(static_cast<int64_t>(i));
    outputs.push_back(is_used(n.outputs()[i]) ? l.emit("Gather", {x, index}, {{"axis", dim}}) : nullptr);
  }
  return outputs;
}

Outputs flip(Lowering& l, const AtenNode& n) {
  const auto dims = n.integers("dims").empty() ? std::vector<int64_t>{} : l.dims(n, "dims");
  Value* x = l.input(n, "self");
  if (dims.empty() || rank(n.tensor("self")) == 0) return {x};
  const std::vector<int64_t> last(dims.size(), -1), before_first(dims.size(), std::numeric_limits<int64_t>::min());
  return {l.emit("Slice", {x, l.vector(last), l.vector(before_first), l.vector(dims), l.vector(last)})};
}

template <int64_t Dim>
Outputs flip_one(Lowering& l, const AtenNode& n) {
  Value* last = l.vector(std::vector<int64_t>{-1});
  Value* before_first = l.vector(std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
  return {l.slice(l.input(n, "self"), Dim, last, before_first, -1)};
}

// The last `shift` elements go to the front; without dimensions, of the flattened tensor.
Value* roll_one(Lowering& l, Value* x, int64_t dim, const Expr& size, const Expr& shift) {
  if (shift.is(0) || size.is(1)) return x;
  // x[-shift % size:] then x[:-shift % size]
  const Expr start = symbolic::mod(-shift, size);
  if (start.is(0)) return x;
  return l.concat({l.slice(x, dim, start, kEnd), l.slice(x, dim, 0, start)}, dim);
}

Outputs roll(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  Value* x = l.input(n, "self");
  const auto shifts = n.sizes("shifts");
  if (n.integers("dims").empty()) {
    const std::vector<Expr> flat = {symbolic::product(self->sizes())};
    Value* rolled = roll_one(l, l.reshape(x, self->sizes(), flat), 0, flat[0], shifts[0]);
    return {l.reshape(rolled, flat, self->sizes())};
  }
  const auto dims = l.dims(n, "dims");
  for (size_t i = 0; i < dims.size(); ++i) x = roll_one(l, x, dims[i], size_at(self, dims[i]), shifts[i]);
  return {x};
}

// Windows of `size` elements, `step` apart, along a dimension; the place inside the window becomes the last dimension.
Outputs unfold(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  Value* x = l.input(n, "self");
  if (rank(self) == 0) return {l.unsqueeze(x, {0})};
  const int64_t dim = l.dim(n, "dimension"), step = n.integer("step");
  const Expr windows = out_sizes(n)[static_cast<size_t>(dim)];
  Value* starts = range(l, 0, windows * step, step);
  Value* index = l.emit("Add", {l.unsqueeze(starts, {1}), range(l, 0, n.size("size"))});
  Value* gathered = l.emit("Gather", {x, index}, {{"axis", dim}});  // window, place at dim, dim + 1
  return {l.transpose(gathered, moved(rank(self) + 1, dim + 1, rank(self)))};
}

constexpr OpRow kRows[] = {
    {"aten::chunk", split},
    {"aten::flip", flip},
    {"aten::fliplr", flip_one<1>},
    {"aten::flipud", flip_one<0>},
    {"aten::narrow", narrow},
    {"aten::narrow_copy", narrow},
    {"aten::roll", roll},
    {"aten::select", select},
    {"aten::select_copy", select},
    {"aten::slice", slice},
    {"aten::slice_copy", slice},
    {"aten::split", split},
    {"aten::split_copy", split},
    {"aten::split_with_sizes", split},
    {"aten::split_with_sizes_copy", split},
    {"aten::tensor_split", split},
    {"aten::unbind", unbind},
    {"aten::unbind_copy", unbind},
    {"aten::unfold", unfold},
    {"aten::unfold_copy", unfold},
    {"aten::unsafe_chunk", split},
    {"aten::unsafe_split", split},
    {"aten::unsafe_split_with_sizes", split},
};

}  // namespace

std::span<const OpRow> slice_ops() { return kRows; }

}  // namespace transporters::onnx
