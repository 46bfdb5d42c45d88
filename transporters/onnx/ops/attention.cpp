// scaled_dot_product_attention as MatMul, Softmax, MatMul.
//
// Three points where runtimes and torch differ are spelled out: rows whose mask allows nothing give zeros, is_causal
// aligns queries and keys at the top left whatever their lengths, and grouped key heads are shared without being
// copied. Opset 23's Attention op leaves the first two to the runtime and is no faster (ARCHITECTURE.md), so it is not
// used.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Mask {
  Value* bias = nullptr;      // added to the scores
  Value* is_empty = nullptr;  // rows that allow nothing; null when there are none
};

std::string key_of(const Value* value) { return std::to_string(reinterpret_cast<uintptr_t>(value)); }

// Made once for all layers that share the mask.
Mask read_mask(Lowering& l, Value* mask, ScalarType dtype) {
  Value* lowest = l.scalar(-INFINITY, dtype);
  const std::string type = c10::toString(dtype);
  Mask result;
  if (Lowering::dtype(mask) == ScalarType::Bool) {
    result.bias = l.once("attention bias " + type + key_of(mask),
                         [&] { return l.emit("Where", {mask, l.scalar(0, dtype), lowest}); });
    result.is_empty = l.once("empty attention rows " + key_of(mask), [&] {
      Value* count = l.reduce("ReduceSum", l.cast(mask, ScalarType::Int), {-1}, true);
      return l.emit("Equal", {count, l.integer(0, ScalarType::Int)});
    });
  } else {
    result.bias = l.once("attention bias " + type + key_of(mask), [&] { return l.cast(mask, dtype); });
    result.is_empty = l.once("empty attention rows " + type + key_of(mask), [&] {
      Value* largest = l.reduce("ReduceMax", result.bias, {-1}, true);
      return l.emit("Equal", {largest, lowest});
    });
  }
  return result;
}

// Query i sees keys 0 to i.
Mask causal_mask(Lowering& l, const Expr& queries, const Expr& keys, ScalarType dtype) {
  Mask result;
  result.bias = l.once("causal bias " + queries.str() + ", " + keys.str() + " " + c10::toString(dtype), [&] {
    Value* sees = l.emit("LessOrEqual", {range(l, 0, keys), l.unsqueeze(range(l, 0, queries), {1})});
    return l.emit("Where", {sees, l.scalar(0, dtype), l.scalar(-INFINITY, dtype)});
  });
  return result;
}

Outputs attention(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* query = n.tensor("query");
  const AtenValue* key = n.tensor("key");
  const int64_t dims = rank(query);
  const Expr queries = size_at(query, -2), keys = size_at(key, -2);
  if (n.real("dropout_p") != 0) {
    throw l.error(n, "drops attention weights at random: the model is in training mode; call eval() before exporting");
  }

  Value* q = l.input(n, "query", dtype);
  Value* k = l.input(n, "key", dtype);
  Value* v = l.input(n, "value", dtype);
  Value* scale = nullptr;
  if (const auto given = n.real_or_none("scale")) {
    scale = l.scalar(*given, dtype);
  } else if (const auto width = size_at(query, -1).as_integer()) {
    scale = l.scalar(1 / std::sqrt(static_cast<double>(*width)), dtype);
  } else {
    scale = l.emit("Reciprocal", {l.emit("Sqrt", {l.number(size_at(query, -1), dtype)})});
  }
  q = l.emit("Mul", {q, scale});

  // Query heads that share a key head stand next to each other: seen as more queries of that one head.
  std::vector<Expr> q_sizes = query->sizes(), score_sizes(query->sizes().begin(), query->sizes().end() - 1);
  score_sizes.push_back(keys);
  std::vector<Expr> grouped = q_sizes, grouped_scores = score_sizes, grouped_output = out_sizes(n);
  const bool is_grouped = dims >= 3 && !(size_at(query, -3) == size_at(key, -3)) && !size_at(key, -3).is(1);
  if (is_grouped) {
    const auto heads = static_cast<size_t>(dims) - 3;
    const Expr key_heads = size_at(key, -3);
    const Expr rows = symbolic::floor_div(size_at(query, -3), key_heads) * queries;
    for (auto* sizes : {&grouped, &grouped_scores, &grouped_output}) {
      (*sizes)[heads] = key_heads;
      (*sizes)[heads + 1] = rows;
    }
  }

  auto order = iota(rank(key));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Value* scores = l.emit("MatMul", {l.reshape(q, q_sizes, grouped), l.transpose(k, order)});
  scores = l.reshape(scores, grouped_scores, score_sizes);

  Mask mask;
  if (n.schema().find("attn_mask")) {
    if (Value* given = l.input_or_null(n, "attn_mask")) mask = read_mask(l, given, dtype);
  }
  if (n.boolean("is_causal")) mask = causal_mask(l, queries, keys, dtype);
  if (mask.bias) scores = l.emit("Add", {scores, mask.bias});
  Value* weights = l.emit("Softmax", {scores}, {{"axis", int64_t{-1}}});
  Value* output = l.emit("MatMul", {l.reshape(weights, score_sizes, grouped_scores), v});
  output = l.reshape(output, grouped_output, out_sizes(n));
  if (mask.is_empty) output = l.emit("Where", {mask.is_empty, l.scalar(0, dtype), output});
  return {output};
}

constexpr OpRow kRows[] = {
    {"aten::_scaled_dot_product_efficient_attention", attention},
    {"aten::_scaled_dot_product_flash_attention", attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    {"aten::scaled_dot_product_attention", attention},
};

}  // namespace

std::span<const OpRow> attention_ops() { return kRows; }

}  // namespace transporters::onnx
