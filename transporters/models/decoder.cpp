#include "transporters/models/decoder.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/models/heads.h"

namespace transporters {
namespace {

using CosSin = std::pair<at::Tensor, at::Tensor>;

class DecoderAttention : public Module {
 public:
  DecoderAttention(const Weights& weights, const ModelContext& context, const DecoderSettings& s)
      : Module(weights), heads_(s.num_heads), key_value_heads_(s.num_key_value_heads), head_dim_(s.head_dim) {
    arguments_.implementation = context.attention;
    arguments_.scale = s.attention_scale.value_or(1.0 / std::sqrt(static_cast<double>(s.head_dim)));
    const bool bias = s.query_key_value_bias;
    q_proj = member<Linear>(weights, "q_proj", s.hidden_size, heads_ * head_dim_, bias);
    k_proj = member<Linear>(weights, "k_proj", s.hidden_size, key_value_heads_ * head_dim_, bias);
    v_proj = member<Linear>(weights, "v_proj", s.hidden_size, key_value_heads_ * head_dim_, bias);
    o_proj = member<Linear>(weights, "o_proj", heads_ * head_dim_, s.hidden_size, s.output_bias);
    if (!s.query_key_norm) return;
    q_norm = member<RMSNorm>(weights, "q_norm", head_dim_, s.rms_norm_eps, s.norm_scale);
    k_norm = member<RMSNorm>(weights, "k_norm", head_dim_, s.rms_norm_eps, s.norm_scale);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, const CosSin& rotary, CacheLayer* cache) const {
    const ModuleScope scope(path());
    auto q = split_heads(q_proj->forward(x), heads_, head_dim_);
    auto k = split_heads(k_proj->forward(x), key_value_heads_, head_dim_);
    auto v = split_heads(v_proj->forward(x), key_value_heads_, head_dim_).transpose(1, 2);
    if (q_norm) q = q_norm->forward(q);
    if (k_norm) k = k_norm->forward(k);
    const auto& [cos, sin] = rotary;
    q = apply_rotary(q.transpose(1, 2), cos, sin);
    k = apply_rotary(k.transpose(1, 2), cos, sin);
    if (cache != nullptr) std::tie(k, v) = cache->update(k, v, visible_keys(mask));
    return o_proj->forward(attention(q, k, v, mask, arguments_));
  }

 private:
  std::shared_ptr<Linear> q_proj, k_proj, v_proj, o_proj;
  std::shared_ptr<RMSNorm> q_norm, k_norm;
  int64_t heads_, key_value_heads_, head_dim_;
  AttentionArguments arguments_;
};

class GatedMLP : public Module {
 public:
  GatedMLP(const Weights& weights, const ModelContext& context, const DecoderSettings& s) : Module(weights) {
    activation_ = activation(context.config, s.activation_key, s.activation);
    gate_proj = member<Linear>(weights, "gate_proj", s.hidden_size, s.intermediate_size, s.mlp_bias);
    up_proj = member<Linear>(weights, "up_proj", s.hidden_size, s.intermediate_size, s.mlp_bias);
    down_proj = member<Linear>(weights, "down_proj", s.intermediate_size, s.hidden_size, s.mlp_bias);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return down_proj->forward(activation_(gate_proj->forward(x)) * up_proj->forward(x));
  }

 private:
  std::shared_ptr<Linear> gate_proj, up_proj, down_proj;
  Activation activation_;
};

class DecoderLayer : public Module {
 public:
  DecoderLayer(const Weights& weights, const ModelContext& context, const DecoderSettings& s, int64_t layer)
      : Module(weights) {
    const auto norm = [&](const char* name) {
      return member<RMSNorm>(weights, name, s.hidden_size, s.rms_norm_eps, s.norm_scale);
    };
    self_attn = member<DecoderAttention>(weights, "self_attn", context, s);
    if (!s.sparse.empty() && s.sparse[static_cast<size_t>(layer)])
      experts = member<MixtureOfExperts>(weights, s.experts.block, s.hidden_size, s.experts,
                                         activation(context.config, s.activation_key, s.activation));
    else
      mlp = member<GatedMLP>(weights, "mlp", context, s);
    input_layernorm = norm("input_layernorm");
    post_attention_layernorm = norm("post_attention_layernorm");
    if (!s.sandwich_norms) return;
    pre_feedforward_layernorm = norm("pre_feedforward_layernorm");
    post_feedforward_layernorm = norm("post_feedforward_layernorm");
  }

  at::Tensor forward(at::Tensor x, const at::Tensor& mask, const CosSin& rotary, CacheLayer* cache) const {
    const ModuleScope scope(path());
    auto attended = self_attn->forward(input_layernorm->forward(x), mask, rotary, cache);
    if (!pre_feedforward_layernorm) {
      x = x + attended;
      return x + feed_forward(post_attention_layernorm->forward(x));
    }
    x = x + post_attention_layernorm->forward(attended);
    return x + post_feedforward_layernorm->forward(feed_forward(pre_feedforward_layernorm->forward(x)));
  }

 private:
  at::Tensor feed_forward(const at::Tensor& x) const { return mlp ? mlp->forward(x) : experts->forward(x); }

  std::shared_ptr<DecoderAttention> self_attn;
  std::shared_ptr<GatedMLP> mlp;
  std::shared_ptr<MixtureOfExperts> experts;
  std::shared_ptr<RMSNorm> input_layernorm, post_attention_layernorm;
  std::shared_ptr<RMSNorm> pre_feedforward_layernorm, post_feedforward_layernorm;
};

// What the classes have in common as models.
class DecoderPreTrainedModel : public PreTrainedModel {
 public:
  DecoderPreTrainedModel(const Weights& weights, const ModelContext& context, const std::string& architecture,
                         const DecoderSettings& settings)
      : PreTrainedModel(weights, context, architecture), settings_(settings) {}

  std::vector<InputInfo> inputs() const override {
    const std::vector<std::string> tokens{"batch", "sequence"};
    return {{"input_ids", at::kLong, tokens},
            {"attention_mask", at::kLong, {"batch", "total_sequence"}},
            {"position_ids", at::kLong, settings_.rope.mrope_section.empty() ? tokens : kGridPositionAxes},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}}};
  }

  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto ids = example_ids(batch, sequence, settings_.vocab_size, config().integer_or_none("pad_token_id"));
    return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
  }

  std::optional<Cache> empty_cache() const override { return Cache::dynamic(settings_.windows); }
  std::optional<Cache> static_cache(int64_t batch, int64_t length) const override {
    return Cache::fixed(settings_.windows, batch, settings_.num_key_value_heads, length, settings_.head_dim, dtype());
  }
  std::vector<std::string> mask_kinds() const override { return settings_.mask_kinds(); }

 protected:
  const DecoderSettings& settings() const { return settings_; }

 private:
  DecoderSettings settings_;
};

class DecoderModel : public DecoderPreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    std::optional<Cache> cache;
  };

  DecoderModel(const Weights& weights, const ModelContext& context, const DecoderSettings& s)
      : DecoderPreTrainedModel(weights, context, s.class_prefix + "Model", s) {
    embed_tokens = member<Embedding>(weights, "embed_tokens", s.vocab_size, s.hidden_size);
    layers = members<DecoderLayer>(weights, "layers", s.num_layers, [&](const Weights& w, int64_t layer) {
      return std::make_shared<DecoderLayer>(w, context, s, layer);
    });
    norm = member<RMSNorm>(weights, "norm", s.hidden_size, s.rms_norm_eps, s.norm_scale);
    const auto rotary = [&](const char* name, const RopeParameters& rope) {
      return member<RotaryEmbedding>(weights, name, context.config, rope, s.head_dim, s.max_position_embeddings);
    };
    rotary_emb = rotary("rotary_emb", s.rope);
    if (s.sliding_rope) rotary_emb_local = rotary("rotary_emb_local", *s.sliding_rope);
    // The factor has the weights' precision, as transformers has it.
    if (s.embedding_scale != 1.0)
      embedding_scale_ = at::scalar_tensor(s.embedding_scale, at::kFloat).to(context.dtype).item<double>();
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = run(inputs);
    ModelOutput output(settings().sparse.empty() ? "BaseModelOutputWithPast" : "MoeModelOutputWithPast");
    output.set("last_hidden_state", result.last_hidden_state);
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

  at::Tensor embed(const at::Tensor& ids) const override {
    const auto x = embed_tokens->forward(ids);
    return embedding_scale_ == 1.0 ? x : x * embedding_scale_;
  }

  Result run(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    Result result;
    result.cache = start_cache(inputs);
    auto x = inputs.tensor("inputs_embeds");
    if (!x.defined()) x = embed(inputs.tensor("input_ids"));
    const CacheLayer* past = result.cache ? result.cache->layers.front().get() : nullptr;
    auto positions = inputs.tensor("position_ids");
    MaskArguments mask;
    mask.implementation = context().attention;
    mask.dtype = x.scalar_type();
    mask.batch = x.sym_size(0);
    mask.query_length = x.sym_size(1);
    if (positions.defined() && positions.dim() == 3) {
      // Those in time, height and width, with those that count tokens before them or without.
      const bool has_text = positions.sym_size(0).expect_int() == 4;
      if (has_text) mask.position_ids = positions.select(0, 0);
      if (has_text) positions = positions.narrow(0, 1, 3);
    } else {
      mask.position_ids = positions;
    }
    if (!positions.defined())
      positions = default_position_ids(x.sym_size(1), past == nullptr ? c10::SymInt(0) : past->length());

    // Layers of one kind share mask and rotation.
    at::Tensor full_mask, sliding_mask;
    for (const auto& window : settings().windows) {
      auto& wanted = window ? sliding_mask : full_mask;
      if (wanted.defined()) continue;
      mask.attention_mask = attention_mask(inputs, window.has_value());
      mask.cache = result.cache ? result.cache->first(window.has_value()) : nullptr;
      mask.sliding_window = window;
      wanted = causal_mask(mask);
    }
    const auto rotary = rotary_emb->forward(positions, x.scalar_type());
    const auto sliding_rotary = rotary_emb_local ? rotary_emb_local->forward(positions, x.scalar_type()) : rotary;
    for (size_t i = 0; i < layers.size(); ++i) {
      const bool sliding = settings().windows[i].has_value();
      x = layers[i]->forward(x, sliding ? sliding_mask : full_mask, sliding ? sliding_rotary : rotary,
                             result.cache ? result.cache->layers[i].get() : nullptr);
    }
    result.last_hidden_state = norm->forward(x);
    return result;
  }

 private:
  std::shared_ptr<Embedding> embed_tokens;
  std::vector<std::shared_ptr<DecoderLayer>> layers;
  std::shared_ptr<RMSNorm> norm;
  std::shared_ptr<RotaryEmbedding> rotary_emb, rotary_emb_local;
  double embedding_scale_ = 1.0;
};

class DecoderForCausalLM : public DecoderPreTrainedModel {
 public:
  DecoderForCausalLM(const Weights& weights, const ModelContext& context, const std::string& name,
                     const DecoderSettings& s)
      : DecoderPreTrainedModel(weights, context, name, s) {
    model = member<DecoderModel>(weights, "model", context, s);
    lm_head = member<Linear>(weights, "lm_head", s.hidden_size, s.vocab_size, /*bias=*/false);
  }

  bool generates() const override { return true; }
  at::Tensor embed(const at::Tensor& ids) const override { return model->embed(ids); }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = model->run(inputs);
    auto logits = lm_head->forward(last_tokens(result.last_hidden_state, inputs.logits_to_keep));
    if (const auto cap = settings().logit_softcap) logits = at::tanh(logits / *cap) * *cap;
    ModelOutput output(settings().sparse.empty() ? "CausalLMOutputWithPast" : "MoeCausalLMOutputWithPast");
    output.set("logits", logits);
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<DecoderModel> model;
  std::shared_ptr<Linear> lm_head;
};

}  // namespace

DecoderSettings DecoderSettings::from_config(const Config& config, const DecoderSettings& defaults) {
  DecoderSettings s = defaults;
  s.vocab_size = config.positive("vocab_size", s.vocab_size);
  s.hidden_size = config.positive("hidden_size", s.hidden_size);
  s.intermediate_size = config.positive("intermediate_size", s.intermediate_size);
  s.num_layers = config.positive("num_hidden_layers", s.num_layers);
  s.num_heads = config.positive("num_attention_heads", s.num_heads);
  s.num_key_value_heads =
      config.positive("num_key_value_heads", s.num_key_value_heads > 0 ? s.num_key_value_heads : s.num_heads);
  s.head_dim = config.positive("head_dim", s.head_dim > 0 ? s.head_dim : s.hidden_size / s.num_heads);
  s.max_position_embeddings = config.positive("max_position_embeddings", s.max_position_embeddings);
  s.rms_norm_eps = config.non_negative_real("rms_norm_eps", s.rms_norm_eps);
  if (s.num_heads % s.num_key_value_heads != 0)
    config.fail("num_key_value_heads", "expected a divisor of num_attention_heads (" + std::to_string(s.num_heads) +
                                           "), got " + std::to_string(s.num_key_value_heads));
  if (!config.has("head_dim") && defaults.head_dim == 0 && s.hidden_size % s.num_heads != 0)
    config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(s.num_heads) +
                                   "), got " + std::to_string(s.hidden_size));
  s.windows.assign(static_cast<size_t>(s.num_layers), std::nullopt);
  return s;
}

void DecoderSettings::set_experts(const Config& config, const ExpertSettings& settings,
                                  const std::function<bool(int64_t)>& is_sparse) {
  if (settings.per_token > settings.count)
    config.fail("num_experts_per_tok", "expected at most the number of experts (" + std::to_string(settings.count) +
                                           "), got " + std::to_string(settings.per_token));
  experts = settings;
  for (int64_t i = 0; i < num_layers; ++i) sparse.push_back(is_sparse(i));
}

std::vector<std::string> DecoderSettings::mask_kinds() const {
  std::vector<std::string> kinds;
  if (!has_layer_types) return kinds;
  for (const auto& window : windows) {
    const std::string kind = window ? kSlidingMask : kFullMask;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

std::vector<std::optional<int64_t>> layer_windows(const Config& config, int64_t num_layers,
                                                  std::optional<int64_t> window,
                                                  const std::function<bool(int64_t)>& is_sliding) {
  const auto types = config.strings("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) < num_layers)
    config.fail("layer_types", "expected one for each of " + std::to_string(num_layers) + " layers, got " +
                                   std::to_string(types.size()));
  std::vector<std::optional<int64_t>> windows;
  for (int64_t i = 0; i < num_layers; ++i) {
    bool sliding = false;
    if (types.empty()) {
      sliding = window && is_sliding(i);
    } else {
      const auto& type = types[static_cast<size_t>(i)];
      if (type != "full_attention" && type != "sliding_attention")
        config.fail("layer_types", "names an unknown type '" + type + "'" +
                                       did_you_mean(type, {"full_attention", "sliding_attention"}) +
                                       "; known are full_attention and sliding_attention");
      sliding = type == "sliding_attention";
    }
    if (sliding && !window) config.fail("sliding_window", "is missing; sliding_attention layers need it");
    windows.push_back(sliding ? window : std::nullopt);
  }
  return windows;
}

std::vector<ModelClass> decoder_classes(const std::string& prefix, DecoderSettings (*settings)(const Config&),
                                        bool ties_by_default, const std::string& causal_lm_prefix,
                                        const std::vector<Task>& tasks) {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  naming.obsolete = {"rotary_emb.inv_freq"};
  WeightStore::Naming base = naming;
  base.is_base = true;
  WeightStore::Naming answering = naming;
  answering.base_prefix = "transformer";

  const std::string base_name = prefix + "Model";
  const std::string causal_lm = (causal_lm_prefix.empty() ? prefix : causal_lm_prefix) + "ForCausalLM";
  // A class made with these arguments before the settings.
  const auto make = [=]<typename M>(std::type_identity<M>, const auto&... arguments) {
    return [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
      DecoderSettings s = settings(context.config);
      s.class_prefix = prefix;
      return std::make_shared<M>(weights, context, arguments..., s);
    };
  };
  std::vector<ModelClass> classes{
      {base_name, Task::Base, base, {}, false, make(std::type_identity<DecoderModel>())},
      {causal_lm,
       Task::CausalLM,
       naming,
       {{"lm_head.weight", "model.embed_tokens.weight"}},
       ties_by_default,
       make(std::type_identity<DecoderForCausalLM>(), causal_lm)},
  };
  const auto add = [&]<typename M>(std::type_identity<M> type, const char* suffix, Task task, const char* head,
                                   const WeightStore::Naming& names) {
    const HeadNames members{prefix + suffix, names.base_prefix, head};
    classes.push_back({members.architecture, task, names, {}, false, make(type, members)});
  };
  add(std::type_identity<LastTokenClassification<DecoderPreTrainedModel, DecoderModel>>(), "ForSequenceClassification",
      Task::SequenceClassification, "score", naming);
  add(std::type_identity<TokenClassification<DecoderPreTrainedModel, DecoderModel>>(), "ForTokenClassification",
      Task::TokenClassification, "score", naming);
  add(std::type_identity<QuestionAnswering<DecoderPreTrainedModel, DecoderModel>>(), "ForQuestionAnswering",
      Task::QuestionAnswering, "qa_outputs", answering);
  std::erase_if(classes,
                [&](const ModelClass& c) { return std::find(tasks.begin(), tasks.end(), c.task) == tasks.end(); });
  return classes;
}

}  // namespace transporters
