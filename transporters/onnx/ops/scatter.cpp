// Tensors with some elements replaced.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Attributes scatter_attributes(int64_t dim, std::string_view reduction) {
  Attributes attributes = {{"axis", dim}};
  if (reduction != "none") attributes.push_back({"reduction", std::string(reduction)});
  return attributes;
}

// A source may be larger than the index: only its leading part is read.
Value* leading_part(Lowering& l, Value* source, const std::vector<Expr>& from, const std::vector<Expr>& to) {
  std::vector<Expr> ends;
  std::vector<int64_t> starts, dims;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    starts.push_back(0);
    ends.push_back(to[i]);
    dims.push_back(static_cast<int64_t>(i));
  }
  return dims.empty() ? source : l.emit("Slice", {source, l.vector(starts), l.shape(ends), l.vector(dims)});
}

struct Scattered {
  Value* x;
  Value* index;
  Value* source;
  int64_t dim;
  bool is_scalar;
};

// self, index and source ("src" or the number "value") with the index's sizes; scalars get one dimension.
Scattered read(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* self = n.tensor("self");
  const auto& sizes = n.tensor("index")->sizes();
  Scattered s{l.input(n, "self"), l.input(n, "index", ScalarType::Long), nullptr, l.dim(n, "dim"), rank(self) == 0};
  const std::string_view argument = n.schema().find("src") ? "src" : "value";
  s.source = l.input(n, argument, dtype);
  const auto* held = std::get_if<transporters::Value*>(&n.get(argument));
  if (held && (*held)->is_tensor() && rank(*held) == static_cast<int64_t>(sizes.size())) {
    s.source = leading_part(l, s.source, (*held)->sizes(), sizes);
  } else {
    const std::vector<Expr> none;
    s.source = l.expand(s.source, none, sizes);
  }
  if (s.is_scalar) {
    s.x = l.unsqueeze(s.x, {0});
    if (sizes.empty()) {
      s.index = l.unsqueeze(s.index, {0});
      s.source = l.unsqueeze(s.source, {0});
    }
  }
  return s;
}

Value* finish(Lowering& l, const Scattered& s, std::string_view reduction) {
  Value* y = l.emit("ScatterElements", {s.x, s.index, s.source}, scatter_attributes(s.dim, reduction));
  return s.is_scalar ? l.squeeze(y, {0}) : y;
}

// scatter(reduce="add" | "multiply")
Outputs scatter(Lowering& l, const AtenNode& n) {
  std::string_view reduction = "none";
  if (n.schema().find("reduce")) reduction = n.string("reduce") == "add" ? "add" : "mul";
  return {finish(l, read(l, n), reduction)};
}

Outputs scatter_add(Lowering& l, const AtenNode& n) { return {finish(l, read(l, n), "add")}; }

Outputs scatter_reduce(Lowering& l, const AtenNode& n) {
  const std::string reduce = n.string("reduce");
  const ScalarType dtype = out_dtype(n);
  Scattered s = read(l, n);
  const std::string_view reduction = reduce == "prod"   ? "mul"
                                     : reduce == "amax" ? "max"
                                     : reduce == "amin" ? "min"
                                                        : "add";  // sum, mean
  const bool includes_self = n.boolean("include_self");
  Scattered ones = s;
  if (reduce == "mean") {
    ones.x = l.emit("Expand", {l.integer(includes_self, dtype), l.emit("Shape", {s.x})});
    ones.source = l.emit("Expand", {l.integer(1, dtype), l.emit("Shape", {s.source})});
  }
  if (!includes_self) {
    // Elements that receive something start from what changes nothing.
    const double limit = is_real(dtype) ? INFINITY : 0;
    Value* neutral = reduction == "max"   ? l.scalar(-limit, dtype)
                     : reduction == "min" ? l.scalar(limit, dtype)
                                          : l.integer(reduction == "mul", dtype);
    if (!is_real(dtype) && (reduction == "max" || reduction == "min")) {
      const bool is_max = reduction == "max";
      neutral = l.integer(
          dtype == ScalarType::Long ? (is_max ? INT64_MIN : INT64_MAX) : (is_max ? INT32_MIN : INT32_MAX), dtype);
    }
    Value* start = l.emit("Expand", {neutral, l.emit("Shape", {s.source})});
    s.x = l.emit("ScatterElements", {s.x, s.index, start}, scatter_attributes(s.dim, "none"));
  }
  Value* y = finish(l, s, reduction);
  if (reduce != "mean") return {y};
  Value* count = l.emit("Max", {finish(l, ones, "add"), l.integer(1, dtype)});
  return {is_real(dtype) ? l.emit("Div", {y, count}) : floor_divide_integers(l, y, count)};
}

// Rows along `dim`, given by a one-dimensional index.
Value* scatter_rows(Lowering& l, const AtenNode& n, Value* source, std::string_view reduction) {
  const AtenValue* self = n.tensor("self");
  const AtenValue* index = n.tensor("index");
  const int64_t dims = rank(self);
  Value* x = l.input(n, "self");
  Value* rows =
      wrap_index(l, l.input(n, "index", ScalarType::Long), dims == 0 ? Expr(1) : size_at(self, l.dim(n, "dim")));
  if (rank(index) == 0) rows = l.unsqueeze(rows, {0});
  if (dims == 0) {
    Value* y = l.emit("ScatterElements",
                      {l.unsqueeze(x, {0}), rows, l.emit("Reshape", {source, l.vector(std::vector<int64_t>{-1})})},
                      scatter_attributes(0, reduction));
    return l.squeeze(y, {0});
  }
  const int64_t dim = l.dim(n, "dim");
  if (dim == 0) {
    Attributes attributes;
    if (reduction != "none") attributes.push_back({"reduction", std::string(reduction)});
    return l.emit("ScatterND", {x, l.unsqueeze(rows, {1}), source}, attributes);
  }
  // Elsewhere the index is repeated for every element, which still touches only what changes.
  std::vector<Expr> from(static_cast<size_t>(dims), 1);
  std::vector<Expr> to = self->sizes();
  from[static_cast<size_t>(dim)] = to[static_cast<size_t>(dim)] = rank(index) == 0 ? Expr(1) : size_at(index, 0);
  return l.emit("ScatterElements", {x, l.expand(along(l, rows, dim, dims), from, to), source},
                scatter_attributes(dim, reduction));
}

Outputs index_copy(Lowering& l, const AtenNode& n) {
  return {scatter_rows(l, n, l.input(n, "source", out_dtype(n)), "none")};
}

Outputs index_add(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* source = l.input(n, "source", dtype);
  const Argument& alpha = n.get("alpha");
  const bool is_one = std::holds_alternative<Expr>(alpha) && std::get<Expr>(alpha).is(1);
  if (!is_one) source = l.emit("Mul", {source, l.input(n, "alpha", dtype)});
  return {scatter_rows(l, n, source, "add")};
}

Outputs index_fill(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  std::vector<Expr> sizes = self->sizes();
  const std::vector<Expr> none;
  const AtenValue* index = n.tensor("index");
  if (!sizes.empty()) sizes[static_cast<size_t>(l.dim(n, "dim"))] = rank(index) == 0 ? Expr(1) : size_at(index, 0);
  return {scatter_rows(l, n, l.expand(l.input(n, "value", out_dtype(n)), none, sizes), "none")};
}

// self with `source` in place of its elements from `start` to `end` along `dim`.
Value* replace_range(Lowering& l, Value* x, Value* source, int64_t dim, const Expr& size, const Expr& start,
                     const Expr& end) {
  std::vector<Value*> parts;
  if (!start.is(0)) parts.push_back(l.slice(x, dim, 0, start));
  parts.push_back(source);
  if (!(end == size)) parts.push_back(l.slice(x, dim, end, size));
  return l.concat(parts, dim);
}

Outputs select_scatter(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  const Expr size = size_at(n.tensor("self"), dim);
  Expr index = n.size("index");
  if (const auto constant = index.as_integer(); constant && *constant < 0) index = index + size;
  Value* source = l.unsqueeze(l.input(n, "src", out_dtype(n)), {dim});
  return {replace_range(l, l.input(n, "self"), source, dim, size, index, index + 1)};
}

Outputs slice_scatter(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const int64_t dim = l.dim(n, "dim"), step = n.integer("step");
  const Expr size = size_at(self, dim);
  Value* x = l.input(n, "self");
  Value* source = l.input(n, "src", out_dtype(n));
  // Bounds counted from the front and within the tensor. A symbolic bound is a size already.
  const auto bound = [&](std::string_view argument, const Expr& otherwise) {
    if (n.is_none(argument)) return otherwise;
    const Expr given = n.size(argument);
    const auto constant = given.as_integer();
    if (!constant) return given;
    if (*constant < 0) return symbolic::max(given + size, 0);
    if (*constant == INT64_MAX) return size;
    return l.is_at_least(size, *constant) ? given : symbolic::min(given, size);
  };
  const Expr start = bound("start", 0), end = bound("end", size);
  if (step == 1) {
    // The source tells how long the range is, whatever the bounds.
    const Expr length = size_at(n.tensor("src"), dim);
    return {replace_range(l, x, source, dim, size, start, length == size ? size : start + length)};
  }
  const int64_t dims = rank(self);
  std::vector<Expr> from(static_cast<size_t>(dims), 1);
  from[static_cast<size_t>(dim)] = size_at(n.tensor("src"), dim);
  Value* index = l.expand(along(l, range(l, start, end, step), dim, dims), from, n.tensor("src")->sizes());
  return {l.emit("ScatterElements", {x, index, source}, scatter_attributes(dim, "none"))};
}

// self with the diagonal of its dimensions dim1 and dim2 replaced.
Outputs diagonal_scatter(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const int64_t dims = rank(self), dim1 = l.dim(n, "dim1"), dim2 = l.dim(n, "dim2"), offset = n.integer("offset");
  std::vector<int64_t> order;
  for (int64_t i = 0; i < dims; ++i) {
    if (i != dim1 && i != dim2) order.push_back(i);
  }
  order.push_back(dim1);
  order.push_back(dim2);
  Value* x = l.transpose(l.input(n, "self"), order);
  Value* rows = l.unsqueeze(range(l, 0, size_at(self, dim1)), {1});
  Value* columns = range(l, 0, size_at(self, dim2));
  Value* on_diagonal = l.emit("Equal", {l.emit("Add", {rows, l.integer(offset)}), columns});
  // A diagonal element stands in every column of its row when it starts at the first row, else in every row of its
  // column; the rest of the longer side is padded and never chosen.
  const Expr length = size_at(n.tensor("src"), -1);
  const Expr wanted = offset >= 0 ? size_at(self, dim1) : size_at(self, dim2);
  Value* source = l.input(n, "src", out_dtype(n));
  if (!(length == wanted)) {
    const int64_t src_rank = rank(n.tensor("src"));
    std::vector<Expr> pads(static_cast<size_t>(2 * src_rank), 0);
    pads.back() = wanted - length;
    source = l.emit("Pad", {source, l.shape(pads)});
  }
  source = l.unsqueeze(source, {offset >= 0 ? dims - 1 : dims - 2});
  return {l.transpose(l.emit("Where", {on_diagonal, source, x}), inverse(order))};
}

// The n-th true element of the mask takes the n-th element of the source.
Outputs masked_scatter(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  const AtenValue* mask = n.tensor("mask");
  const ScalarType dtype = out_dtype(n);
  const auto sizes = broadcast(self->sizes(), mask->sizes());
  Value* x = l.expand(l.input(n, "self"), self->sizes(), sizes);
  Value* chosen = l.expand(l.input(n, "mask", ScalarType::Bool), mask->sizes(), sizes);
  const std::vector<int64_t> flat = {-1};
  Value* flags = l.cast(l.emit("Reshape", {chosen, l.vector(flat)}), ScalarType::Long);
  Value* count = l.emit("CumSum", {flags, l.integer(0)});
  Value* place = l.emit("Max", {l.emit("Sub", {count, l.integer(1)}), l.integer(0)});
  // One more element, so that an empty source can be read where nothing is chosen.
  Value* source = l.emit("Reshape", {l.input(n, "source", dtype), l.vector(flat)});
  source = l.concat({source, l.filled(0, dtype, {1})}, 0);
  // Places past the source's end belong to elements that are not chosen.
  Value* last = l.emit("Sub", {l.emit("Size", {source}), l.integer(1)});
  Value* taken = l.emit("Gather", {source, l.emit("Min", {place, last})});
  const std::vector<Expr> one_dim = {symbolic::product(sizes)};
  return {l.emit("Where", {chosen, l.reshape(taken, one_dim, sizes), x})};
}

constexpr OpRow kRows[] = {
    {"aten::diagonal_scatter", diagonal_scatter},
    {"aten::index_add", index_add},
    {"aten::index_copy", index_copy},
    {"aten::index_fill", index_fill},
    {"aten::masked_scatter", masked_scatter},
    {"aten::scatter", scatter},
    {"aten::scatter_add", scatter_add},
    {"aten::scatter_reduce", scatter_reduce},
    {"aten::select_scatter", select_scatter},
    {"aten::slice_scatter", slice_scatter},
};

}  // namespace

std::span<const OpRow> scatter_ops() { return kRows; }

}  // namespace transporters::onnx
