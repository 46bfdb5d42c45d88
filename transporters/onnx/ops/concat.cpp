// Tensors put together or repeated.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// An old rule of torch's: one-dimensional tensors without elements are left out whatever the others' sizes.
bool is_left_out(const AtenValue* value, int64_t rank_of_output) {
  return rank(value) == 1 && rank_of_output != 1 && size_at(value, 0).is(0);
}

Outputs cat(Lowering& l, const AtenNode& n) {
  const int64_t dims = rank(n.output());
  const int64_t given = n.schema().find("dim") ? n.integer("dim") : n.integer("axis");
  const int64_t dim = given < 0 ? given + std::max<int64_t>(dims, 1) : given;
  std::vector<Value*> parts;
  for (const AtenValue* held : n.tensors("tensors")) {
    const bool is_empty = is_left_out(held, dims) || size_at(held, dim).is(0);
    if (!is_empty) parts.push_back(l.cast(l.value(held), out_dtype(n)));
  }
  if (parts.empty()) parts.push_back(l.cast(l.value(n.tensors("tensors")[0]), out_dtype(n)));
  return {l.concat(parts, dim)};
}

Outputs stack(Lowering& l, const AtenNode& n) {
  const int64_t given = n.integer("dim");
  const int64_t dim = given < 0 ? given + rank(n.output()) : given;
  std::vector<Value*> parts;
  for (Value* part : l.inputs(n, "tensors", out_dtype(n))) parts.push_back(l.unsqueeze(part, {dim}));
  return {l.concat(parts, dim)};
}

// Whole copies; more repeats than dimensions add dimensions at the front.
Outputs repeat(Lowering& l, const AtenNode& n) {
  auto repeats = n.sizes(n.schema().find("repeats") ? "repeats" : "dims");
  const int64_t dims = rank(n.tensor("self"));
  while (static_cast<int64_t>(repeats.size()) < dims) repeats.insert(repeats.begin(), 1);
  const int64_t added = static_cast<int64_t>(repeats.size()) - dims;
  Value* x = l.unsqueeze(l.input(n, "self"), iota(added));
  const bool repeats_nothing =
      std::all_of(repeats.begin(), repeats.end(), [](const Expr& count) { return count.is(1); });
  return {repeats_nothing ? x : l.emit("Tile", {x, l.shape(repeats)})};
}

// Each element `repeats` times in a row.
Outputs repeat_interleave(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  Value* x = l.input(n, "self");
  std::vector<Expr> sizes = self->sizes();
  int64_t dim = 0;
  if (n.is_none("dim")) {
    sizes = {symbolic::product(sizes)};
    x = l.reshape(x, self->sizes(), sizes);
  } else {
    dim = l.dim(n, "dim");
  }
  auto single = sizes, several = sizes;
  single.insert(single.begin() + dim + 1, 1);
  several.insert(several.begin() + dim + 1, n.size("repeats"));
  return {l.reshape(l.expand(l.unsqueeze(x, {dim + 1}), single, several), several, out_sizes(n))};
}

// For each place of the output the element it repeats: the number of elements that end at or before it. Only the counts
// tell how many places there are.
Value* repeated_index(Lowering& l, Value* repeats) {
  repeats = l.cast(repeats, ScalarType::Long);
  Value* total = l.reduce("ReduceSum", repeats, {0}, false);
  Value* places = l.emit("Range", {l.integer(0), total, l.integer(1)});
  Value* ends = l.emit("CumSum", {repeats, l.integer(0)});
  Value* has_ended = l.emit("LessOrEqual", {l.unsqueeze(ends, {0}), l.unsqueeze(places, {1})});
  return l.reduce("ReduceSum", l.cast(has_ended, ScalarType::Long), {1}, false);
}

Outputs repeat_interleave_index(Lowering& l, const AtenNode& n) { return {repeated_index(l, l.input(n, "repeats"))}; }

Outputs repeat_interleave_tensor(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const AtenValue* repeats = n.tensor("repeats");
  Value* x = l.input(n, "self");
  int64_t dim = 0;
  Expr count;
  if (n.is_none("dim")) {
    count = symbolic::product(self->sizes());
    const std::vector<Expr> flat = {count};
    x = l.reshape(x, self->sizes(), flat);
  } else {
    dim = l.dim(n, "dim");
    count = size_at(self, dim);
  }
  // One count for all.
  Value* counts = l.input(n, "repeats");
  if (rank(repeats) == 0 || size_at(repeats, 0).is(1)) {
    const std::vector<Expr> all = {count}, one = {1};
    counts = l.expand(rank(repeats) == 0 ? l.unsqueeze(counts, {0}) : counts, one, all);
  }
  return {l.emit("Gather", {x, repeated_index(l, counts)}, {{"axis", dim}})};
}

// All combinations of the elements of one-dimensional tensors, as one grid per tensor.
Outputs meshgrid(Lowering& l, const AtenNode& n) {
  const auto& tensors = n.tensors("tensors");
  const auto count = static_cast<int64_t>(tensors.size());
  const bool swaps = n.schema().find("indexing") && n.string("indexing") == "xy" && count >= 2;
  Outputs outputs;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = swaps && i < 2 ? 1 - i : i;
    const AtenValue* held = tensors[static_cast<size_t>(i)];
    Value* x = l.value(held);
    if (rank(held) == 0) x = l.unsqueeze(x, {0});
    std::vector<Expr> from(static_cast<size_t>(count), 1);
    from[static_cast<size_t>(dim)] = rank(held) == 0 ? Expr(1) : size_at(held, 0);
    outputs.push_back(l.expand(along(l, x, dim, count), from, out_sizes(n, static_cast<size_t>(i))));
  }
  return outputs;
}

constexpr OpRow kRows[] = {
    {"aten::cat", cat},
    {"aten::concat", cat},
    {"aten::concatenate", cat},
    {"aten::meshgrid", meshgrid},
    {"aten::repeat", repeat},
    {"aten::repeat_interleave.Tensor", repeat_interleave_index},
    {"aten::repeat_interleave.self_Tensor", repeat_interleave_tensor},
    {"aten::repeat_interleave.self_int", repeat_interleave},
    {"aten::stack", stack},
    {"aten::tile", repeat},
};

}  // namespace

std::span<const OpRow> concat_ops() { return kRows; }

}  // namespace transporters::onnx
