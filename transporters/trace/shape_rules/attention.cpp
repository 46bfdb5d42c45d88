// Scaled dot-product attention, public and private forms, and whole attention layers.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

struct AttentionSizes {
  Sizes batch;     // dims in front of the heads' matrices, heads included
  Expr queries;    // L
  Expr keys;       // S
  Expr embedding;  // E of the values
};

// query [..., L, E], key [..., S, E], value [..., S, Ev]; with enable_gqa keys and values can have fewer heads.
AttentionSizes attention_sizes(const Node& node, ShapeEnv& env) {
  const auto& query = input(node, "query");
  const auto& key = input(node, "key");
  const auto& value = input(node, "value");
  for (const auto* type : {&query, &key, &value}) check_rank_at_least(node, "query, key and value", *type, 2);
  check_same_dtype(node, query, key, "query", "key");
  check_same_dtype(node, query, value, "query", "value");
  const std::string got = ", got " + describe(query) + ", " + describe(key) + " and " + describe(value);
  common_size(node, query.sizes.back(), key.sizes.back(), env, "expected query and key of one embedding size" + got);
  common_size(node, key.sizes[key.rank() - 2], value.sizes[value.rank() - 2], env,
              "expected as many keys as values" + got);
  const auto batch_of = [](const TensorType& type) { return Sizes(type.sizes.begin(), type.sizes.end() - 2); };
  Sizes batch = batch_of(query), key_batch = batch_of(key), value_batch = batch_of(value);
  if (flag(node, "enable_gqa") && !batch.empty() && key_batch.size() == batch.size() &&
      value_batch.size() == batch.size()) {
    for (auto* other : {&key_batch, &value_batch}) {
      exact_quotient(node, {batch.back()}, {other->back()}, env, "expected query heads that key heads divide" + got);
      other->back() = batch.back();
    }
  }
  batch = broadcast_all({batch, key_batch, value_batch}, env);
  if (const auto* mask = input_or_null(node, "attn_mask")) {
    Sizes scores = batch;
    scores.push_back(query.sizes[query.rank() - 2]);
    scores.push_back(key.sizes[key.rank() - 2]);
    check(mask->rank() <= scores.size(), node,
          "expected attn_mask that broadcasts to " + describe(scores) + ", got " + describe(*mask));
    broadcast(scores, mask->sizes, env);
  }
  return {batch, query.sizes[query.rank() - 2], key.sizes[key.rank() - 2], value.sizes.back()};
}

Sizes output_sizes(const AttentionSizes& sizes) {
  Sizes result = sizes.batch;
  result.push_back(sizes.queries);
  result.push_back(sizes.embedding);
  return result;
}

Types scaled_dot_product_attention(const Node& node, ShapeEnv& env) {
  return one(input(node, "query").dtype, output_sizes(attention_sizes(node, env)));
}

// -> output, attention weights
Types math_attention(const Node& node, ShapeEnv& env) {
  const AttentionSizes sizes = attention_sizes(node, env);
  Sizes weights = sizes.batch;
  weights.push_back(sizes.queries);
  weights.push_back(sizes.keys);
  const ScalarType dtype = input(node, "query").dtype;
  return {tensor(dtype, output_sizes(sizes)), tensor(dtype, weights)};
}

Sizes log_sum_sizes(const AttentionSizes& sizes) {
  Sizes result = sizes.batch;
  result.push_back(sizes.queries);
  return result;
}

ScalarType accumulation_dtype(ScalarType dtype) {
  return dtype == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

// -> output, logsumexp
Types flash_attention_for_cpu(const Node& node, ShapeEnv& env) {
  const AttentionSizes sizes = attention_sizes(node, env);
  const ScalarType dtype = input(node, "query").dtype;
  return {tensor(dtype, output_sizes(sizes)), tensor(accumulation_dtype(dtype), log_sum_sizes(sizes))};
}

// -> output, logsumexp, cumulative sequence lengths of queries and keys (of nested tensors only), their longest, random
// state, unused, debug mask
Types flash_attention(const Node& node, ShapeEnv& env) {
  const AttentionSizes sizes = attention_sizes(node, env);
  const ValueType none = tensor(ScalarType::Long, {0});
  Sizes debug_mask = {0};
  if (flag(node, "return_debug_mask")) {
    debug_mask = sizes.batch;
    debug_mask.push_back(sizes.queries);
    debug_mask.push_back(sizes.keys);
  }
  const ScalarType dtype = input(node, "query").dtype;
  return {tensor(dtype, output_sizes(sizes)),
          tensor(ScalarType::Float, log_sum_sizes(sizes)),
          none,
          none,
          NumberType{sizes.queries},
          NumberType{sizes.keys},
          tensor(ScalarType::UInt64, {2}),
          tensor(ScalarType::UInt64, {}),
          tensor(dtype, debug_mask)};
}

// -> output, logsumexp (when asked), random seed and offset
Types efficient_attention(const Node& node, ShapeEnv& env) {
  const AttentionSizes sizes = attention_sizes(node, env);
  Sizes log_sum = log_sum_sizes(sizes);
  // Queries are padded to the kernel's tile of 32.
  log_sum.back() = node.boolean("compute_log_sumexp") ? ceil_div(sizes.queries, 32) * 32 : Expr(0);
  const ValueType state = tensor(ScalarType::Long, {});
  return {tensor(input(node, "query").dtype, output_sizes(sizes)), tensor(ScalarType::Float, log_sum), state, state};
}

// -> output [batch, queries, embedding], weights: averaged over heads or one a head; empty when not needed
Types native_multi_head_attention(const Node& node, ShapeEnv& env) {
  const auto& query = input(node, "query");
  const auto& key = input(node, "key");
  check_rank(node, "query", query, {3});
  check_rank(node, "key", key, {3});
  Sizes weights = {query.sizes[0], query.sizes[1], key.sizes[1]};
  if (!node.boolean("average_attn_weights")) weights.insert(weights.begin() + 1, node.size("num_head"));
  if (!node.boolean("need_weights")) weights = {0};
  return {tensor(query.dtype, query.sizes), tensor(query.dtype, weights)};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::scaled_dot_product_attention", scaled_dot_product_attention},
    {"aten::_scaled_dot_product_attention_math", math_attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_attention_for_cpu},
    {"aten::_scaled_dot_product_flash_attention", flash_attention},
    {"aten::_scaled_dot_product_efficient_attention", efficient_attention},
    {"aten::_native_multi_head_attention", native_multi_head_attention},
    {"aten::_transformer_encoder_layer_fwd", same_as_input},
};

}  // namespace

std::span<const ShapeRuleRow> attention_rules() { return kRows; }

}  // namespace transporters::shape_rules
