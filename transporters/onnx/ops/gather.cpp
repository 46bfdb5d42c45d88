// Elements picked by indices along one dimension.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Outputs gather(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  Value* index = l.input(n, "index", ScalarType::Long);
  if (rank(n.tensor("self")) > 0) return {l.emit("GatherElements", {x, index}, {{"axis", l.dim(n, "dim")}})};
  // A scalar has one element to pick, as often as there are indices.
  const std::vector<Expr> none;
  return {l.expand(x, none, out_sizes(n))};
}

// The sizes broadcast but for the dimension itself.
Outputs take_along_dim(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const AtenValue* indices = n.tensor("indices");
  Value* x = l.input(n, "self");
  Value* index = l.input(n, "indices");
  if (n.is_none("dim")) {
    const std::vector<int64_t> flat = {-1};
    return {
        l.emit("GatherElements", {l.emit("Reshape", {x, l.vector(flat)}), l.emit("Reshape", {index, l.vector(flat)})})};
  }
  const auto dim = static_cast<size_t>(l.dim(n, "dim"));
  auto x_sizes = broadcast(self->sizes(), indices->sizes()), index_sizes = x_sizes;
  x_sizes[dim] = self->sizes()[dim];
  index_sizes[dim] = indices->sizes()[dim];
  index = wrap_index(l, index, x_sizes[dim]);
  return {l.emit("GatherElements",
                 {l.expand(x, self->sizes(), x_sizes), l.expand(index, indices->sizes(), index_sizes)},
                 {{"axis", static_cast<int64_t>(dim)}})};
}

Outputs index_select(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  Value* index = l.input(n, "index");
  if (rank(n.tensor("self")) == 0) return {x};
  if (rank(n.tensor("index")) == 0) index = l.unsqueeze(index, {0});
  return {l.emit("Gather", {x, index}, {{"axis", l.dim(n, "dim")}})};
}

// Indices into the flattened tensor.
Outputs take(Lowering& l, const AtenNode& n) {
  Value* flat = l.emit("Reshape", {l.input(n, "self"), l.vector(std::vector<int64_t>{-1})});
  return {l.emit("Gather", {flat, l.input(n, "index")})};
}

// One row of coordinates per nonzero element.
Outputs nonzero(Lowering& l, const AtenNode& n) {
  return {l.emit("Transpose", {l.emit("NonZero", {l.input(n, "self")})}, {{"perm", std::vector<int64_t>{1, 0}}})};
}

// nonzero, one output per dimension.
Value* coordinates(Lowering& l, const AtenNode& n, Value* condition, size_t dim) {
  Value* all = l.emit("NonZero", {condition});
  return is_used(n.outputs()[dim]) ? l.emit("Gather", {all, l.integer(static_cast<int64_t>(dim))}) : nullptr;
}

template <OpName Argument>
Outputs nonzero_tuple(Lowering& l, const AtenNode& n) {
  Value* condition = l.input(n, Argument.view());
  Outputs outputs;
  for (size_t i = 0; i < n.outputs().size(); ++i) outputs.push_back(coordinates(l, n, condition, i));
  return outputs;
}

Outputs argwhere(Lowering& l, const AtenNode& n) { return nonzero(l, n); }

Outputs masked_select(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const AtenValue* mask = n.tensor("mask");
  const auto sizes = broadcast(self->sizes(), mask->sizes());
  const std::vector<int64_t> flat = {-1};
  Value* x = l.emit("Reshape", {l.expand(l.input(n, "self"), self->sizes(), sizes), l.vector(flat)});
  Value* kept = l.emit("Reshape", {l.expand(l.input(n, "mask"), mask->sizes(), sizes), l.vector(flat)});
  return {l.emit("Compress", {x, kept}, {{"axis", int64_t{0}}})};
}

constexpr OpRow kRows[] = {
    {"aten::argwhere", argwhere},
    {"aten::gather", gather},
    {"aten::index_select", index_select},
    {"aten::masked_select", masked_select},
    {"aten::nonzero", nonzero},
    {"aten::nonzero_numpy", nonzero_tuple<"self">},
    {"aten::take", take},
    {"aten::take_along_dim", take_along_dim},
    {"aten::where", nonzero_tuple<"condition">},
};

}  // namespace

std::span<const OpRow> gather_ops() { return kRows; }

}  // namespace transporters::onnx
