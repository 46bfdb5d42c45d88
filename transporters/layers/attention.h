// Scaled dot-product attention and the masks it reads. Patches replace them by "layers.attention.<name>".
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string>

#include "transporters/checkpoint/config.h"
#include "transporters/layers/cache.h"

namespace transporters {

enum class AttentionImplementation {
  Sdpa,   // one scaled_dot_product_attention, boolean masks
  Eager,  // matmul, softmax, matmul; additive masks
};

// By transformers' name ("sdpa", "eager"). Throws Error for another, saying what to use.
AttentionImplementation attention_implementation(const std::string& name);
std::string attention_name(AttentionImplementation implementation);

struct MaskArguments {
  AttentionImplementation implementation = AttentionImplementation::Sdpa;
  at::ScalarType dtype = at::kFloat;  // of the hidden states
  c10::SymInt batch;
  c10::SymInt query_length;
  // [batch, keys] with 0 for padding, on either side; or a ready mask [batch, 1, query, keys]; or undefined.
  at::Tensor attention_mask;
  // Null without a cache. The layer before the new tokens are added.
  const CacheLayer* cache = nullptr;
  // Positions the caller gave, [batch or 1, query]: where they jump, a new sequence begins (packed sequences; only
  // looked at without attention_mask and cache). Undefined when positions count up from 0.
  at::Tensor position_ids;
  // Keys further back than this are hidden (a token sees itself and the window - 1 before it).
  std::optional<int64_t> sliding_window;
};

// The mask by which a token sees itself and earlier ones that are not padding: [batch, 1, query, keys]; true where
// attention is allowed (Sdpa), or 0 there and the lowest number elsewhere (Eager).
// Equals transformers' create_causal_mask and create_sliding_window_causal_mask as they build it while exporting.
at::Tensor causal_mask(const MaskArguments& arguments);
// The same where tokens see all that are not padding; undefined when there is nothing to hide.
at::Tensor bidirectional_mask(const MaskArguments& arguments);

// A mask that is true where attention is allowed, as the implementation reads it.
at::Tensor readable_mask(const at::Tensor& allowed, AttentionImplementation implementation, at::ScalarType dtype);

// How many keys a mask is for; nullopt without a mask.
std::optional<c10::SymInt> visible_keys(const at::Tensor& mask);

struct AttentionArguments {
  AttentionImplementation implementation = AttentionImplementation::Sdpa;
  double scale = 1.0;
  // Eager softmax in float32 whatever the type, as decoder-only models do.
  bool softmax_in_float32 = true;
  // Eager scores are products in float32 as well.
  bool scores_in_float32 = false;
};

// query [batch, heads, query, head_dim], key and value [batch, key_value_heads, keys, head_dim], heads a multiple of
// key_value_heads; mask as above or undefined. Returns [batch, query, heads * head_dim].
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                     const AttentionArguments& arguments);

// [batch, sequence, heads * head_dim] -> [batch, sequence, heads, head_dim].
at::Tensor split_heads(const at::Tensor& x, int64_t heads, int64_t head_dim);

}  // namespace transporters
