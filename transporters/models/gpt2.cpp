#include "transporters/models/gpt2.h"

#include <cmath>
#include <tuple>
#include <type_traits>

#include "transporters/layers/linear.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/models/heads.h"

namespace transporters {
namespace {

struct GPT2Settings {
  explicit GPT2Settings(const Config& config)
      : vocab_size(config.positive("vocab_size", 50257)),
        positions(config.positive("n_positions", 1024)),
        hidden_size(config.positive("n_embd", 768)),
        num_layers(config.positive("n_layer", 12)),
        num_heads(config.positive("n_head", 12)),
        intermediate_size(config.positive("n_inner", 4 * hidden_size)),
        eps(config.non_negative_real("layer_norm_epsilon", 1e-5)) {
    if (hidden_size % num_heads != 0)
      config.fail("n_embd", "expected a multiple of n_head (" + std::to_string(num_heads) + "), got " +
                                std::to_string(hidden_size));
    if (config.boolean("add_cross_attention", false))
      config.fail("add_cross_attention", "is true: cross-attention to another model is not supported");
  }

  int64_t vocab_size, positions, hidden_size, num_layers, num_heads, intermediate_size;
  double eps;
};

class GPT2Attention : public Module {
 public:
  GPT2Attention(const Weights& weights, const ModelContext& context, const GPT2Settings& s, int64_t layer)
      : Module(weights), hidden_(s.hidden_size), heads_(s.num_heads), head_dim_(s.hidden_size / s.num_heads) {
    const Config& config = context.config;
    arguments_.implementation = context.attention;
    if (config.boolean("scale_attn_weights", true)) arguments_.scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
    if (config.boolean("scale_attn_by_inverse_layer_idx", false)) arguments_.scale /= static_cast<double>(layer + 1);
    arguments_.scores_in_float32 = config.boolean("reorder_and_upcast_attn", false);
    arguments_.softmax_in_float32 = false;
    c_attn = member<Conv1D>(weights, "c_attn", hidden_, 3 * hidden_);
    c_proj = member<Conv1D>(weights, "c_proj", hidden_, hidden_);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    const auto all = c_attn->forward(x);
    const auto part = [&](int64_t i) {
      return split_heads(all.narrow(-1, i * hidden_, hidden_), heads_, head_dim_).transpose(1, 2);
    };
    const auto q = part(0);
    auto k = part(1);
    auto v = part(2);
    if (cache != nullptr) std::tie(k, v) = cache->update(k, v, visible_keys(mask));
    return c_proj->forward(attention(q, k, v, mask, arguments_));
  }

 private:
  std::shared_ptr<Conv1D> c_attn, c_proj;
  int64_t hidden_, heads_, head_dim_;
  AttentionArguments arguments_;
};

class GPT2Block : public Module {
 public:
  GPT2Block(const Weights& weights, const ModelContext& context, const GPT2Settings& s, int64_t layer)
      : Module(weights) {
    ln_1 = member<LayerNorm>(weights, "ln_1", s.hidden_size, s.eps);
    attn = member<GPT2Attention>(weights, "attn", context, s, layer);
    ln_2 = member<LayerNorm>(weights, "ln_2", s.hidden_size, s.eps);
    mlp = member<MLP<Conv1D>>(weights, "mlp", "c_fc", "c_proj", s.hidden_size, s.intermediate_size,
                              activation(context.config, "activation_function", "gelu_new"));
  }
  at::Tensor forward(at::Tensor x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    x = attn->forward(ln_1->forward(x), mask, cache) + x;
    return x + mlp->forward(ln_2->forward(x));
  }

 private:
  std::shared_ptr<LayerNorm> ln_1, ln_2;
  std::shared_ptr<GPT2Attention> attn;
  std::shared_ptr<MLP<Conv1D>> mlp;
};

// What the classes have in common as models.
class GPT2PreTrainedModel : public PreTrainedModel {
 public:
  GPT2PreTrainedModel(const Weights& weights, const ModelContext& context, const std::string& architecture,
                      const GPT2Settings& s)
      : PreTrainedModel(weights, context, architecture), settings_(s) {}

  std::vector<InputInfo> inputs() const override {
    const std::vector<std::string> tokens{"batch", "sequence"};
    return {{"input_ids", at::kLong, tokens},
            {"attention_mask", at::kLong, {"batch", "total_sequence"}},
            {"token_type_ids", at::kLong, tokens},
            {"position_ids", at::kLong, tokens},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}}};
  }
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto ids = example_ids(batch, sequence, settings_.vocab_size, config().integer_or_none("pad_token_id"));
    return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
  }
  std::optional<Cache> empty_cache() const override {
    return Cache::dynamic(std::vector<std::optional<int64_t>>(static_cast<size_t>(settings_.num_layers)));
  }
  std::optional<Cache> static_cache(int64_t batch, int64_t length) const override {
    const std::vector<std::optional<int64_t>> windows(static_cast<size_t>(settings_.num_layers));
    const int64_t head_dim = settings_.hidden_size / settings_.num_heads;
    return Cache::fixed(windows, batch, settings_.num_heads, length, head_dim, dtype());
  }
  std::optional<PositionTable> position_table() const override {
    return PositionTable{"n_positions", settings_.positions, settings_.positions};
  }

 private:
  GPT2Settings settings_;
};

class GPT2Model : public GPT2PreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    std::optional<Cache> cache;
  };

  GPT2Model(const Weights& weights, const ModelContext& context, const GPT2Settings& s)
      : GPT2PreTrainedModel(weights, context, "GPT2Model", s) {
    wte = member<Embedding>(weights, "wte", s.vocab_size, s.hidden_size);
    wpe = member<Embedding>(weights, "wpe", s.positions, s.hidden_size);
    h = members<GPT2Block>(weights, "h", s.num_layers, [&](const Weights& w, int64_t layer) {
      return std::make_shared<GPT2Block>(w, context, s, layer);
    });
    ln_f = member<LayerNorm>(weights, "ln_f", s.hidden_size, s.eps);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = run(inputs);
    ModelOutput output("BaseModelOutputWithPastAndCrossAttentions");
    output.set("last_hidden_state", result.last_hidden_state);
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

  Result run(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    Result result;
    result.cache = start_cache(inputs);
    const CacheLayer* past = result.cache ? result.cache->layers.front().get() : nullptr;
    auto x = inputs.tensor("inputs_embeds");
    if (!x.defined()) x = wte->forward(inputs.tensor("input_ids"));
    MaskArguments mask;
    mask.implementation = context().attention;
    mask.dtype = x.scalar_type();
    mask.batch = x.sym_size(0);
    mask.query_length = x.sym_size(1);
    mask.attention_mask = inputs.tensor("attention_mask");
    mask.cache = past;
    mask.position_ids = inputs.tensor("position_ids");
    const auto visible = causal_mask(mask);
    auto positions = inputs.tensor("position_ids");
    if (!positions.defined())
      positions = default_position_ids(x.sym_size(1), past == nullptr ? c10::SymInt(0) : past->length());
    x = x + wpe->forward(positions);
    // Token types are looked up among the words.
    if (const auto types = inputs.tensor("token_type_ids"); types.defined()) x = x + wte->forward(types);
    for (size_t i = 0; i < h.size(); ++i)
      x = h[i]->forward(x, visible, result.cache ? result.cache->layers[i].get() : nullptr);
    result.last_hidden_state = ln_f->forward(x);
    return result;
  }

 private:
  std::shared_ptr<Embedding> wte, wpe;
  std::vector<std::shared_ptr<GPT2Block>> h;
  std::shared_ptr<LayerNorm> ln_f;
};

class GPT2LMHeadModel : public GPT2PreTrainedModel {
 public:
  GPT2LMHeadModel(const Weights& weights, const ModelContext& context, const GPT2Settings& s)
      : GPT2PreTrainedModel(weights, context, "GPT2LMHeadModel", s) {
    transformer = member<GPT2Model>(weights, "transformer", context, s);
    lm_head = member<Linear>(weights, "lm_head", s.hidden_size, s.vocab_size, /*bias=*/false);
  }
  bool generates() const override { return true; }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = transformer->run(inputs);
    ModelOutput output("CausalLMOutputWithCrossAttentions");
    output.set("logits", lm_head->forward(last_tokens(result.last_hidden_state, inputs.logits_to_keep)));
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<GPT2Model> transformer;
  std::shared_ptr<Linear> lm_head;
};

// A class made with these arguments before the settings.
template <typename M, typename... Arguments>
auto make(const Arguments&... arguments) {
  return [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
    return std::make_shared<M>(weights, context, arguments..., GPT2Settings(context.config));
  };
}

}  // namespace

std::vector<ModelClass> gpt2_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "transformer";
  // Causal masks used to be saved with the weights.
  naming.obsolete = {"attn.bias", "attn.masked_bias"};
  WeightStore::Naming base = naming;
  base.is_base = true;
  const auto with_head = [&]<typename M>(std::type_identity<M>, const char* name, Task task, const char* head) {
    return ModelClass{name, task, naming, {}, false, make<M>(HeadNames{name, "transformer", head})};
  };
  return {
      {"GPT2Model", Task::Base, base, {}, false, make<GPT2Model>()},
      {"GPT2LMHeadModel",
       Task::CausalLM,
       naming,
       {{"lm_head.weight", "transformer.wte.weight"}},
       /*ties_by_default=*/true,
       make<GPT2LMHeadModel>()},
      with_head(std::type_identity<LastTokenClassification<GPT2PreTrainedModel, GPT2Model>>(),
                "GPT2ForSequenceClassification", Task::SequenceClassification, "score"),
      with_head(std::type_identity<TokenClassification<GPT2PreTrainedModel, GPT2Model>>(), "GPT2ForTokenClassification",
                Task::TokenClassification, "classifier"),
      with_head(std::type_identity<QuestionAnswering<GPT2PreTrainedModel, GPT2Model>>(), "GPT2ForQuestionAnswering",
                Task::QuestionAnswering, "qa_outputs"),
  };
}

}  // namespace transporters
