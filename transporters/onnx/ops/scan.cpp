// Running sums, products and extrema along a dimension.
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
Outputs scan(Lowering& l, const std::vector<Value*>& states, const std::vector<Value*>& inputs, int64_t dim,
             size_t output_count, const std::function<Step(const std::vector<Value*>&, const std::vector<Value*>&)>& step) {
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
  const Outputs outputs = l.emit_many("Scan", all,
                                      {{"body", body},
                                       {"num_scan_inputs", static_cast<int64_t>(inputs.size())},
                                       {"scan_input_axes", input_axes},
                                       {"scan_output_axes", output_axes}},
                                      states.size() + output_count);
  for (size_t i = 0; i < states.size(); ++i) outputs[i]->type = states[i]->type;
  for (size_t i = 0; i < output_count; ++i) outputs[states.size() + i]->type = types[i];
  return {outputs.begin() + static_cast<std::ptrdiff_t>(states.size()), outputs.end()};
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
  return scan(l, {start_state(l, n, dim, l.integer(1, dtype))}, {x}, dim, 1, [&](const auto& states, const auto& slices) {
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
  return scan(l, {first, no_index}, {x, place}, dim, 2, [&](const auto& states, const auto& slices) {
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
  return scan(l, {start_state(l, n, dim, lowest)}, {x}, dim, 1, [&](const auto& states, const auto& slices) {
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

constexpr OpRow kRows[] = {
    {"aten::cummax", running_extremum<"GreaterOrEqual">},
    {"aten::cummin", running_extremum<"LessOrEqual">},
    {"aten::cumprod", cumprod},
    {"aten::cumsum", cumsum},
    {"aten::diff", diff},
    {"aten::logcumsumexp", logcumsumexp},
};

}  // namespace

std::span<const OpRow> scan_ops() { return kRows; }

}  // namespace transporters::onnx
