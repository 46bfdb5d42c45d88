// LSTM, GRU and plain recurrent networks: one ONNX op per layer, both directions in it.
//
// torch stacks the gates' weights in another order than ONNX; biases come as two vectors that ONNX wants side by side.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Kind {
  std::string_view op;
  std::vector<int64_t> gates;  // ONNX's gate i is torch's gate gates[i]
  Attributes attributes;
};

Kind lstm_kind() { return {"LSTM", {0, 3, 1, 2}, {}}; }                                // i f g o -> i o f c
Kind gru_kind() { return {"GRU", {1, 0, 2}, {{"linear_before_reset", int64_t{1}}}}; }  // r z n -> z r h
Kind rnn_kind(const std::string& activation) {
  return {"RNN", {0}, {{"activations", std::vector<std::string>{activation}}}};
}

// Blocks of rows in ONNX's order, with a first dimension for the direction.
Value* reorder(Lowering& l, Value* value, const std::vector<int64_t>& gates) {
  if (gates.size() > 1) {
    const Outputs parts =
        l.emit_many("Split", {value}, {{"num_outputs", static_cast<int64_t>(gates.size())}}, gates.size());
    std::vector<Value*> ordered;
    for (const int64_t gate : gates) ordered.push_back(parts[static_cast<size_t>(gate)]);
    value = l.concat(ordered, 0);
  }
  return l.unsqueeze(value, {0});
}

// (output, last states...) as torch's op gives them.
Outputs recurrent(Lowering& l, const AtenNode& n, Kind kind, const std::vector<Value*>& initial) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* input = n.tensor("input");
  const bool has_biases = n.boolean("has_biases"), is_bidirectional = n.boolean("bidirectional");
  const bool is_batch_first = n.boolean("batch_first");
  const int64_t layers = n.integer("num_layers"), directions = is_bidirectional ? 2 : 1;
  if (n.boolean("train") && n.real("dropout") != 0 && layers > 1) {
    throw l.error(n, "drops elements at random: the model is in training mode; call eval() before exporting");
  }
  const auto parameters = l.inputs(n, "params", dtype);
  const size_t per_direction = has_biases ? 4 : 2;
  if (parameters.size() != static_cast<size_t>(layers * directions) * per_direction) {
    throw l.error(n, "has projected states (proj_size), which ONNX's ops can't express");
  }
  const auto hidden = size_at(n.outputs()[1], -1).as_integer();
  if (!hidden) throw l.error(n, "has a symbolic hidden size");

  Value* x = l.input(n, "input", dtype);
  const bool is_unbatched = rank(input) == 2;
  if (is_unbatched) x = l.unsqueeze(x, {is_batch_first ? 0 : 1});
  if (is_batch_first) x = l.transpose(x, {1, 0, 2});
  std::vector<Value*> states = initial;
  if (is_unbatched) {
    for (Value*& state : states) state = l.unsqueeze(state, {1});
  }

  kind.attributes.push_back({"hidden_size", *hidden});
  if (is_bidirectional) kind.attributes.push_back({"direction", std::string("bidirectional")});
  if (is_bidirectional && kind.op == "RNN") {
    auto& activations = std::get<std::vector<std::string>>(kind.attributes[0].value);
    activations.push_back(activations[0]);
  }
  std::vector<std::vector<Value*>> finals(states.size());  // per state, of each layer
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<Value*> weights, recurrences, biases;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const size_t first = static_cast<size_t>(layer * directions + direction) * per_direction;
      weights.push_back(reorder(l, parameters[first], kind.gates));
      recurrences.push_back(reorder(l, parameters[first + 1], kind.gates));
      if (!has_biases) continue;
      biases.push_back(
          l.concat({reorder(l, parameters[first + 2], kind.gates), reorder(l, parameters[first + 3], kind.gates)}, 1));
    }
    std::vector<Value*> inputs = {x, l.concat(weights, 0), l.concat(recurrences, 0),
                                  has_biases ? l.concat(biases, 0) : nullptr, nullptr};
    for (Value* state : states) {
      const bool is_all = layers == 1;
      inputs.push_back(is_all ? state : l.slice(state, 0, Expr(layer * directions), Expr((layer + 1) * directions)));
    }
    const Outputs made = l.emit_many(kind.op, inputs, kind.attributes, 1 + states.size());
    for (size_t i = 0; i < states.size(); ++i) finals[i].push_back(made[1 + i]);
    // [time, direction, batch, hidden] -> [time, batch, direction * hidden]
    if (directions == 1) {
      x = l.squeeze(made[0], {1});
    } else {
      Value* together = l.transpose(made[0], {0, 2, 1, 3});
      x = l.emit("Reshape", {together, l.vector(std::vector<int64_t>{0, 0, directions * *hidden})});
    }
  }
  if (is_batch_first) x = l.transpose(x, {1, 0, 2});
  if (is_unbatched) x = l.squeeze(x, {is_batch_first ? 0 : 1});
  Outputs outputs = {x};
  for (const auto& of_layers : finals) {
    Value* state = l.concat(of_layers, 0);
    outputs.push_back(is_unbatched ? l.squeeze(state, {1}) : state);
  }
  return outputs;
}

Outputs lstm(Lowering& l, const AtenNode& n) { return recurrent(l, n, lstm_kind(), l.inputs(n, "hx", out_dtype(n))); }
Outputs gru(Lowering& l, const AtenNode& n) { return recurrent(l, n, gru_kind(), {l.input(n, "hx", out_dtype(n))}); }
Outputs rnn_tanh(Lowering& l, const AtenNode& n) {
  return recurrent(l, n, rnn_kind("Tanh"), {l.input(n, "hx", out_dtype(n))});
}
Outputs rnn_relu(Lowering& l, const AtenNode& n) {
  return recurrent(l, n, rnn_kind("Relu"), {l.input(n, "hx", out_dtype(n))});
}

Outputs packed(Lowering& l, const AtenNode& n) {
  throw l.error(n, "takes a packed sequence; pass padded sequences to the module instead");
}

// ── Single steps ──

// x * w^T + b
Value* gates_of(Lowering& l, const AtenNode& n, Value* x, std::string_view weight, std::string_view bias) {
  const ScalarType dtype = out_dtype(n);
  std::vector<Value*> inputs = {x, l.input(n, weight, dtype)};
  if (Value* given = l.input_or_null(n, bias, dtype)) inputs.push_back(given);
  return l.emit("Gemm", inputs, {{"transB", int64_t{1}}});
}

Outputs split(Lowering& l, Value* value, int64_t count) {
  return l.emit_many("Split", {value}, {{"axis", int64_t{1}}, {"num_outputs", count}}, static_cast<size_t>(count));
}

Outputs lstm_cell(Lowering& l, const AtenNode& n) {
  const auto state = l.inputs(n, "hx", out_dtype(n));
  Value* sum = l.emit("Add", {gates_of(l, n, l.input(n, "input", out_dtype(n)), "w_ih", "b_ih"),
                              gates_of(l, n, state[0], "w_hh", "b_hh")});
  const Outputs gate = split(l, sum, 4);
  Value* kept = l.emit("Mul", {l.emit("Sigmoid", {gate[1]}), state[1]});
  Value* added = l.emit("Mul", {l.emit("Sigmoid", {gate[0]}), l.emit("Tanh", {gate[2]})});
  Value* cell = l.emit("Add", {kept, added});
  return {l.emit("Mul", {l.emit("Sigmoid", {gate[3]}), l.emit("Tanh", {cell})}), cell};
}

Outputs gru_cell(Lowering& l, const AtenNode& n) {
  Value* state = l.input(n, "hx", out_dtype(n));
  const Outputs from_input = split(l, gates_of(l, n, l.input(n, "input", out_dtype(n)), "w_ih", "b_ih"), 3);
  const Outputs from_state = split(l, gates_of(l, n, state, "w_hh", "b_hh"), 3);
  Value* reset = l.emit("Sigmoid", {l.emit("Add", {from_input[0], from_state[0]})});
  Value* update = l.emit("Sigmoid", {l.emit("Add", {from_input[1], from_state[1]})});
  Value* proposed = l.emit("Tanh", {l.emit("Add", {from_input[2], l.emit("Mul", {reset, from_state[2]})})});
  // (1 - update) * proposed + update * state
  return {l.emit("Add", {proposed, l.emit("Mul", {update, l.emit("Sub", {state, proposed})})})};
}

template <OpName Activation>
Outputs rnn_cell(Lowering& l, const AtenNode& n) {
  Value* sum = l.emit("Add", {gates_of(l, n, l.input(n, "input", out_dtype(n)), "w_ih", "b_ih"),
                              gates_of(l, n, l.input(n, "hx", out_dtype(n)), "w_hh", "b_hh")});
  return {l.emit(Activation.view(), {sum})};
}

constexpr OpRow kRows[] = {
    {"aten::gru.data", packed},      {"aten::gru.input", gru},           {"aten::gru_cell", gru_cell},
    {"aten::lstm.data", packed},     {"aten::lstm.input", lstm},         {"aten::lstm_cell", lstm_cell},
    {"aten::rnn_relu.data", packed}, {"aten::rnn_relu.input", rnn_relu}, {"aten::rnn_relu_cell", rnn_cell<"Relu">},
    {"aten::rnn_tanh.data", packed}, {"aten::rnn_tanh.input", rnn_tanh}, {"aten::rnn_tanh_cell", rnn_cell<"Tanh">},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return kRows; }

}  // namespace transporters::onnx
