// Reductions over dimensions.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

bool has(const AtenNode& n, std::string_view argument) { return n.schema().find(argument).has_value(); }

bool keeps_dims(const AtenNode& n) { return has(n, "keepdim") && n.boolean("keepdim"); }

// The dimensions to reduce: a list, one, or all when the overload has no such argument.
std::vector<int64_t> reduced_dims(Lowering& l, const AtenNode& n) {
  if (!has(n, "dim")) return iota(rank(n.tensor("self")));
  if (std::holds_alternative<std::vector<Expr>>(n.get("dim")) || n.is_none("dim")) return l.dims(n, "dim");
  return {l.dim(n, "dim")};
}

// torch allows dimensions 0 and -1 for a scalar; there is nothing to reduce then.
Value* reduce(Lowering& l, const AtenNode& n, std::string_view op, Value* x) {
  const bool is_scalar = rank(n.tensor("self")) == 0;
  return is_scalar ? x : l.reduce(op, x, reduced_dims(l, n), keeps_dims(n));
}

template <OpName Op>
Outputs reduction(Lowering& l, const AtenNode& n) {
  return {reduce(l, n, Op.view(), l.input(n, "self", out_dtype(n)))};
}

// Largest or smallest element; bools are compared as integers.
template <OpName Op>
Outputs extremum(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n) == ScalarType::Bool ? ScalarType::Int : out_dtype(n);
  return {reduce(l, n, Op.view(), l.input(n, "self", dtype))};
}

// (values, indices) along one dimension.
template <OpName Reduce, OpName Arg>
Outputs extremum_with_index(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  if (Lowering::dtype(x) == ScalarType::Bool) x = l.cast(x, ScalarType::Int);
  if (rank(n.tensor("self")) == 0) return {x, l.integer(0)};
  const int64_t dim = l.dim(n, "dim");
  const int64_t keepdims = keeps_dims(n);
  Outputs outputs = {l.reduce(Reduce.view(), x, {dim}, keepdims), nullptr};
  if (is_used(n.outputs()[1])) outputs[1] = l.emit(Arg.view(), {x}, {{"axis", dim}, {"keepdims", keepdims}});
  return outputs;
}

template <OpName Arg>
Outputs arg_extremum(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  if (Lowering::dtype(x) == ScalarType::Bool) x = l.cast(x, ScalarType::Int);
  const int64_t dims = rank(n.tensor("self"));
  if (dims == 0) return {l.integer(0)};
  const int64_t keepdims = keeps_dims(n);
  if (!n.is_none("dim")) return {l.emit(Arg.view(), {x}, {{"axis", l.dim(n, "dim")}, {"keepdims", keepdims}})};
  Value* flat = l.emit("Reshape", {x, l.vector(std::vector<int64_t>{-1})});
  Value* index = l.emit(Arg.view(), {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
  return {keepdims ? l.unsqueeze(index, iota(dims)) : index};
}

// How many are true: a count, so that nothing reduced is 0.
Value* count_true(Lowering& l, const AtenNode& n, Value* condition) {
  return reduce(l, n, "ReduceSum", l.cast(condition, ScalarType::Long));
}

Outputs any(Lowering& l, const AtenNode& n) {
  Value* count = count_true(l, n, l.input(n, "self", ScalarType::Bool));
  return {l.emit("Greater", {count, l.integer(0)})};
}

Outputs all(Lowering& l, const AtenNode& n) {
  Value* count = count_true(l, n, l.emit("Not", {l.input(n, "self", ScalarType::Bool)}));
  return {l.emit("Equal", {count, l.integer(0)})};
}

Outputs count_nonzero(Lowering& l, const AtenNode& n) {
  return {count_true(l, n, l.input(n, "self", ScalarType::Bool))};
}

struct Moments {
  Value* mean;      // dims kept
  Value* variance;  // as the op asks
};

Moments moments(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  // Squares of half-precision numbers overflow.
  const ScalarType compute = is_half(dtype) ? ScalarType::Float : dtype;
  Value* x = l.input(n, "self", compute);
  const auto dims = reduced_dims(l, n);
  Value* mean = l.reduce("ReduceMean", x, dims, true);
  Value* distance = l.emit("Sub", {x, mean});
  Value* squares = l.emit("Mul", {distance, distance});
  // "unbiased" is the older spelling of a correction by 1; without either, it is 1.
  double correction = 1;
  if (has(n, "unbiased")) correction = n.boolean("unbiased") ? 1 : 0;
  if (has(n, "correction")) correction = n.real_or_none("correction").value_or(1);
  Value* variance;
  if (correction == 0) {
    variance = l.reduce("ReduceMean", squares, dims, keeps_dims(n));
  } else {
    std::vector<Expr> sizes;
    for (const int64_t dim : dims) sizes.push_back(size_at(n.tensor("self"), dim));
    Value* count = l.number(symbolic::product(sizes), compute);
    Value* degrees = l.emit("Max", {l.emit("Sub", {count, l.scalar(correction, compute)}), l.scalar(0, compute)});
    variance = l.emit("Div", {l.reduce("ReduceSum", squares, dims, keeps_dims(n)), degrees});
  }
  if (!keeps_dims(n)) mean = l.squeeze(mean, dims);
  return {mean, variance};
}

Outputs var(Lowering& l, const AtenNode& n) { return {moments(l, n).variance}; }
Outputs std_op(Lowering& l, const AtenNode& n) { return {l.emit("Sqrt", {moments(l, n).variance})}; }
Outputs var_mean(Lowering& l, const AtenNode& n) {
  const auto [mean, variance] = moments(l, n);
  return {variance, mean};
}
Outputs std_mean(Lowering& l, const AtenNode& n) {
  const auto [mean, variance] = moments(l, n);
  return {l.emit("Sqrt", {variance}), mean};
}

// log(sum(exp(x))), from the largest element, so that nothing overflows; -inf where all are.
Outputs logsumexp(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  if (rank(n.tensor("self")) == 0) return {x};
  const auto dims = reduced_dims(l, n);
  Value* largest = l.reduce("ReduceMax", x, dims, true);
  Value* is_infinite = l.emit("Equal", {l.emit("Abs", {largest}), l.scalar(INFINITY, dtype)});
  Value* shift = l.emit("Where", {is_infinite, l.scalar(0, dtype), largest});
  Value* sum = l.reduce("ReduceSum", l.emit("Exp", {l.emit("Sub", {x, shift})}), dims, true);
  Value* y = l.emit("Add", {l.emit("Log", {sum}), shift});
  return {keeps_dims(n) ? y : l.squeeze(y, dims)};
}

// The p-norm; dims as the overload gives them.
Value* norm_of(Lowering& l, const AtenNode& n, double p) {
  const ScalarType dtype = out_dtype(n);
  const ScalarType compute = is_half(dtype) ? ScalarType::Float : dtype;
  Value* x = l.input(n, "self", compute);
  if (rank(n.tensor("self")) == 0 && p != 0) return l.emit("Abs", {x});
  if (p == 1) return reduce(l, n, "ReduceL1", x);
  if (p == 2) return reduce(l, n, "ReduceL2", x);
  if (p == 0) return l.cast(count_true(l, n, l.cast(x, ScalarType::Bool)), dtype);
  Value* magnitude = l.emit("Abs", {x});
  if (p == INFINITY) return reduce(l, n, "ReduceMax", magnitude);
  if (p == -INFINITY) return reduce(l, n, "ReduceMin", magnitude);
  Value* sum = reduce(l, n, "ReduceSum", l.emit("Pow", {magnitude, l.scalar(p, compute)}));
  return l.emit("Pow", {sum, l.scalar(1 / p, compute)});
}

Outputs norm(Lowering& l, const AtenNode& n) { return {norm_of(l, n, n.real_or_none("p").value_or(2))}; }
Outputs vector_norm(Lowering& l, const AtenNode& n) { return {norm_of(l, n, n.real("ord"))}; }

// Sum of the diagonal of a matrix.
Outputs trace(Lowering& l, const AtenNode& n) {
  const auto& sizes = n.tensor("self")->sizes();
  Value* x = l.input(n, "self", out_dtype(n));
  Value* rows = l.unsqueeze(range(l, 0, sizes[0]), {1});
  Value* on_diagonal = l.emit("Equal", {rows, range(l, 0, sizes[1])});
  Value* kept = l.emit("Where", {on_diagonal, x, l.scalar(0, out_dtype(n))});
  return {l.reduce("ReduceSum", kept, {0, 1}, false)};
}

// The whole tensor's largest and smallest.
Outputs aminmax(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self", out_dtype(n));
  const auto dims = n.is_none("dim") ? iota(rank(n.tensor("self"))) : std::vector<int64_t>{l.dim(n, "dim")};
  if (rank(n.tensor("self")) == 0) return {x, x};
  return {l.reduce("ReduceMin", x, dims, keeps_dims(n)), l.reduce("ReduceMax", x, dims, keeps_dims(n))};
}

constexpr OpRow kRows[] = {
    {"aten::all", all},
    {"aten::amax", extremum<"ReduceMax">},
    {"aten::amin", extremum<"ReduceMin">},
    {"aten::aminmax", aminmax},
    {"aten::any", any},
    {"aten::argmax", arg_extremum<"ArgMax">},
    {"aten::argmin", arg_extremum<"ArgMin">},
    {"aten::count_nonzero", count_nonzero},
    {"aten::linalg_vector_norm", vector_norm},
    {"aten::logsumexp", logsumexp},
    {"aten::max", extremum<"ReduceMax">},
    {"aten::max.dim", extremum_with_index<"ReduceMax", "ArgMax">},
    {"aten::mean", reduction<"ReduceMean">},
    {"aten::min", extremum<"ReduceMin">},
    {"aten::min.dim", extremum_with_index<"ReduceMin", "ArgMin">},
    {"aten::norm", norm},
    {"aten::prod", reduction<"ReduceProd">},
    {"aten::std", std_op},
    {"aten::std_mean", std_mean},
    {"aten::sum", reduction<"ReduceSum">},
    {"aten::trace", trace},
    {"aten::var", var},
    {"aten::var_mean", var_mean},
};

}  // namespace

std::span<const OpRow> reduction_ops() { return kRows; }

}  // namespace transporters::onnx
