#include "transporters/models/t5.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/norm.h"

namespace transporters {
namespace {

struct T5Settings {
  explicit T5Settings(const Config& config)
      : vocab_size(config.positive("vocab_size", 32128)),
        hidden_size(config.positive("d_model", 512)),
        head_dim(config.positive("d_kv", 64)),
        intermediate_size(config.positive("d_ff", 2048)),
        num_layers(config.positive("num_layers", 6)),
        num_decoder_layers(config.positive("num_decoder_layers", num_layers)),
        num_heads(config.positive("num_heads", 8)),
        buckets(config.positive("relative_attention_num_buckets", 32)),
        max_distance(config.positive("relative_attention_max_distance", 128)),
        eps(config.non_negative_real("layer_norm_epsilon", 1e-6)),
        // T5 1.1 has a head of its own, and its configs say so.
        scales_outputs(config.boolean("scale_decoder_outputs", config.boolean("tie_word_embeddings", true))) {
    const std::string projection = config.string("feed_forward_proj", "relu");
    is_gated = projection.starts_with("gated-");
    // "gated-gelu" has always meant the tanh form.
    const std::string name = is_gated ? projection.substr(6) : projection;
    activation = transporters::activation(config, "dense_act_fn", is_gated && name == "gelu" ? "gelu_new" : name);
    if (buckets < 4 || max_distance <= buckets / 2)
      config.fail("relative_attention_max_distance", "expected more than half of relative_attention_num_buckets (" +
                                                         std::to_string(buckets) + ", at least 4), got " +
                                                         std::to_string(max_distance));
  }

  int64_t vocab_size, hidden_size, head_dim, intermediate_size, num_layers, num_decoder_layers, num_heads;
  int64_t buckets, max_distance;
  double eps;
  bool scales_outputs;
  bool is_gated = false;
  Activation activation = nullptr;
};

struct T5Masks {
  at::Tensor self;   // added to scores: positions and what is hidden, [batch or 1, heads, query, keys]
  at::Tensor cross;  // what is hidden of the encoder's states; undefined when nothing is
};

at::Tensor lowest_where_hidden(const at::Tensor& bias, const at::Tensor& mask) {
  if (!mask.defined()) return bias;
  if (mask.scalar_type() != at::kBool) return bias + mask;
  const double lowest = bias.scalar_type() == at::kHalf ? -65504.0
                        : bias.scalar_type() == at::kBFloat16
                            ? static_cast<double>(std::numeric_limits<c10::BFloat16>::lowest())
                        : bias.scalar_type() == at::kDouble ? std::numeric_limits<double>::lowest()
                                                            : std::numeric_limits<float>::lowest();
  return at::where(mask, bias, at::scalar_tensor(lowest, bias.options()));
}

class T5Attention : public Module {
 public:
  T5Attention(const Weights& weights, const ModelContext& context, const T5Settings& s, bool has_bias, bool is_decoder)
      : Module(weights), s_(s), is_decoder_(is_decoder) {
    const int64_t inner = s.num_heads * s.head_dim;
    q = member<Linear>(weights, "q", s.hidden_size, inner, /*bias=*/false);
    k = member<Linear>(weights, "k", s.hidden_size, inner, /*bias=*/false);
    v = member<Linear>(weights, "v", s.hidden_size, inner, /*bias=*/false);
    o = member<Linear>(weights, "o", inner, s.hidden_size, /*bias=*/false);
    if (has_bias)
      relative_attention_bias = member<Embedding>(weights, "relative_attention_bias", s.buckets, s.num_heads);
    arguments_.implementation = context.attention;
    arguments_.softmax_in_float32 = false;
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    auto keys = split(k->forward(x)), values = split(v->forward(x));
    if (cache != nullptr) std::tie(keys, values) = cache->update(keys, values, visible_keys(mask));
    return attend(x, keys, values, mask);
  }

  // Over the encoder's states, which the cache has after the first call.
  at::Tensor cross(const at::Tensor& x, const at::Tensor& states, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    if (cache != nullptr && cache->is_filled()) {
      const auto known = cache->tensors();
      return attend(x, known[0].second, known[1].second, mask);
    }
    auto keys = split(k->forward(states)), values = split(v->forward(states));
    if (cache != nullptr) std::tie(keys, values) = cache->update(keys, values);
    return attend(x, keys, values, mask);
  }

  // The bias of tokens at `positions`, [1, query], for all keys: [1, heads, query, keys].
  at::Tensor position_bias(const at::Tensor& positions, const c10::SymInt& keys) const {
    const auto own = positions.transpose(0, 1);
    const auto other = at::arange(keys, at::kLong).unsqueeze(0);
    auto distance = other - own;
    int64_t buckets = s_.buckets;
    at::Tensor bucket;
    if (is_decoder_) {
      distance = at::clamp_min(-distance, 0);
    } else {
      buckets /= 2;
      bucket = distance.gt(0).to(at::kLong) * buckets;
      distance = distance.abs();
    }
    const int64_t exact = buckets / 2;
    // The other half grows with the logarithm of the distance.
    const double scale = std::log(static_cast<double>(s_.max_distance) / static_cast<double>(exact));
    auto far = at::log(at::clamp_min(distance, 1).to(at::kFloat) / exact) / scale * (buckets - exact);
    far = at::clamp_max(far.to(at::kLong) + exact, buckets - 1);
    const auto near_or_far = at::where(distance.lt(exact), distance, far);
    bucket = bucket.defined() ? bucket + near_or_far : near_or_far;
    return relative_attention_bias->forward(bucket).permute({2, 0, 1}).unsqueeze(0);
  }

 private:
  at::Tensor split(const at::Tensor& x) const { return split_heads(x, s_.num_heads, s_.head_dim).transpose(1, 2); }
  at::Tensor attend(const at::Tensor& x, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& mask) const {
    return o->forward(attention(split(q->forward(x)), keys, values, mask, arguments_));
  }

  T5Settings s_;
  bool is_decoder_;
  std::shared_ptr<Linear> q, k, v, o;
  std::shared_ptr<Embedding> relative_attention_bias;
  AttentionArguments arguments_;
};

class T5FeedForward : public Module {
 public:
  T5FeedForward(const Weights& weights, const T5Settings& s) : Module(weights), activation_(s.activation) {
    if (s.is_gated) {
      wi_0 = member<Linear>(weights, "wi_0", s.hidden_size, s.intermediate_size, /*bias=*/false);
      wi_1 = member<Linear>(weights, "wi_1", s.hidden_size, s.intermediate_size, /*bias=*/false);
    } else {
      wi_0 = member<Linear>(weights, "wi", s.hidden_size, s.intermediate_size, /*bias=*/false);
    }
    wo = member<Linear>(weights, "wo", s.intermediate_size, s.hidden_size, /*bias=*/false);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    auto y = activation_(wi_0->forward(x));
    if (wi_1) y = y * wi_1->forward(x);
    // Its weights are float32 in models of float16.
    return wo->forward(y.to(wo->weight.scalar_type()));
  }

 private:
  std::shared_ptr<Linear> wi_0, wi_1, wo;
  Activation activation_;
};

// A part of a block: attention or feed-forward, and its norm.
class T5Layer : public Module {
 public:
  enum class Kind { SelfAttention, CrossAttention, FeedForward };
  T5Layer(const Weights& weights, const ModelContext& context, const T5Settings& s, Kind kind, bool has_bias,
          bool is_decoder)
      : Module(weights) {
    if (kind == Kind::FeedForward) {
      feed_forward = member<T5FeedForward>(weights, "DenseReluDense", s);
    } else {
      const char* name = kind == Kind::SelfAttention ? "SelfAttention" : "EncDecAttention";
      attention = member<T5Attention>(weights, name, context, s, has_bias, is_decoder);
    }
    layer_norm = member<RMSNorm>(weights, "layer_norm", s.hidden_size, s.eps);
  }

  std::shared_ptr<T5Attention> attention;
  std::shared_ptr<T5FeedForward> feed_forward;
  std::shared_ptr<RMSNorm> layer_norm;
};

class T5Block : public Module {
 public:
  T5Block(const Weights& weights, const ModelContext& context, const T5Settings& s, bool is_first, bool is_decoder)
      : Module(weights) {
    const int64_t count = is_decoder ? 3 : 2;
    layer = members<T5Layer>(weights, "layer", count, [&](const Weights& w, int64_t i) {
      const auto kind = i == 0           ? T5Layer::Kind::SelfAttention
                        : i + 1 == count ? T5Layer::Kind::FeedForward
                                         : T5Layer::Kind::CrossAttention;
      return std::make_shared<T5Layer>(w, context, s, kind, /*has_bias=*/is_first && i == 0, is_decoder);
    });
  }

  at::Tensor forward(at::Tensor x, const T5Masks& masks, const at::Tensor& states, CacheLayer* cache,
                     CacheLayer* cross_cache) const {
    const ModuleScope scope(path());
    x = clamped(x + layer[0]->attention->forward(layer[0]->layer_norm->forward(x), masks.self, cache));
    if (layer.size() > 2)
      x = clamped(x + layer[1]->attention->cross(layer[1]->layer_norm->forward(x), states, masks.cross, cross_cache));
    return clamped(x + layer.back()->feed_forward->forward(layer.back()->layer_norm->forward(x)));
  }

  std::vector<std::shared_ptr<T5Layer>> layer;

 private:
  // float16 can overflow here; transformers keeps infinite values a little below the largest number.
  static at::Tensor clamped(const at::Tensor& x) {
    if (x.scalar_type() != at::kHalf) return x;
    const auto largest =
        at::where(at::isinf(x).any(), at::scalar_tensor(64504.0, x.options()), at::scalar_tensor(65504.0, x.options()));
    return at::clamp(x, -largest, largest);
  }
};

// What encoder and decoder have in common.
class T5Stack : public PreTrainedModel {
 public:
  T5Stack(const Weights& weights, const ModelContext& context, const T5Settings& s, bool is_decoder)
      : PreTrainedModel(weights, context, "T5Stack"), s_(s) {
    embed_tokens = member<Embedding>(weights, "embed_tokens", s.vocab_size, s.hidden_size);
    const int64_t count = is_decoder ? s.num_decoder_layers : s.num_layers;
    block = members<T5Block>(weights, "block", count, [&](const Weights& w, int64_t i) {
      return std::make_shared<T5Block>(w, context, s, i == 0, is_decoder);
    });
    final_layer_norm = member<RMSNorm>(weights, "final_layer_norm", s.hidden_size, s.eps);
  }

  // As the encoder.
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    check_ids_or_embeds(inputs);
    const ModuleScope scope(path());
    auto x = inputs.tensor("inputs_embeds");
    if (!x.defined()) x = embed_tokens->forward(inputs.tensor("input_ids"));
    T5Masks masks;
    const auto positions = next_positions(x.sym_size(1), nullptr);
    masks.self = lowest_where_hidden(block[0]->layer[0]->attention->position_bias(positions, x.sym_size(1)),
                                     bidirectional_mask(mask_arguments(x, inputs.tensor("attention_mask"))));
    for (const auto& one : block) x = one->forward(x, masks, {}, nullptr, nullptr);
    ModelOutput output("BaseModelOutputWithPastAndCrossAttentions");
    output.set("last_hidden_state", final_layer_norm->forward(x));
    return output;
  }

  // As the decoder, over the encoder's `states`; the cache may be null.
  at::Tensor decode(const at::Tensor& ids, const at::Tensor& mask, const at::Tensor& states,
                    const at::Tensor& states_mask, Cache* cache) const {
    const ModuleScope scope(path());
    auto x = embed_tokens->forward(ids);
    const CacheLayer* past = cache == nullptr ? nullptr : cache->layers.front().get();
    MaskArguments arguments = mask_arguments(x, mask);
    arguments.cache = past;
    const c10::SymInt keys = past == nullptr ? x.sym_size(1) : past->mask_sizes(x.sym_size(1)).first;
    const auto bias = block[0]->layer[0]->attention->position_bias(next_positions(x.sym_size(1), past), keys);
    const T5Masks masks{lowest_where_hidden(bias, causal_mask(arguments)),
                        bidirectional_mask(mask_arguments(x, states_mask))};
    for (size_t i = 0; i < block.size(); ++i)
      x = block[i]->forward(x, masks, states, cache == nullptr ? nullptr : cache->layers[i].get(),
                            cache == nullptr ? nullptr : cache->layers[block.size() + i].get());
    return final_layer_norm->forward(x);
  }

  std::vector<InputInfo> inputs() const override {
    return {{"input_ids", at::kLong, {"batch", "sequence"}},
            {"attention_mask", at::kLong, {"batch", "sequence"}},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}}};
  }
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto ids = example_ids(batch, sequence, s_.vocab_size, config().integer_or_none("pad_token_id"));
    return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
  }

 private:
  MaskArguments mask_arguments(const at::Tensor& x, const at::Tensor& attention_mask) const {
    MaskArguments arguments;
    arguments.implementation = context().attention;
    arguments.dtype = x.scalar_type();
    arguments.batch = x.sym_size(0);
    arguments.query_length = x.sym_size(1);
    arguments.attention_mask = attention_mask;
    return arguments;
  }

  T5Settings s_;
  std::shared_ptr<Embedding> embed_tokens;
  std::vector<std::shared_ptr<T5Block>> block;
  std::shared_ptr<RMSNorm> final_layer_norm;
};

class T5ForConditionalGeneration : public PreTrainedModel {
 public:
  T5ForConditionalGeneration(const Weights& weights, const ModelContext& context, const T5Settings& s)
      : PreTrainedModel(weights, context, "T5ForConditionalGeneration"), s_(s) {
    shared = member<Embedding>(weights, "shared", s.vocab_size, s.hidden_size);
    encoder_ = member<T5Stack>(weights, "encoder", context, s, /*is_decoder=*/false);
    decoder_ = member<T5Stack>(weights, "decoder", context, s, /*is_decoder=*/true);
    lm_head = member<Linear>(weights, "lm_head", s.hidden_size, s.vocab_size, /*bias=*/false);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const at::Tensor ids = inputs.tensor("decoder_input_ids");
    if (!ids.defined()) throw Error("'decoder_input_ids' is missing: expected the decoder's tokens");
    auto cache = start_cache(inputs);
    const TensorDict* given = inputs.dict("encoder_outputs");
    at::Tensor states = given == nullptr ? at::Tensor() : given->find("last_hidden_state");
    const auto mask = inputs.tensor("attention_mask");
    if (!states.defined()) {
      ModelInputs prompt;
      prompt.set("input_ids", inputs.tensor("input_ids"));
      prompt.set("attention_mask", mask);
      states = encoder_->forward(prompt).tensor("last_hidden_state");
    }
    auto x = decoder_->decode(ids, inputs.tensor("decoder_attention_mask"), states, mask, cache ? &*cache : nullptr);
    if (s_.scales_outputs) x = x * std::pow(static_cast<double>(s_.hidden_size), -0.5);
    ModelOutput output("Seq2SeqLMOutput");
    output.set("logits", lm_head->forward(last_tokens(x, inputs.logits_to_keep)));
    if (cache) output.set("cache", *cache);
    output.set("encoder_last_hidden_state", states);
    return output;
  }

  std::vector<InputInfo> inputs() const override {
    return {{"input_ids", at::kLong, {"batch", "encoder_sequence"}},
            {"attention_mask", at::kLong, {"batch", "encoder_sequence"}},
            {"decoder_input_ids", at::kLong, {"batch", "sequence"}},
            {"decoder_attention_mask", at::kLong, {"batch", "total_sequence"}}};
  }
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto pad = config().integer_or_none("pad_token_id");
    const auto ids = example_ids(batch, sequence, s_.vocab_size, pad);
    return {{"input_ids", ids},
            {"attention_mask", at::ones_like(ids)},
            {"decoder_input_ids", example_ids(batch, sequence + 2, s_.vocab_size, pad)}};
  }

  bool generates() const override { return true; }
  std::shared_ptr<PreTrainedModel> encoder() const override { return encoder_; }
  std::optional<Cache> empty_cache() const override {
    const auto layers = static_cast<size_t>(s_.num_decoder_layers);
    Cache cache = Cache::dynamic(std::vector<std::optional<int64_t>>(layers));
    cache.add_cross_layers(layers, 0, 0, 0, 0);
    return cache;
  }
  std::optional<Cache> static_cache(int64_t batch, int64_t length) const override {
    const auto layers = static_cast<size_t>(s_.num_decoder_layers);
    const std::vector<std::optional<int64_t>> windows(layers);
    Cache cache = Cache::fixed(windows, batch, s_.num_heads, length, s_.head_dim, dtype());
    cache.add_cross_layers(layers, batch, s_.num_heads, 0, s_.head_dim);
    return cache;
  }

 private:
  T5Settings s_;
  std::shared_ptr<Embedding> shared;
  std::shared_ptr<T5Stack> encoder_, decoder_;
  std::shared_ptr<Linear> lm_head;
};

}  // namespace

std::vector<ModelClass> t5_classes() {
  WeightStore::Naming naming;
  naming.kept_float32 = {"wo"};
  ModelClass generation{"T5ForConditionalGeneration",
                        Task::Seq2SeqLM,
                        naming,
                        {},
                        false,
                        [](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
                          return std::make_shared<T5ForConditionalGeneration>(weights, context,
                                                                              T5Settings(context.config));
                        }};
  // The config's word about tying only tells whether outputs are scaled.
  generation.always_tied = {{"encoder.embed_tokens.weight", "shared.weight"},
                            {"decoder.embed_tokens.weight", "shared.weight"},
                            {"lm_head.weight", "shared.weight"}};
  return {generation};
}

}  // namespace transporters
