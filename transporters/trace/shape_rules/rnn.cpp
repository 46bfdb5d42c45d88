// Recurrent layers and cells, and the packing of sequences of different lengths.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// Layers: input [time, batch, features] or [batch, time, features]; hidden [layers * directions, batch, size].
Sizes output_sizes(const Node& node, const TensorType& x, const TensorType& hidden, ShapeEnv& env) {
  check_rank(node, "input", x, {3});
  check_rank(node, "hx", hidden, {3});
  const size_t batch = node.boolean("batch_first") ? 0 : 1;
  const int64_t directions = node.boolean("bidirectional") ? 2 : 1;
  const std::string got = ", got " + describe(x) + " and " + describe(hidden);
  common_size(node, hidden.sizes[0], node.integer("num_layers") * directions, env,
              "expected one hidden state a layer and direction" + got);
  Sizes sizes = x.sizes;
  sizes[batch] = common_size(node, x.sizes[batch], hidden.sizes[1], env, "expected one batch size" + got);
  sizes[2] = hidden.sizes[2] * directions;
  return sizes;
}

// Packed layers: data [elements of all sequences, features].
Sizes packed_sizes(const Node& node, const TensorType& data, const TensorType& hidden) {
  check_rank(node, "data", data, {2});
  check_rank(node, "hx", hidden, {3});
  return {data.sizes[0], hidden.sizes[2] * (node.boolean("bidirectional") ? 2 : 1)};
}

Types with_states(const TensorType& x, Sizes sizes, const std::vector<const TensorType*>& states) {
  Types types = {tensor(x.dtype, std::move(sizes))};
  for (const auto* state : states) types.push_back(tensor(state->dtype, state->sizes));
  return types;
}

Types lstm(const Node& node, ShapeEnv& env) {
  const auto states = inputs(node, "hx");
  check(states.size() == 2, node, "expected hidden and cell state, got " + std::to_string(states.size()) + " tensors");
  const auto& x = input(node, "input");
  return with_states(x, output_sizes(node, x, *states[0], env), states);
}

Types lstm_packed(const Node& node, ShapeEnv& env) {
  const auto states = inputs(node, "hx");
  check(states.size() == 2, node, "expected hidden and cell state, got " + std::to_string(states.size()) + " tensors");
  const auto& data = input(node, "data");
  return with_states(data, packed_sizes(node, data, *states[0]), states);
}

// gru, rnn_tanh, rnn_relu
Types rnn(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  const auto& hidden = input(node, "hx");
  return with_states(x, output_sizes(node, x, hidden, env), {&hidden});
}

Types rnn_packed(const Node& node, ShapeEnv& env) {
  const auto& data = input(node, "data");
  const auto& hidden = input(node, "hx");
  return with_states(data, packed_sizes(node, data, hidden), {&hidden});
}

Types lstm_cell(const Node& node, ShapeEnv& env) {
  const auto states = inputs(node, "hx");
  check(states.size() == 2, node, "expected hidden and cell state, got " + std::to_string(states.size()) + " tensors");
  return {tensor(states[0]->dtype, states[0]->sizes), tensor(states[1]->dtype, states[1]->sizes)};
}

Types cell(const Node& node, ShapeEnv& env) {
  const auto& hidden = input(node, "hx");
  return one(hidden.dtype, hidden.sizes);
}

// -> data [elements of all sequences, ...], batch sizes [longest]
Types pack_padded_sequence(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_rank_at_least(node, "input", x, 2);
  const size_t time = node.boolean("batch_first") ? 1 : 0;
  Sizes sizes = {unbacked_size(node, env, x.sizes[0] * x.sizes[1])};
  sizes.insert(sizes.end(), x.sizes.begin() + 2, x.sizes.end());
  return {tensor(x.dtype, sizes), tensor(ScalarType::Long, {unbacked_size(node, env, x.sizes[time])})};
}

// -> padded [time, batch, ...], lengths [batch]
Types pad_packed_sequence(const Node& node, ShapeEnv& env) {
  const auto& data = input(node, "data");
  const auto& batch_sizes = input(node, "batch_sizes");
  const int64_t total = node.integer("total_length");
  const Expr time = total > 0 ? Expr(total) : batch_sizes.sizes.at(0);
  const Expr batch = unbacked_size(node, env, data.sizes.at(0));
  Sizes sizes = node.boolean("batch_first") ? Sizes{batch, time} : Sizes{time, batch};
  sizes.insert(sizes.end(), data.sizes.begin() + 1, data.sizes.end());
  return {tensor(data.dtype, sizes), tensor(ScalarType::Long, {batch})};
}

// Sequences [length, ...] padded to the longest.
Types pad_sequence(const Node& node, ShapeEnv& env) {
  const auto sequences = inputs(node, "sequences");
  check(!sequences.empty(), node, "expected at least one sequence");
  Expr longest = sequences[0]->sizes.at(0);
  for (const auto* sequence : sequences) longest = max(longest, sequence->sizes.at(0));
  const auto count = static_cast<int64_t>(sequences.size());
  Sizes sizes = flag(node, "batch_first") ? Sizes{count, env.simplify(longest)} : Sizes{env.simplify(longest), count};
  sizes.insert(sizes.end(), sequences[0]->sizes.begin() + 1, sequences[0]->sizes.end());
  return one(sequences[0]->dtype, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::lstm.input", lstm},
    {"aten::lstm.data", lstm_packed},
    {"aten::gru.input", rnn},
    {"aten::gru.data", rnn_packed},
    {"aten::rnn_tanh.input", rnn},
    {"aten::rnn_tanh.data", rnn_packed},
    {"aten::rnn_relu.input", rnn},
    {"aten::rnn_relu.data", rnn_packed},
    {"aten::lstm_cell", lstm_cell},
    {"aten::gru_cell", cell},
    {"aten::rnn_tanh_cell", cell},
    {"aten::rnn_relu_cell", cell},
    {"aten::_pack_padded_sequence", pack_padded_sequence},
    {"aten::_pad_packed_sequence", pad_packed_sequence},
    {"aten::pad_sequence", pad_sequence},
};

}  // namespace

std::span<const ShapeRuleRow> rnn_rules() { return kRows; }

}  // namespace transporters::shape_rules
