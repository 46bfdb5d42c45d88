// Recurrences along a dimension: running sums, products and extrema, substitution into triangular systems.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Outputs cumsum(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self", out_dtype(n));
  return {rank(n.tensor("self")) == 0 ? x : l.emit("CumSum", {x, l.integer(l.dim(n, "dim"))})};
}

// ONNX's Scan over the slices of `inputs` along `dim`; `step` gives the next states and what a slice of each output is.
// Scan's body: (states..., slices...) -> (states..., output slices...).
struct Step {
  std::vector<Value*> states;
  std::vector<Value*> outputs;
};
using StepFunction = std::function<Step(const std::vector<Value*>&, const std::vector<Value*>&)>;
Step scan(Lowering& l, const std::vector<Value*>& states, const std::vector<Value*>& inputs, int64_t dim,
          size_t output_count, bool backward, const StepFunction& step) {
  std::vector<DataType> types;
  const auto body = l.subgraph("scan_body", [&](Graph& graph) {
    std::vector<Value*> inner_states, slices;
    for (const Value* state : states) inner_states.push_back(graph.add_input("state", state->type, std::nullopt));
    for (const Value* input : inputs) slices.push_back(graph.add_input("slice", input->type, std::nullopt));
    const Step made = step(inner_states, slices);
    // An output of a graph must be its own: copies where a value is several.
    for (const auto* list : {&made.states, &made.outputs}) {
      for (Value* value : *list) graph.add_output(l.emit("Identity", {value}));
    }
    for (const Value* output : made.outputs) types.push_back(output->type);
  });
  std::vector<Value*> all = states;
  all.insert(all.end(), inputs.begin(), inputs.end());
  const std::vector<int64_t> input_axes(inputs.size(), dim), output_axes(output_count, dim);
  const std::vector<int64_t> directions(inputs.size(), int64_t{backward});
  const Outputs outputs = l.emit_many("Scan", all,
                                      {{"body", body},
                                       {"num_scan_inputs", static_cast<int64_t>(inputs.size())},
                                       {"scan_input_axes", input_axes},
                                       {"scan_input_directions", directions},
                                       {"scan_output_axes", output_axes}},
                                      states.size() + output_count);
  for (size_t i = 0; i < states.size(); ++i) outputs[i]->type = states[i]->type;
  for (size_t i = 0; i < output_count; ++i) outputs[states.size() + i]->type = types[i];
  const auto middle = outputs.begin() + static_cast<std::ptrdiff_t>(states.size());
  return {.states = {outputs.begin(), middle}, .outputs = {middle, outputs.end()}};
}

// The running results, forward along `dim`.
Outputs running(Lowering& l, const std::vector<Value*>& states, const std::vector<Value*>& inputs, int64_t dim,
                const StepFunction& step) {
  return scan(l, states, inputs, dim, states.size(), false, step).outputs;
}

Value* transpose_matrix(Lowering& l, Value* x, int64_t rank) {
  std::vector<int64_t> order = iota(rank);
  std::swap(order[order.size() - 2], order.back());
  return l.transpose(x, order);
}

// The first slice along `dim`, without that dimension, filled with `value`.
Value* start_state(Lowering& l, const AtenNode& n, int64_t dim, Value* value) {
  std::vector<Expr> sizes = n.tensor("self")->sizes();
  sizes.erase(sizes.begin() + dim);
  const std::vector<Expr> none;
  return l.expand(value, none, sizes);
}

Outputs cumprod(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  if (rank(n.tensor("self")) == 0) return {x};
  const int64_t dim = l.dim(n, "dim");
  return running(l, {start_state(l, n, dim, l.integer(1, dtype))}, {x}, dim,
                 [&](const auto& states, const auto& slices) {
                   Value* product = l.emit("Mul", {states[0], slices[0]});
                   return Step{{product}, {product}};
                 });
}

// Running extremum and its index; a later equal element takes the index, as in torch.
template <OpName Compare>
Outputs running_extremum(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  if (rank(n.tensor("self")) == 0) return {x, l.integer(0)};
  const int64_t dim = l.dim(n, "dim");
  // The first element starts the run.
  Value* first = l.emit("Gather", {x, l.integer(0)}, {{"axis", dim}});
  Value* no_index = start_state(l, n, dim, l.integer(0));
  Value* places = range(l, 0, size_at(n.tensor("self"), dim));
  Value* place = along(l, places, dim, rank(n.tensor("self")));
  std::vector<Expr> from(n.tensor("self")->rank(), 1);
  from[static_cast<size_t>(dim)] = size_at(n.tensor("self"), dim);
  place = l.expand(place, from, n.tensor("self")->sizes());
  return running(l, {first, no_index}, {x, place}, dim, [&](const auto& states, const auto& slices) {
    Value* is_new = l.emit(Compare.view(), {slices[0], states[0]});
    if (is_real(Lowering::dtype(slices[0]))) is_new = l.emit("Or", {is_new, l.emit("IsNaN", {slices[0]})});
    Value* value = l.emit("Where", {is_new, slices[0], states[0]});
    Value* index = l.emit("Where", {is_new, slices[1], states[1]});
    return Step{{value, index}, {value, index}};
  });
}

// log(exp(x0) + ... + exp(xi)), from the largest so far.
Outputs logcumsumexp(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  if (rank(n.tensor("self")) == 0) return {x};
  const int64_t dim = l.dim(n, "dim");
  // A number so low that it adds nothing, but finite: differences of infinities are no numbers.
  Value* lowest = l.scalar(dtype == ScalarType::Half ? -65504.0 : -1e38, dtype);
  return running(l, {start_state(l, n, dim, lowest)}, {x}, dim, [&](const auto& states, const auto& slices) {
    Value* larger = l.emit("Max", {states[0], slices[0]});
    Value* distance = l.emit("Neg", {l.emit("Abs", {l.emit("Sub", {states[0], slices[0]})})});
    Value* rest = l.emit("Log", {l.emit("Add", {l.emit("Exp", {distance}), l.scalar(1, dtype)})});
    Value* sum = l.emit("Add", {larger, rest});
    return Step{{sum}, {sum}};
  });
}

// Differences of neighbours; n times.
Outputs diff(Lowering& l, const AtenNode& n) {
  const int64_t dim = l.dim(n, "dim");
  std::vector<Value*> parts;
  for (const char* argument : {"prepend", "self", "append"}) {
    if (Value* part = l.input_or_null(n, argument, n.tensor("self")->dtype())) parts.push_back(part);
  }
  Value* x = l.concat(parts, dim);
  for (int64_t i = 0; i < n.integer("n"); ++i) {
    Value* next = l.slice(x, dim, 1, INT64_MAX);
    Value* previous = l.slice(x, dim, 0, -1);
    x = out_dtype(n) == ScalarType::Bool ? l.emit("Xor", {next, previous}) : l.emit("Sub", {next, previous});
  }
  return {x};
}

// X of AX = B (or XA = B), A triangular: row by row, each from the rows solved before it.
Outputs solve_triangular(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* a = l.input(n, "self", dtype);
  Value* b = l.input(n, "B", dtype);
  std::vector<Expr> sizes = out_sizes(n);
  bool upper = n.boolean("upper");
  if (!n.boolean("left")) {
    a = transpose_matrix(l, a, rank(n.tensor("self")));
    b = transpose_matrix(l, b, rank(n.tensor("B")));
    std::swap(sizes[sizes.size() - 2], sizes.back());
    upper = !upper;
  }
  const Expr& side = size_at(n.tensor("self"), -1);
  Value* places = l.unsqueeze(range(l, 0, side), {1});
  if (!n.boolean("unitriangular")) {
    // Row i divided by element i of the diagonal.
    Value* on_diagonal = l.emit("Equal", {places, range(l, 0, side)});
    Value* diagonal = l.emit("Where", {on_diagonal, a, l.scalar(0, dtype)});
    diagonal = l.reduce("ReduceSum", diagonal, {rank(n.tensor("self")) - 1}, true);
    a = l.emit("Div", {a, diagonal});
    b = l.emit("Div", {b, diagonal});
  }
  // The other triangle is not read, whatever it holds.
  a = l.emit("Trilu", {a, l.integer(upper ? 1 : -1)}, {{"upper", int64_t{upper}}});
  const std::vector<Expr> none;
  Value* unsolved = l.expand(l.scalar(0, dtype), none, sizes);
  const auto row_of = [&](Value* slice) { return l.emit("Unsqueeze", {slice, l.vector({int64_t{-2}})}); };
  Value* solution = scan(l, {unsolved}, {a, b, places}, -2, 0, upper, [&](const auto& states, const auto& slices) {
                      Value* known = l.emit("MatMul", {row_of(slices[0]), states[0]});
                      Value* row = l.emit("Sub", {row_of(slices[1]), known});
                      Value* is_here = l.emit("Equal", {places, slices[2]});
                      return Step{.states = {l.emit("Where", {is_here, row, states[0]})}, .outputs = {}};
                    }).states[0];
  return {n.boolean("left") ? solution : transpose_matrix(l, solution, rank(n.output()))};
}

constexpr OpRow kRows[] = {
    {"aten::cummax", running_extremum<"GreaterOrEqual">},
    {"aten::cummin", running_extremum<"LessOrEqual">},
    {"aten::cumprod", cumprod},
    {"aten::cumsum", cumsum},
    {"aten::diff", diff},
    {"aten::linalg_solve_triangular", solve_triangular},
    {"aten::logcumsumexp", logcumsumexp},
};

}  // namespace

std::span<const OpRow> scan_ops() { return kRows; }

}  // namespace transporters::onnx
