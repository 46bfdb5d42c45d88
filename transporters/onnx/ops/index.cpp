// Indexing with tensors, x[i, :, mask] and its assignments.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// The integer tensor for one indexed dimension.
struct DimIndex {
  int64_t dim;
  Value* index;
  std::vector<Expr> sizes;
};

// Masks become the coordinates of their true elements, one tensor for each of their dimensions.
std::vector<DimIndex> read_indices(Lowering& l, const AtenNode& n) {
  std::vector<DimIndex> indices;
  int64_t dim = 0;
  for (const AtenValue* held : n.tensors("indices")) {
    if (held == nullptr) {
      ++dim;
      continue;
    }
    Value* value = l.value(held);
    if (held->dtype() != ScalarType::Bool && held->dtype() != ScalarType::Byte) {
      indices.push_back({dim++, l.cast(value, ScalarType::Long), held->sizes()});
      continue;
    }
    Value* coordinates = l.emit("NonZero", {value});
    // The number of true elements has no name here; any one that is not 1 keeps broadcasting right.
    const std::vector<Expr> count = {Expr::symbol("count_of_" + held->name())};
    for (int64_t i = 0; i < rank(held); ++i) {
      indices.push_back({dim++, l.emit("Gather", {coordinates, l.integer(i)}), count});
    }
  }
  return indices;
}

std::vector<Expr> index_sizes(const std::vector<DimIndex>& indices) {
  std::vector<Expr> sizes;
  for (const auto& index : indices) sizes = broadcast(sizes, index.sizes);
  return sizes;
}

bool are_adjacent(const std::vector<DimIndex>& indices) {
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i].dim != indices[i - 1].dim + 1) return false;
  }
  return true;
}

// [index sizes..., number of indexed dimensions] for GatherND and ScatterND.
Value* stack(Lowering& l, const std::vector<DimIndex>& indices) {
  const auto sizes = index_sizes(indices);
  const auto last = static_cast<int64_t>(sizes.size());
  // Shapes that differ meet in their sum's shape: nothing has to know the sizes of masks.
  bool are_same = true;
  for (const auto& index : indices) are_same = are_same && index.sizes == sizes;
  Value* shape = nullptr;
  if (!are_same) {
    Value* sum = indices[0].index;
    for (size_t i = 1; i < indices.size(); ++i) sum = l.emit("Add", {sum, indices[i].index});
    shape = l.emit("Shape", {sum});
  }
  std::vector<Value*> parts;
  for (const auto& index : indices) {
    Value* part = index.sizes == sizes ? index.index : l.emit("Expand", {index.index, shape});
    parts.push_back(l.unsqueeze(part, {last}));
  }
  return l.concat(parts, -1);
}

// The order of dimensions that puts the indexed ones first.
std::vector<int64_t> indexed_first(const std::vector<DimIndex>& indices, int64_t rank) {
  std::vector<int64_t> order;
  for (const auto& index : indices) order.push_back(index.dim);
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (std::find(order.begin(), order.end(), dim) == order.end()) order.push_back(dim);
  }
  return order;
}

// Where torch puts the index's dimensions in the result: in place of the indexed ones when those stand together,
// otherwise first. The order of dimensions that moves them there from the front.
std::vector<int64_t> from_front(const std::vector<DimIndex>& indices, int64_t rank) {
  const auto index_rank = static_cast<int64_t>(index_sizes(indices).size());
  const int64_t result_rank = rank - static_cast<int64_t>(indices.size()) + index_rank;
  const int64_t first = are_adjacent(indices) ? indices[0].dim : 0;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < first; ++i) order.push_back(index_rank + i);
  for (int64_t i = 0; i < index_rank; ++i) order.push_back(i);
  for (int64_t i = index_rank + first; i < result_rank; ++i) order.push_back(i);
  return order;
}

Outputs index(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.tensor("self"));
  Value* x = l.input(n, "self");
  const auto indices = read_indices(l, n);
  if (indices.empty()) return {x};
  // Gather puts the index's dimensions where the indexed one was, and counts negative indices from the end.
  if (indices.size() == 1) return {l.emit("Gather", {x, indices[0].index}, {{"axis", indices[0].dim}})};
  x = l.transpose(x, indexed_first(indices, dims));
  return {l.transpose(l.emit("GatherND", {x, stack(l, indices)}), from_front(indices, dims))};
}

// One mask over the leading dimensions, and values that broadcast: no coordinates needed.
Value* fill_masked(Lowering& l, const AtenNode& n) {
  const auto& given = n.tensors("indices");
  const AtenValue* values = n.tensor("values");
  if (given.size() != 1 || given[0]->dtype() != ScalarType::Bool || n.boolean("accumulate")) return nullptr;
  const bool is_one =
      std::all_of(values->sizes().begin(), values->sizes().end(), [](const Expr& size) { return size.is(1); });
  if (!is_one) return nullptr;
  std::vector<int64_t> trailing;
  for (int64_t i = rank(given[0]); i < rank(n.tensor("self")); ++i) trailing.push_back(i);
  Value* mask = l.unsqueeze(l.value(given[0]), trailing);
  Value* value = l.reshape(l.input(n, "values", out_dtype(n)), values->sizes(), {});
  return l.emit("Where", {mask, value, l.input(n, "self")});
}

Outputs index_put(Lowering& l, const AtenNode& n) {
  if (Value* filled = fill_masked(l, n)) return {filled};
  const AtenValue* self = n.tensor("self");
  const int64_t dims = rank(self);
  Value* x = l.input(n, "self");
  Value* values = l.input(n, "values", out_dtype(n));
  const auto indices = read_indices(l, n);
  if (indices.empty()) {
    values = l.expand(values, n.tensor("values")->sizes(), self->sizes());
    return {n.boolean("accumulate") ? l.emit("Add", {x, values}) : values};
  }

  const auto order = indexed_first(indices, dims);
  const auto placed = from_front(indices, dims);
  Value* stacked = stack(l, indices);
  // Values broadcast to what x[indices] would give, then move the index's dimensions to the front.
  std::vector<Expr> front = index_sizes(indices);
  const size_t index_rank = front.size();
  for (size_t i = indices.size(); i < order.size(); ++i) front.push_back(size_at(self, order[i]));
  std::vector<Expr> target;
  for (const int64_t dim : placed) target.push_back(front[static_cast<size_t>(dim)]);
  const auto& given = n.tensor("values")->sizes();
  const bool has_mask = std::any_of(n.tensors("indices").begin(), n.tensors("indices").end(),
                                    [](const AtenValue* held) { return held && held->dtype() == ScalarType::Bool; });
  if (has_mask) {
    // Only the coordinates tell how many elements there are: shape of the index, then the sizes that are kept.
    Value* shape = l.slice(l.emit("Shape", {stacked}), 0, Expr(0), Expr(static_cast<int64_t>(index_rank)));
    const std::span<const Expr> kept = std::span(front).subspan(index_rank);
    if (!kept.empty()) shape = l.concat({shape, l.shape(kept)}, 0);
    std::vector<int64_t> from_placed = inverse(placed);
    // Values get all dimensions of the target, then its order.
    std::vector<int64_t> missing = iota(static_cast<int64_t>(target.size() - given.size()));
    values = l.emit("Expand", {l.transpose(l.unsqueeze(values, missing), from_placed), shape});
  } else {
    values = l.transpose(l.expand(values, given, target), inverse(placed));
  }
  Attributes attributes;
  if (n.boolean("accumulate")) attributes.push_back({"reduction", std::string("add")});
  Value* y = l.emit("ScatterND", {l.transpose(x, order), stacked, values}, attributes);
  return {l.transpose(y, inverse(order))};
}

constexpr OpRow kRows[] = {
    {"aten::_index_put_impl", index_put},   {"aten::_unsafe_index", index},
    {"aten::_unsafe_index_put", index_put}, {"aten::index", index},
    {"aten::index_put", index_put},
};

}  // namespace

std::span<const OpRow> index_ops() { return kRows; }

}  // namespace transporters::onnx
