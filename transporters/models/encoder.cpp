#include "transporters/models/encoder.h"

#include <cmath>
#include <tuple>
#include <type_traits>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/models/heads.h"

namespace transporters {

class EncoderEmbeddings : public Module {
 public:
  EncoderEmbeddings(const Weights& weights, const EncoderSettings& s) : Module(weights), settings_(s) {
    const auto positions = [&] {
      position_embeddings = member<Embedding>(weights, "position_embeddings", s.max_position_embeddings, s.hidden_size);
    };
    word_embeddings = member<Embedding>(weights, "word_embeddings", s.vocab_size, s.hidden_size);
    if (!s.positions_from_padding) positions();
    token_type_embeddings = member<Embedding>(weights, "token_type_embeddings", s.type_vocab_size, s.hidden_size);
    layer_norm = member<LayerNorm>(weights, "LayerNorm", s.hidden_size, s.layer_norm_eps);
    if (s.positions_from_padding) positions();
  }

  at::Tensor forward(const ModelInputs& inputs, const c10::SymInt& past) const {
    const ModuleScope scope(path());
    auto x = inputs.tensor("inputs_embeds");
    if (!x.defined()) x = word_embeddings->forward(inputs.tensor("input_ids"));
    const auto token_types = inputs.tensor("token_type_ids");
    // Every token is of type 0 when nothing else is said.
    x = x + (token_types.defined() ? token_type_embeddings->forward(token_types)
                                   : at::select(token_type_embeddings->weight, 0, 0));
    auto positions = inputs.tensor("position_ids");
    if (!positions.defined()) positions = default_positions(inputs, x.sym_size(1), past);
    return layer_norm->forward(x + position_embeddings->forward(positions));
  }

 private:
  at::Tensor default_positions(const ModelInputs& inputs, const c10::SymInt& length, const c10::SymInt& past) const {
    if (!settings_.positions_from_padding) return default_position_ids(length, past);
    const auto ids = inputs.tensor("input_ids");
    // Embeddings don't show which tokens are padding.
    if (!ids.defined()) return default_position_ids(length, 0) + (settings_.pad_token_id + 1);
    const auto is_token = ids.ne(settings_.pad_token_id).to(at::kLong);
    auto count = at::cumsum(is_token, 1);
    if (past.maybe_as_int() != 0) count = count + past;
    return count * is_token + settings_.pad_token_id;
  }

  EncoderSettings settings_;
  std::shared_ptr<Embedding> word_embeddings, position_embeddings, token_type_embeddings;
  std::shared_ptr<LayerNorm> layer_norm;
};

namespace {

class EncoderSelfAttention : public Module {
 public:
  EncoderSelfAttention(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
      : Module(weights) {
    heads_ = s.num_heads;
    head_dim_ = s.hidden_size / s.num_heads;
    arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_)), /*softmax_in_float32=*/false};
    query = member<Linear>(weights, "query", s.hidden_size, s.hidden_size);
    key = member<Linear>(weights, "key", s.hidden_size, s.hidden_size);
    value = member<Linear>(weights, "value", s.hidden_size, s.hidden_size);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    const auto q = split_heads(query->forward(x), heads_, head_dim_).transpose(1, 2);
    auto k = split_heads(key->forward(x), heads_, head_dim_).transpose(1, 2);
    auto v = split_heads(value->forward(x), heads_, head_dim_).transpose(1, 2);
    if (cache != nullptr) std::tie(k, v) = cache->update(k, v);
    return attention(q, k, v, mask, arguments_);
  }

 private:
  std::shared_ptr<Linear> query, key, value;
  int64_t heads_, head_dim_;
  AttentionArguments arguments_;
};

// A projection, added to what went around it, normalised: the end of both halves of a layer.
class EncoderOutput : public Module {
 public:
  EncoderOutput(const Weights& weights, const EncoderSettings& s, int64_t in_features) : Module(weights) {
    dense = member<Linear>(weights, "dense", in_features, s.hidden_size);
    layer_norm = member<LayerNorm>(weights, "LayerNorm", s.hidden_size, s.layer_norm_eps);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual) const {
    const ModuleScope scope(path());
    return layer_norm->forward(dense->forward(x) + residual);
  }

 private:
  std::shared_ptr<Linear> dense;
  std::shared_ptr<LayerNorm> layer_norm;
};

class EncoderAttention : public Module {
 public:
  EncoderAttention(const Weights& weights, const ModelContext& context, const EncoderSettings& s) : Module(weights) {
    self = member<EncoderSelfAttention>(weights, "self", context, s);
    output = member<EncoderOutput>(weights, "output", s, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    return output->forward(self->forward(x, mask, cache), x);
  }

 private:
  std::shared_ptr<EncoderSelfAttention> self;
  std::shared_ptr<EncoderOutput> output;
};

// A projection and an activation: the first half of the feed-forward part, and of the pooler and prediction head.
class EncoderIntermediate : public Module {
 public:
  EncoderIntermediate(const Weights& weights, const ModelContext& context, const EncoderSettings& s) : Module(weights) {
    activation_ = activation(context.config, "hidden_act", "gelu");
    dense = member<Linear>(weights, "dense", s.hidden_size, s.intermediate_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return activation_(dense->forward(x));
  }

 private:
  std::shared_ptr<Linear> dense;
  Activation activation_;
};

class EncoderLayer : public Module {
 public:
  EncoderLayer(const Weights& weights, const ModelContext& context, const EncoderSettings& s) : Module(weights) {
    attention = member<EncoderAttention>(weights, "attention", context, s);
    intermediate = member<EncoderIntermediate>(weights, "intermediate", context, s);
    output = member<EncoderOutput>(weights, "output", s, s.intermediate_size);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    const auto attended = attention->forward(x, mask, cache);
    return output->forward(intermediate->forward(attended), attended);
  }

 private:
  std::shared_ptr<EncoderAttention> attention;
  std::shared_ptr<EncoderIntermediate> intermediate;
  std::shared_ptr<EncoderOutput> output;
};

}  // namespace

class EncoderStack : public Module {
 public:
  EncoderStack(const Weights& weights, const ModelContext& context, const EncoderSettings& s) : Module(weights) {
    layer = members<EncoderLayer>(weights, "layer", s.num_layers, [&](const Weights& w, int64_t) {
      return std::make_shared<EncoderLayer>(w, context, s);
    });
  }
  at::Tensor forward(at::Tensor x, const at::Tensor& mask, Cache* cache) const {
    const ModuleScope scope(path());
    for (size_t i = 0; i < layer.size(); ++i)
      x = layer[i]->forward(x, mask, cache == nullptr ? nullptr : cache->layers[i].get());
    return x;
  }

 private:
  std::vector<std::shared_ptr<EncoderLayer>> layer;
};

class EncoderPooler : public Module {
 public:
  EncoderPooler(const Weights& weights, const EncoderSettings& s) : Module(weights) {
    dense = member<Linear>(weights, "dense", s.hidden_size, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return at::tanh(dense->forward(x.select(1, 0)));
  }

 private:
  std::shared_ptr<Linear> dense;
};

EncoderModel::EncoderModel(const Weights& weights, const ModelContext& context, const EncoderSettings& s,
                           bool with_pooler)
    : EncoderPreTrainedModel(weights, context, s.class_prefix + "Model", s) {
  embeddings = member<EncoderEmbeddings>(weights, "embeddings", s);
  encoder = member<EncoderStack>(weights, "encoder", context, s);
  if (with_pooler) pooler = member<EncoderPooler>(weights, "pooler", s);
}

ModelOutput EncoderModel::forward(const ModelInputs& inputs) const {
  check_inputs(inputs);
  const auto result = run(inputs);
  ModelOutput output("BaseModelOutputWithPoolingAndCrossAttentions");
  output.set("last_hidden_state", result.last_hidden_state);
  output.set("pooler_output", result.pooler_output);
  if (result.cache) output.set("cache", *result.cache);
  return output;
}

EncoderModel::Result EncoderModel::run(const ModelInputs& inputs) const {
  const ModuleScope scope(path());
  check_ids_or_embeds(inputs);
  Result result;
  result.cache = start_cache(inputs);
  const CacheLayer* past = result.cache ? result.cache->layers.front().get() : nullptr;
  const auto x = embeddings->forward(inputs, past == nullptr ? c10::SymInt(0) : past->length());
  MaskArguments mask;
  mask.implementation = context().attention;
  mask.dtype = x.scalar_type();
  mask.batch = x.sym_size(0);
  mask.query_length = x.sym_size(1);
  mask.attention_mask = inputs.tensor("attention_mask");
  mask.cache = past;
  result.last_hidden_state = encoder->forward(x, settings().is_decoder ? causal_mask(mask) : bidirectional_mask(mask),
                                              result.cache ? &*result.cache : nullptr);
  if (pooler) result.pooler_output = pooler->forward(result.last_hidden_state);
  return result;
}

PredictionTransform::PredictionTransform(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
    : Module(weights), activation_(activation(context.config, "hidden_act", "gelu")) {
  dense = member<Linear>(weights, "dense", s.hidden_size, s.hidden_size);
  layer_norm = member<LayerNorm>(weights, "LayerNorm", s.hidden_size, s.layer_norm_eps);
}

at::Tensor PredictionTransform::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  return layer_norm->forward(activation_(dense->forward(x)));
}

namespace {

// Inputs are [batch, choices, sequence]; the choices of a question are scored as if they were a batch.
class EncoderForMultipleChoice : public EncoderPreTrainedModel {
 public:
  EncoderForMultipleChoice(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
      : EncoderPreTrainedModel(weights, context, s.class_prefix + "ForMultipleChoice", s) {
    base = member<EncoderModel>(weights, s.base_prefix, context, s);
    classifier = member<Linear>(weights, "classifier", s.hidden_size, 1);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    check_ids_or_embeds(inputs);
    ModelInputs flat = inputs;
    c10::SymInt choices = 0;
    for (const auto& [name, tensor] : inputs.leaves()) {
      const int64_t rank = name == "inputs_embeds" ? 4 : 3;
      if (tensor.dim() != rank)
        throw Error("'" + name + "': expected " + std::to_string(rank) + " axes (batch, choices, sequence), got " +
                    std::to_string(tensor.dim()));
      if (name == "input_ids" || name == "inputs_embeds") choices = tensor.sym_size(1);
      flat.set(name, tensor.flatten(0, 1));
    }
    ModelOutput output("MultipleChoiceModelOutput");
    output.set("logits", classifier->forward(base->run(flat).pooler_output).view_symint({-1, choices}));
    return output;
  }

  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    constexpr int64_t kChoices = 2;
    const auto inputs = EncoderPreTrainedModel::example_inputs(batch * kChoices, sequence);
    ModelInputs result;
    for (const auto& [name, tensor] : inputs.leaves()) result.set(name, tensor.view({batch, kChoices, sequence}));
    return result;
  }

 protected:
  std::vector<std::string> token_axes() const override { return {"batch", "choices", "sequence"}; }

 private:
  std::shared_ptr<EncoderModel> base;
  std::shared_ptr<Linear> classifier;
};

}  // namespace

EncoderSettings EncoderSettings::from_config(const Config& config) {
  EncoderSettings s;
  s.vocab_size = config.positive("vocab_size", s.vocab_size);
  s.hidden_size = config.positive("hidden_size", s.hidden_size);
  s.num_layers = config.positive("num_hidden_layers", s.num_layers);
  s.num_heads = config.positive("num_attention_heads", s.num_heads);
  s.intermediate_size = config.positive("intermediate_size", s.intermediate_size);
  s.max_position_embeddings = config.positive("max_position_embeddings", s.max_position_embeddings);
  s.type_vocab_size = config.positive("type_vocab_size", s.type_vocab_size);
  s.layer_norm_eps = config.non_negative_real("layer_norm_eps", s.layer_norm_eps);
  s.is_decoder = config.boolean("is_decoder", false);
  s.pad_token_id = config.integer("pad_token_id", 0);
  if (s.hidden_size % s.num_heads != 0)
    config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(s.num_heads) +
                                   "), got " + std::to_string(s.hidden_size));
  if (config.boolean("add_cross_attention", false))
    config.fail("add_cross_attention", "is true: cross-attention to another model is not supported");
  if (const auto kind = config.string("position_embedding_type", "absolute"); kind != "absolute")
    config.fail("position_embedding_type", "expected \"absolute\", got \"" + kind +
                                               "\"; transformers has dropped relative positions for these models too");
  return s;
}

std::vector<InputInfo> EncoderPreTrainedModel::inputs() const {
  const auto axes = token_axes();
  auto embeds = axes;
  embeds.emplace_back("");
  auto mask = axes;
  if (settings_.is_decoder) mask.back() = "total_sequence";
  return {{"input_ids", at::kLong, axes},
          {"attention_mask", at::kLong, mask},
          {"token_type_ids", at::kLong, axes},
          {"position_ids", at::kLong, axes},
          {"inputs_embeds", dtype(), embeds}};
}

ModelInputs EncoderPreTrainedModel::example_inputs(int64_t batch, int64_t sequence) const {
  const auto ids = example_ids(batch, sequence, settings_.vocab_size, settings_.pad_token_id);
  return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
}

std::optional<Cache> EncoderPreTrainedModel::empty_cache() const {
  if (!settings_.is_decoder) return std::nullopt;
  return Cache::dynamic(std::vector<std::optional<int64_t>>(static_cast<size_t>(settings_.num_layers)));
}

std::optional<PositionTable> EncoderPreTrainedModel::position_table() const {
  const int64_t size = settings_.max_position_embeddings;
  return PositionTable{"max_position_embeddings", size,
                       settings_.positions_from_padding ? size - settings_.pad_token_id - 1 : size};
}

WeightStore::Naming encoder_naming(const std::string& base_prefix, bool is_base) {
  WeightStore::Naming naming;
  naming.base_prefix = base_prefix;
  naming.is_base = is_base;
  naming.optional = {"pooler"};
  naming.obsolete = {"position_ids"};
  naming.renames = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}};
  return naming;
}

std::vector<ModelClass> encoder_classes(EncoderSettings (*settings)(const Config&), const std::string& class_prefix,
                                        const std::string& base_prefix) {
  const auto naming = encoder_naming(base_prefix, /*is_base=*/false);
  const auto with_head = [&]<typename M>(std::type_identity<M>, const char* suffix, Task task, const char* head) {
    const HeadNames names{class_prefix + suffix, base_prefix, head};
    const auto make = [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
      if (const int64_t labels = context.config.num_labels(); task == Task::QuestionAnswering && labels != 2)
        context.config.fail("num_labels",
                            "expected 2 (start and end) for question answering, got " + std::to_string(labels));
      return std::make_shared<M>(weights, context, names, settings(context.config), /*with_pooler=*/false);
    };
    return ModelClass{names.architecture, task, naming, {}, false, make};
  };
  return {
      {class_prefix + "Model",
       Task::Base,
       encoder_naming(base_prefix, /*is_base=*/true),
       {},
       false,
       make_encoder<EncoderModel>(settings)},
      with_head(std::type_identity<TokenClassification<EncoderPreTrainedModel, EncoderModel>>(),
                "ForTokenClassification", Task::TokenClassification, "classifier"),
      with_head(std::type_identity<QuestionAnswering<EncoderPreTrainedModel, EncoderModel>>(), "ForQuestionAnswering",
                Task::QuestionAnswering, "qa_outputs"),
      {class_prefix + "ForMultipleChoice",
       Task::MultipleChoice,
       naming,
       {},
       false,
       make_encoder<EncoderForMultipleChoice>(settings)},
  };
}

}  // namespace transporters
