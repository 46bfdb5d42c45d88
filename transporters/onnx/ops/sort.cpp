// Order: sorting, the largest, search in sorted tensors, distinct elements.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// (values, indices); equal elements keep their order. A scalar is sorted already.
Outputs top(Lowering& l, const AtenNode& n, Value* count, int64_t dim, bool largest, bool sorted) {
  Value* x = l.input(n, "self");
  const ScalarType dtype = n.tensor("self")->dtype();
  if (rank(n.tensor("self")) == 0) return {x, l.integer(0)};
  if (dtype == ScalarType::Bool) x = l.cast(x, ScalarType::Int);
  return l.emit_many("TopK", {x, count}, {{"axis", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{sorted}}},
                     2);
}

Outputs topk(Lowering& l, const AtenNode& n) {
  return top(l, n, l.size_vector(n.size("k")), l.dim(n, "dim"), n.boolean("largest"), n.boolean("sorted"));
}

Outputs sort(Lowering& l, const AtenNode& n) {
  const int64_t dim = n.schema().find("dim") ? l.dim(n, "dim") : 0;
  const bool is_scalar = rank(n.tensor("self")) == 0;
  const bool descending = n.schema().find("descending") && n.boolean("descending");
  return top(l, n, is_scalar ? nullptr : l.size_vector(size_at(n.tensor("self"), dim)), dim, descending, true);
}

Outputs argsort(Lowering& l, const AtenNode& n) { return {sort(l, n)[1]}; }
Outputs msort(Lowering& l, const AtenNode& n) { return {sort(l, n)[0]}; }

// The k-th smallest along a dimension; k counts from 1.
Outputs kth(Lowering& l, const AtenNode& n, const Expr& k, int64_t dim, bool keepdim) {
  Outputs sorted = top(l, n, l.size_vector(k), dim, false, true);
  if (rank(n.tensor("self")) == 0) return sorted;
  Value* last = l.vector(std::vector<int64_t>{-1});
  Outputs outputs;
  for (Value* value : sorted) {
    value = l.emit("Gather", {value, last}, {{"axis", dim}});
    outputs.push_back(keepdim ? value : l.squeeze(value, {dim}));
  }
  return outputs;
}

Outputs kthvalue(Lowering& l, const AtenNode& n) {
  return kth(l, n, n.size("k"), l.dim(n, "dim"), n.boolean("keepdim"));
}

// The lower of the two middle elements when there are two.
Outputs median_dim(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  const Expr size = rank(n.tensor("self")) == 0 ? Expr(1) : size_at(n.tensor("self"), dim);
  return kth(l, n, symbolic::floor_div(size + 1, 2), dim, n.boolean("keepdim"));
}

Outputs median(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  if (rank(self) == 0) return {l.input(n, "self")};
  Value* flat = l.emit("Reshape", {l.input(n, "self"), l.vector(std::vector<int64_t>{-1})});
  const Expr middle = symbolic::floor_div(symbolic::product(self->sizes()) + 1, 2);
  const Outputs sorted = l.emit_many("TopK", {flat, l.size_vector(middle)}, {{"largest", int64_t{0}}}, 2);
  return {l.squeeze(l.emit("Gather", {sorted[0], l.vector(std::vector<int64_t>{-1})}), {0})};
}

// For each element the number of boundaries below it; "right" counts those equal to it, too.
Value* count_below(Lowering& l, Value* boundaries, Value* x, int64_t dim, bool right) {
  Value* is_below = l.emit(right ? "LessOrEqual" : "Less", {boundaries, x});
  return l.reduce("ReduceSum", l.cast(is_below, ScalarType::Long), {dim}, false);
}

Outputs bucketize(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = l.result_type(n, {"self", "boundaries"});
  const auto* held = std::get_if<transporters::Value*>(&n.get("self"));
  const int64_t dims = held && (*held)->is_tensor() ? rank(*held) : 0;
  Value* x = l.unsqueeze(l.input(n, "self", dtype), {dims});
  return {count_below(l, l.input(n, "boundaries", dtype), x, dims, n.boolean("right"))};
}

// A sorted sequence per row, or one for all.
Outputs searchsorted(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = l.result_type(n, {"sorted_sequence", "self"});
  const bool right = n.boolean("right") || (!n.is_none("side") && n.string("side") == "right");
  const AtenValue* sequence = n.tensor("sorted_sequence");
  const auto* held = std::get_if<transporters::Value*>(&n.get("self"));
  const int64_t dims = held && (*held)->is_tensor() ? rank(*held) : 0;
  Value* sorted = l.input(n, "sorted_sequence", dtype);
  if (!n.is_none("sorter")) {
    sorted = l.emit("GatherElements", {sorted, l.input(n, "sorter")}, {{"axis", int64_t{-1}}});
  }
  if (rank(sequence) > 1) sorted = l.unsqueeze(sorted, {rank(sequence) - 1});
  Value* x = l.unsqueeze(l.input(n, "self", dtype), {dims});
  return {count_below(l, sorted, x, dims, right)};
}

// (distinct elements sorted, place of each element among them, how often each occurs)
Outputs unique(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  Value* x = l.input(n, "self");
  if (self->dtype() == ScalarType::Bool) x = l.cast(x, ScalarType::Int);
  Attributes attributes;
  const bool has_dim = n.schema().find("dim").has_value();
  if (has_dim) attributes.push_back({"axis", l.dim(n, "dim")});
  const Outputs found = l.emit_many("Unique", {x}, attributes, 4);
  Value* places = found[2];
  if (!has_dim) {
    const std::vector<Expr> flat = {symbolic::product(self->sizes())};
    places = l.reshape(places, flat, self->sizes());
  }
  return {found[0], places, found[3]};
}

// How often each of 0, 1, ..., up to the largest occurs.
Outputs bincount(Lowering& l, const AtenNode& n) {
  if (!n.is_none("weights")) throw l.error(n, "with weights is not supported; use scatter_add on zeros");
  Value* x = l.input(n, "self", ScalarType::Long);
  Value* places = range(l, 0, out_sizes(n)[0]);
  Value* is_equal = l.emit("Equal", {l.unsqueeze(places, {1}), x});
  return {l.reduce("ReduceSum", l.cast(is_equal, ScalarType::Long), {1}, false)};
}

// How many elements lie in each of equal parts of [min, max]; both 0 stand for the elements' own range.
Outputs histc(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const int64_t bins = n.integer("bins");
  Value* x = l.emit("Reshape", {l.input(n, "self"), l.vector(std::vector<int64_t>{-1})});
  Value* low = l.input(n, "min", dtype);
  Value* high = l.input(n, "max", dtype);
  if (n.real("min") == n.real("max")) {
    low = l.reduce("ReduceMin", x, {0}, false);
    high = l.reduce("ReduceMax", x, {0}, false);
    // All elements equal: one to each side.
    Value* is_flat = l.emit("Equal", {low, high});
    Value* margin = l.emit("Where", {is_flat, l.scalar(1, dtype), l.scalar(0, dtype)});
    low = l.emit("Sub", {low, margin});
    high = l.emit("Add", {high, margin});
  }
  // In this order, since it decides on which side of an edge an element falls.
  Value* scaled = l.emit("Mul", {l.emit("Sub", {x, low}), l.scalar(static_cast<double>(bins), dtype)});
  Value* place = l.emit("Floor", {l.emit("Div", {scaled, l.emit("Sub", {high, low})})});
  Value* is_inside = l.emit("And", {l.emit("GreaterOrEqual", {x, low}), l.emit("LessOrEqual", {x, high})});
  // The last part has both its ends; what lies outside counts 0 in the first.
  place = l.emit("Min", {place, l.scalar(static_cast<double>(bins - 1), dtype)});
  place = l.cast(l.emit("Where", {is_inside, place, l.scalar(0, dtype)}), ScalarType::Long);
  return {l.emit("ScatterElements", {l.filled(0, dtype, {bins}), place, l.cast(is_inside, dtype)},
                 {{"reduction", std::string("add")}})};
}

Outputs isin(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = l.result_type(n, {n.schema().arguments[0].name, n.schema().arguments[1].name});
  const auto* elements = std::get_if<transporters::Value*>(&n.arguments()[0].value);
  const int64_t dims = elements ? rank(*elements) : 0;
  Value* x = l.unsqueeze(l.input(n, n.schema().arguments[0].name, dtype), {dims});
  Value* tested =
      l.emit("Reshape", {l.input(n, n.schema().arguments[1].name, dtype), l.vector(std::vector<int64_t>{-1})});
  Value* count = l.reduce("ReduceSum", l.cast(l.emit("Equal", {x, tested}), ScalarType::Long), {dims}, false);
  return {n.boolean("invert") ? l.emit("Equal", {count, l.integer(0)}) : l.emit("Greater", {count, l.integer(0)})};
}

constexpr OpRow kRows[] = {
    {"aten::_unique2", unique},
    {"aten::argsort", argsort},
    {"aten::bincount", bincount},
    {"aten::bucketize", bucketize},
    {"aten::histc", histc},
    {"aten::isin", isin},
    {"aten::kthvalue", kthvalue},
    {"aten::median", median},
    {"aten::median.dim", median_dim},
    {"aten::msort", msort},
    {"aten::searchsorted", searchsorted},
    {"aten::sort", sort},
    {"aten::topk", topk},
    {"aten::unique_dim", unique},
};

}  // namespace

std::span<const OpRow> sort_ops() { return kRows; }

}  // namespace transporters::onnx
