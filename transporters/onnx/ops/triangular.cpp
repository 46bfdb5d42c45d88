// Diagonals and triangles of matrices.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

template <bool Upper>
Outputs triangle(Lowering& l, const AtenNode& n) {
  return {l.emit("Trilu", {l.input(n, "self"), l.integer(n.integer("diagonal"))}, {{"upper", int64_t{Upper}}})};
}

// The diagonal of dimensions dim1 and dim2, as the last dimension: every (columns + 1)-th element of the flat matrix.
Value* diagonal_of(Lowering& l, Value* x, const AtenValue* self, int64_t dim1, int64_t dim2, int64_t offset,
                   const Expr& length) {
  std::vector<int64_t> order;
  std::vector<Expr> sizes;
  for (int64_t i = 0; i < rank(self); ++i) {
    if (i != dim1 && i != dim2) order.push_back(i);
  }
  const auto kept = static_cast<size_t>(rank(self) - 2);
  order.push_back(dim1);
  order.push_back(dim2);
  for (const int64_t i : order) sizes.push_back(size_at(self, i));
  const Expr columns = sizes.back();
  auto flat = sizes;
  flat.resize(kept);
  flat.push_back(sizes[kept] * columns);
  Value* rows = l.reshape(l.transpose(x, order), sizes, flat);
  const Expr start = offset >= 0 ? Expr(offset) : columns * -offset;
  Value* index = l.emit("Mul", {range(l, 0, length), l.size(columns + 1)});
  if (!start.is(0)) index = l.emit("Add", {index, l.size(start)});
  return l.emit("Gather", {rows, index}, {{"axis", static_cast<int64_t>(kept)}});
}

Outputs diagonal(Lowering& l, const AtenNode& n) {
  return {diagonal_of(l, l.input(n, "self"), n.tensor("self"), l.dim(n, "dim1"), l.dim(n, "dim2"), n.integer("offset"),
                      out_sizes(n).back())};
}

// A matrix for each vector along the last dimension, which becomes its diagonal.
Value* embed(Lowering& l, const AtenNode& n, int64_t offset) {
  const ScalarType dtype = n.tensor("self")->dtype();
  const int64_t dims = rank(n.tensor("self"));
  const Expr length = size_at(n.tensor("self"), -1);
  const int64_t distance = offset < 0 ? -offset : offset;
  // With an offset the matrix is larger, and the vector starts `distance` further along one side.
  Value* x = l.input(n, "self");
  if (distance > 0) {
    std::vector<int64_t> pads(static_cast<size_t>(2 * dims), 0);
    pads.back() = distance;
    x = l.emit("Pad", {x, l.vector(pads)});
  }
  const Expr size = length + distance;
  Value* rows = l.unsqueeze(range(l, 0, size), {1});
  Value* columns = range(l, 0, size);
  Value* on_diagonal = l.emit("Equal", {l.emit("Add", {rows, l.integer(offset)}), columns});
  // Element i stands in row i when above the diagonal, in column i when below.
  x = l.unsqueeze(x, {offset >= 0 ? dims : dims - 1});
  return l.emit("Where", {on_diagonal, x, l.scalar(0, dtype)});
}

Outputs diag_embed(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.output());
  const auto place = [&](std::string_view argument) {
    const int64_t dim = n.integer(argument);
    return dim < 0 ? dim + dims : dim;
  };
  const int64_t dim1 = place("dim1"), dim2 = place("dim2");
  Value* matrices = embed(l, n, n.integer("offset"));  // the last two dimensions
  std::vector<int64_t> order;
  int64_t next = 0;
  for (int64_t i = 0; i < dims; ++i) order.push_back(i == dim1 ? dims - 2 : i == dim2 ? dims - 1 : next++);
  return {l.transpose(matrices, order)};
}

Outputs diag(Lowering& l, const AtenNode& n) {
  if (rank(n.tensor("self")) == 1) return {embed(l, n, n.integer("diagonal"))};
  return {diagonal_of(l, l.input(n, "self"), n.tensor("self"), 0, 1, n.integer("diagonal"), out_sizes(n)[0])};
}

// Coordinates of a triangle's elements, row by row: [2, count].
template <bool Upper>
Outputs triangle_indices(Lowering& l, const AtenNode& n) {
  const std::vector<Expr> sizes = {n.size("row"), n.size("col")};
  const std::vector<Expr> none;
  Value* ones = l.expand(l.integer(1), none, sizes);
  Value* kept = l.emit("Trilu", {ones, l.integer(n.integer("offset"))}, {{"upper", int64_t{Upper}}});
  return {l.emit("NonZero", {kept})};
}

constexpr OpRow kRows[] = {
    {"aten::diag", diag},
    {"aten::diag_embed", diag_embed},
    {"aten::diagonal", diagonal},
    {"aten::diagonal_copy", diagonal},
    {"aten::tril", triangle<false>},
    {"aten::tril_indices", triangle_indices<false>},
    {"aten::triu", triangle<true>},
    {"aten::triu_indices", triangle_indices<true>},
};

}  // namespace

std::span<const OpRow> triangular_ops() { return kRows; }

}  // namespace transporters::onnx
