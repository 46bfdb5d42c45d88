// Same elements, other sizes or order of dimensions.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// Whatever the arguments say (-1, other tensors, dimensions to merge): the output's type has the sizes.
Outputs reshape(Lowering& l, const AtenNode& n) {
  return {l.reshape(l.input(n, "self"), n.tensor("self")->sizes(), out_sizes(n))};
}

// view of another type reads the same bytes as something else.
Outputs view_dtype(Lowering& l, const AtenNode& n) {
  if (n.tensor("self")->dtype() == out_dtype(n)) return {l.input(n, "self")};
  throw l.error(n, "reinterprets bytes as another type, which ONNX can't express before opset 26");
}

Outputs permute(Lowering& l, const AtenNode& n) { return {l.transpose(l.input(n, "self"), l.dims(n, "dims"))}; }

Outputs swap(Lowering& l, Value* x, int64_t rank, int64_t a, int64_t b) {
  if (rank < 2) return {x};
  auto order = iota(rank);
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {l.transpose(x, order)};
}

template <OpName A, OpName B>
Outputs transpose(Lowering& l, const AtenNode& n) {
  return swap(l, l.input(n, "self"), rank(n.tensor("self")), l.dim(n, A.view()), l.dim(n, B.view()));
}

// The last two dimensions.
Outputs matrix_transpose(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.tensor("self"));
  return swap(l, l.input(n, "self"), dims, dims - 2, dims - 1);
}

Outputs reverse_dims(Lowering& l, const AtenNode& n) {
  auto order = iota(rank(n.tensor("self")));
  std::reverse(order.begin(), order.end());
  return {l.transpose(l.input(n, "self"), order)};
}

Outputs movedim(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.tensor("self"));
  const auto source = n.integers("source"), destination = n.integers("destination");
  std::vector<int64_t> order(static_cast<size_t>(dims), -1);
  std::vector<bool> is_moved(static_cast<size_t>(dims));
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = source[i] < 0 ? source[i] + dims : source[i];
    const int64_t to = destination[i] < 0 ? destination[i] + dims : destination[i];
    order[static_cast<size_t>(to)] = from;
    is_moved[static_cast<size_t>(from)] = true;
  }
  size_t rest = 0;
  for (int64_t& dim : order) {
    if (dim >= 0) continue;
    while (is_moved[rest]) ++rest;
    dim = static_cast<int64_t>(rest++);
  }
  return {l.transpose(l.input(n, "self"), order)};
}

Outputs unsqueeze(Lowering& l, const AtenNode& n) {
  const int64_t dim = n.integer("dim");
  return {l.unsqueeze(l.input(n, "self"), {dim < 0 ? dim + rank(n.output()) : dim})};
}

// Dimensions of size 1 among those asked for; a size that may be 1 at run time stays, as the traced type says.
Outputs squeeze(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  std::vector<int64_t> wanted = iota(rank(self));
  if (n.schema().find("dim")) {
    wanted = std::holds_alternative<std::vector<Expr>>(n.get("dim")) ? l.dims(n, "dim")
                                                                     : std::vector<int64_t>{l.dim(n, "dim")};
    // An empty list of dimensions squeezes none of them.
    if (const auto* list = std::get_if<std::vector<Expr>>(&n.get("dim")); list && list->empty()) wanted.clear();
  }
  std::vector<int64_t> dims;
  for (const int64_t dim : wanted) {
    if (dim < rank(self) && size_at(self, dim).is(1)) dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end());
  return {l.squeeze(l.input(n, "self"), dims)};
}

Outputs expand(Lowering& l, const AtenNode& n) {
  return {l.expand(l.input(n, "self"), n.tensor("self")->sizes(), out_sizes(n))};
}

Outputs broadcast_tensors(Lowering& l, const AtenNode& n) {
  const auto values = l.inputs(n, "tensors");
  const auto& tensors = n.tensors("tensors");
  Outputs outputs;
  for (size_t i = 0; i < values.size(); ++i)
    outputs.push_back(l.expand(values[i], tensors[i]->sizes(), out_sizes(n, i)));
  return outputs;
}

// as_strided of a contiguous tensor: element i0, i1, ... lies at offset + i0 * stride0 + i1 * stride1 + ...
Outputs as_strided(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  if (!self->tensor().is_contiguous()) {
    throw l.error(n, "of a tensor that is not contiguous can't be expressed; call contiguous() before");
  }
  const auto strides = n.sizes("stride");
  Value* index = l.size(n.is_none("storage_offset") ? Expr(0) : n.size("storage_offset"));
  const int64_t dims = rank(n.output());
  for (int64_t i = 0; i < dims; ++i) {
    Value* steps =
        l.emit("Mul", {range(l, 0, out_sizes(n)[static_cast<size_t>(i)]), l.size(strides[static_cast<size_t>(i)])});
    index = l.emit("Add", {index, along(l, steps, i, dims)});
  }
  Value* flat = l.emit("Reshape", {l.input(n, "self"), l.vector(std::vector<int64_t>{-1})});
  return {l.emit("Gather", {flat, index})};
}

// [N, C * r * r, H, W] -> [N, C, H * r, W * r]; channel c * r * r + i * r + j goes to row i and column j of its cell.
Outputs pixel_shuffle(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const int64_t dims = rank(self);
  Value* x = l.input(n, "self");
  if (dims == 4) {
    return {l.emit("DepthToSpace", {x}, {{"blocksize", n.integer("upscale_factor")}, {"mode", std::string("CRD")}})};
  }
  const auto batch = std::span(self->sizes()).first(static_cast<size_t>(dims - 3));
  const std::vector<Expr> flat = {symbolic::product(batch), size_at(self, -3), size_at(self, -2), size_at(self, -1)};
  const std::vector<Expr> result = {flat[0], size_at(n.output(), -3), size_at(n.output(), -2), size_at(n.output(), -1)};
  Value* y = l.emit("DepthToSpace", {l.reshape(x, self->sizes(), flat)},
                    {{"blocksize", n.integer("upscale_factor")}, {"mode", std::string("CRD")}});
  return {l.reshape(y, result, out_sizes(n))};
}

// The reverse. SpaceToDepth orders channels otherwise.
Outputs pixel_unshuffle(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const int64_t dims = rank(self), r = n.integer("downscale_factor");
  std::vector<Expr> cells(self->sizes().begin(), self->sizes().end() - 2);
  for (const int64_t i : {-2, -1}) {
    cells.push_back(size_at(n.output(), i));
    cells.push_back(r);
  }
  auto order = iota(dims - 2);
  for (const int64_t i : {1, 3, 0, 2}) order.push_back(dims - 2 + i);
  std::vector<Expr> ordered;
  for (const int64_t i : order) ordered.push_back(cells[static_cast<size_t>(i)]);
  Value* y = l.transpose(l.reshape(l.input(n, "self"), self->sizes(), cells), order);
  return {l.reshape(y, ordered, out_sizes(n))};
}

Outputs channel_shuffle(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  std::vector<Expr> grouped = self->sizes();
  grouped[1] = n.integer("groups");
  grouped.insert(grouped.begin() + 2, symbolic::floor_div(size_at(self, 1), n.integer("groups")));
  auto order = iota(rank(self) + 1);
  std::swap(order[1], order[2]);
  std::vector<Expr> shuffled = grouped;
  std::swap(shuffled[1], shuffled[2]);
  Value* y = l.transpose(l.reshape(l.input(n, "self"), self->sizes(), grouped), order);
  return {l.reshape(y, shuffled, out_sizes(n))};
}

constexpr OpRow kRows[] = {
    {"aten::_reshape_alias", reshape},
    {"aten::_unsafe_view", reshape},
    {"aten::adjoint", matrix_transpose},
    {"aten::as_strided", as_strided},
    {"aten::as_strided_copy", as_strided},
    {"aten::broadcast_tensors", broadcast_tensors},
    {"aten::broadcast_to", expand},
    {"aten::channel_shuffle", channel_shuffle},
    {"aten::expand", expand},
    {"aten::expand_as", expand},
    {"aten::expand_copy", expand},
    {"aten::flatten", reshape},
    {"aten::mT", matrix_transpose},
    {"aten::matrix_H", matrix_transpose},
    {"aten::moveaxis", movedim},
    {"aten::movedim", movedim},
    {"aten::native_channel_shuffle", channel_shuffle},
    {"aten::numpy_T", reverse_dims},
    {"aten::permute", permute},
    {"aten::permute_copy", permute},
    {"aten::pixel_shuffle", pixel_shuffle},
    {"aten::pixel_unshuffle", pixel_unshuffle},
    {"aten::ravel", reshape},
    {"aten::reshape", reshape},
    {"aten::reshape_as", reshape},
    {"aten::squeeze", squeeze},
    {"aten::squeeze_copy", squeeze},
    {"aten::swapaxes", transpose<"axis0", "axis1">},
    {"aten::swapdims", transpose<"dim0", "dim1">},
    {"aten::t", reverse_dims},
    {"aten::t_copy", reverse_dims},
    {"aten::transpose", transpose<"dim0", "dim1">},
    {"aten::transpose_copy", transpose<"dim0", "dim1">},
    {"aten::unflatten", reshape},
    {"aten::unsqueeze", unsqueeze},
    {"aten::unsqueeze_copy", unsqueeze},
    {"aten::view", reshape},
    {"aten::view.dtype", view_dtype},
    {"aten::view_as", reshape},
    {"aten::view_copy", reshape},
};

}  // namespace

std::span<const OpRow> view_ops() { return kRows; }

}  // namespace transporters::onnx
