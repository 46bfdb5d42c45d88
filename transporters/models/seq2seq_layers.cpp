#include <ATen/ATen.h>

#include <cmath>
#include <tuple>

#include "transporters/error.h"
#include "transporters/models/seq2seq.h"

namespace transporters {

Seq2SeqAttention::Seq2SeqAttention(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s,
                                   int64_t heads)
    : Module(weights), heads_(heads), head_dim_(s.hidden_size / heads) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
  arguments_.implementation = context.attention;
  arguments_.softmax_in_float32 = false;
  (s.scales_query ? query_scale_ : arguments_.scale) = scale;
  k_proj = member<Linear>(weights, "k_proj", s.hidden_size, s.hidden_size, s.key_bias);
  v_proj = member<Linear>(weights, "v_proj", s.hidden_size, s.hidden_size);
  q_proj = member<Linear>(weights, "q_proj", s.hidden_size, s.hidden_size);
  out_proj = member<Linear>(weights, "out_proj", s.hidden_size, s.hidden_size);
}

at::Tensor Seq2SeqAttention::forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
  const ModuleScope scope(path());
  auto keys = split(k_proj->forward(x)), values = split(v_proj->forward(x));
  if (cache != nullptr) std::tie(keys, values) = cache->update(keys, values, visible_keys(mask));
  return attend(x, keys, values, mask);
}

at::Tensor Seq2SeqAttention::cross(const at::Tensor& x, const at::Tensor& states, const at::Tensor& mask,
                                   CacheLayer* cache) const {
  const ModuleScope scope(path());
  if (cache != nullptr && cache->is_filled()) {
    const auto known = cache->tensors();
    return attend(x, known[0].second, known[1].second, mask);
  }
  auto keys = split(k_proj->forward(states)), values = split(v_proj->forward(states));
  if (cache != nullptr) std::tie(keys, values) = cache->update(keys, values);
  return attend(x, keys, values, mask);
}

at::Tensor Seq2SeqAttention::split(const at::Tensor& x) const {
  return split_heads(x, heads_, head_dim_).transpose(1, 2);
}

at::Tensor Seq2SeqAttention::attend(const at::Tensor& x, const at::Tensor& keys, const at::Tensor& values,
                                    const at::Tensor& mask) const {
  auto query = q_proj->forward(x);
  if (query_scale_ != 1.0) query = query * query_scale_;
  return out_proj->forward(attention(split(query), keys, values, mask, arguments_));
}

Seq2SeqLayer::Seq2SeqLayer(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s, int64_t layer,
                           bool is_decoder)
    : Module(weights),
      norms_first_(s.norms_first),
      clamp_(is_decoder ? s.decoder_clamp : s.encoder_clamp),
      activation_(s.activation) {
  const auto norm = [&](const std::string& name) { return member<LayerNorm>(weights, name, s.hidden_size, 1e-5); };
  const auto& stack = is_decoder ? s.decoder : s.encoder;
  self_attn = member<Seq2SeqAttention>(weights, "self_attn", context, s, stack.heads);
  self_attn_layer_norm = norm("self_attn_layer_norm");
  if (is_decoder) {
    cross_attn = member<Seq2SeqAttention>(weights, s.cross_attention, context, s, stack.heads);
    cross_attn_layer_norm = norm(s.cross_attention + "_layer_norm");
  }
  if (s.feed_forward) {
    ffn = register_module("ffn", s.feed_forward(weights.at("ffn"), context, s, layer, is_decoder));
  } else {
    fc1 = member<Linear>(weights, "fc1", s.hidden_size, stack.intermediate_size);
    fc2 = member<Linear>(weights, "fc2", stack.intermediate_size, s.hidden_size);
  }
  feed_forward_layer_norm = norm(s.feed_forward_norm);
}

template <typename Part>
at::Tensor Seq2SeqLayer::residual(const at::Tensor& x, const LayerNorm& norm, Part part) const {
  return norms_first_ ? x + part(norm.forward(x)) : norm.forward(x + part(x));
}

at::Tensor Seq2SeqLayer::encode(at::Tensor x, const at::Tensor& mask) const {
  const ModuleScope scope(path());
  x = residual(x, *self_attn_layer_norm, [&](const at::Tensor& y) { return self_attn->forward(y, mask, nullptr); });
  return clamped(residual(x, *feed_forward_layer_norm, [&](const at::Tensor& y) { return feed_forward(y, mask); }));
}

at::Tensor Seq2SeqLayer::decode(at::Tensor x, const at::Tensor& mask, const at::Tensor& states,
                                const at::Tensor& states_mask, CacheLayer* cache, CacheLayer* cross_cache) const {
  const ModuleScope scope(path());
  x = residual(x, *self_attn_layer_norm, [&](const at::Tensor& y) { return self_attn->forward(y, mask, cache); });
  x = residual(x, *cross_attn_layer_norm,
               [&](const at::Tensor& y) { return cross_attn->cross(y, states, states_mask, cross_cache); });
  return clamped(residual(x, *feed_forward_layer_norm, [&](const at::Tensor& y) { return feed_forward(y, mask); }));
}

at::Tensor Seq2SeqLayer::feed_forward(const at::Tensor& x, const at::Tensor& mask) const {
  return ffn ? ffn->forward(x, mask) : fc2->forward(activation_(fc1->forward(x)));
}

at::Tensor Seq2SeqLayer::clamped(const at::Tensor& x) const {
  using Clamp = Seq2SeqSettings::Clamp;
  if (clamp_ == Clamp::Never || x.scalar_type() != at::kHalf) return x;
  if (clamp_ == Clamp::Always) return at::clamp(x, -64504.0, 64504.0);
  const auto largest = at::where(at::isfinite(x).all(), at::scalar_tensor(65504.0, x.options()),
                                 at::scalar_tensor(64504.0, x.options()));
  return at::clamp(x, -largest, largest);
}

Seq2SeqEmbeddings::Seq2SeqEmbeddings(const Seq2SeqSettings& s, std::shared_ptr<Embedding> words,
                                     std::shared_ptr<Embedding> learned_positions)
    : words_(std::move(words)),
      learned_(std::move(learned_positions)),
      scale_(s.embedding_scale),
      offset_(s.position_offset),
      pad_(s.pad_token_id) {
  if (s.positions == Seq2SeqSettings::Positions::Learned) return;
  const int64_t half = s.hidden_size / 2;
  frequencies_ =
      at::exp(at::arange(half, at::kLong).to(at::kFloat) * (-std::log(10000.0) / static_cast<double>(half - 1)));
}

at::Tensor Seq2SeqEmbeddings::forward(const at::Tensor& ids, at::Tensor embeds, const at::Tensor& positions,
                                      const CacheLayer* past) const {
  if (!embeds.defined()) {
    embeds = words_->forward(ids);
    if (scale_ != 1.0) embeds = embeds * scale_;
  }
  if (frequencies_.defined()) return embeds + sinusoidal(ids, embeds, past);
  auto places = positions.defined() ? positions : next_positions(embeds.sym_size(1), past);
  if (offset_ != 0) places = places + offset_;
  return embeds + learned_->forward(places);
}

at::Tensor Seq2SeqEmbeddings::sinusoidal(const at::Tensor& ids, const at::Tensor& embeds,
                                         const CacheLayer* past) const {
  at::Tensor positions, is_token;
  if (ids.defined()) {
    is_token = ids.ne(pad_);
    const auto before = next_positions(1, past);  // as many tokens
    positions = at::cumsum(is_token.to(at::kLong), 1) + (before + pad_);
  } else {
    // Embeddings don't show which tokens are padding.
    positions = next_positions(embeds.sym_size(1), past) + (pad_ + 1);
  }
  const auto angles = positions.to(at::kFloat).unsqueeze(-1) * frequencies_;
  auto values = at::cat({at::sin(angles), at::cos(angles)}, -1);
  if (is_token.defined()) values = values * is_token.unsqueeze(-1);
  return values.to(embeds.scalar_type());
}

}  // namespace transporters
