#include "transporters/models/bert.h"

#include <cmath>
#include <tuple>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/norm.h"

namespace transporters {
namespace {

struct BertSizes {
  explicit BertSizes(const Config& config)
      : hidden(config.positive("hidden_size", 768)),
        layers(config.positive("num_hidden_layers", 12)),
        heads(config.positive("num_attention_heads", 12)),
        intermediate(config.positive("intermediate_size", 3072)),
        vocab(config.positive("vocab_size", 30522)),
        positions(config.positive("max_position_embeddings", 512)),
        token_types(config.positive("type_vocab_size", 2)),
        eps(config.real("layer_norm_eps", 1e-12)) {
    if (hidden % heads != 0)
      config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(heads) + "), got " +
                                     std::to_string(hidden));
    if (config.boolean("add_cross_attention", false))
      config.fail("add_cross_attention", "is true: cross-attention between two BERTs is not supported");
    if (config.string("position_embedding_type", "absolute") != "absolute")
      config.fail("position_embedding_type", "expected \"absolute\", got \"" +
                                                 config.string("position_embedding_type") +
                                                 "\"; transformers no longer has relative positions for BERT either");
  }

  int64_t hidden, layers, heads, intermediate, vocab, positions, token_types;
  double eps;
};

class BertEmbeddings : public Module {
 public:
  BertEmbeddings(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    word_embeddings = member<Embedding>(weights, "word_embeddings", sizes.vocab, sizes.hidden);
    position_embeddings = member<Embedding>(weights, "position_embeddings", sizes.positions, sizes.hidden);
    token_type_embeddings = member<Embedding>(weights, "token_type_embeddings", sizes.token_types, sizes.hidden);
    layer_norm = member<LayerNorm>(weights, "LayerNorm", sizes.hidden, sizes.eps);
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
    if (!positions.defined()) positions = default_position_ids(x.sym_size(1), past);
    return layer_norm->forward(x + position_embeddings->forward(positions));
  }

 private:
  std::shared_ptr<Embedding> word_embeddings, position_embeddings, token_type_embeddings;
  std::shared_ptr<LayerNorm> layer_norm;
};

class BertSelfAttention : public Module {
 public:
  BertSelfAttention(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    heads_ = sizes.heads;
    head_dim_ = sizes.hidden / sizes.heads;
    arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_)), /*softmax_in_float32=*/false};
    query = member<Linear>(weights, "query", sizes.hidden, sizes.hidden);
    key = member<Linear>(weights, "key", sizes.hidden, sizes.hidden);
    value = member<Linear>(weights, "value", sizes.hidden, sizes.hidden);
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
class BertOutput : public Module {
 public:
  BertOutput(const Weights& weights, const ModelContext& context, int64_t in_features) : Module(weights) {
    const BertSizes sizes(context.config);
    dense = member<Linear>(weights, "dense", in_features, sizes.hidden);
    layer_norm = member<LayerNorm>(weights, "LayerNorm", sizes.hidden, sizes.eps);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual) const {
    const ModuleScope scope(path());
    return layer_norm->forward(dense->forward(x) + residual);
  }

 private:
  std::shared_ptr<Linear> dense;
  std::shared_ptr<LayerNorm> layer_norm;
};

class BertAttention : public Module {
 public:
  BertAttention(const Weights& weights, const ModelContext& context) : Module(weights) {
    self = member<BertSelfAttention>(weights, "self", context);
    output = member<BertOutput>(weights, "output", context, BertSizes(context.config).hidden);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    return output->forward(self->forward(x, mask, cache), x);
  }

 private:
  std::shared_ptr<BertSelfAttention> self;
  std::shared_ptr<BertOutput> output;
};

// A projection and an activation: the first half of the feed-forward part, and of the pooler and prediction head.
class BertIntermediate : public Module {
 public:
  BertIntermediate(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    activation_ = activation(context.config, "hidden_act", "gelu");
    dense = member<Linear>(weights, "dense", sizes.hidden, sizes.intermediate);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return activation_(dense->forward(x));
  }

 private:
  std::shared_ptr<Linear> dense;
  Activation activation_;
};

class BertLayer : public Module {
 public:
  BertLayer(const Weights& weights, const ModelContext& context) : Module(weights) {
    attention = member<BertAttention>(weights, "attention", context);
    intermediate = member<BertIntermediate>(weights, "intermediate", context);
    output = member<BertOutput>(weights, "output", context, BertSizes(context.config).intermediate);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const {
    const ModuleScope scope(path());
    const auto attended = attention->forward(x, mask, cache);
    return output->forward(intermediate->forward(attended), attended);
  }

 private:
  std::shared_ptr<BertAttention> attention;
  std::shared_ptr<BertIntermediate> intermediate;
  std::shared_ptr<BertOutput> output;
};

class BertEncoder : public Module {
 public:
  BertEncoder(const Weights& weights, const ModelContext& context) : Module(weights) {
    layer = members<BertLayer>(weights, "layer", BertSizes(context.config).layers,
                               [&](const Weights& w, int64_t) { return std::make_shared<BertLayer>(w, context); });
  }
  at::Tensor forward(at::Tensor x, const at::Tensor& mask, Cache* cache) const {
    const ModuleScope scope(path());
    for (size_t i = 0; i < layer.size(); ++i)
      x = layer[i]->forward(x, mask, cache == nullptr ? nullptr : cache->layers[i].get());
    return x;
  }

 private:
  std::vector<std::shared_ptr<BertLayer>> layer;
};

class BertPooler : public Module {
 public:
  BertPooler(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    dense = member<Linear>(weights, "dense", sizes.hidden, sizes.hidden);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return at::tanh(dense->forward(x.select(1, 0)));
  }

 private:
  std::shared_ptr<Linear> dense;
};

class BertPredictionHeadTransform : public Module {
 public:
  BertPredictionHeadTransform(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    activation_ = activation(context.config, "hidden_act", "gelu");
    dense = member<Linear>(weights, "dense", sizes.hidden, sizes.hidden);
    layer_norm = member<LayerNorm>(weights, "LayerNorm", sizes.hidden, sizes.eps);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return layer_norm->forward(activation_(dense->forward(x)));
  }

 private:
  std::shared_ptr<Linear> dense;
  std::shared_ptr<LayerNorm> layer_norm;
  Activation activation_;
};

class BertLMPredictionHead : public Module {
 public:
  BertLMPredictionHead(const Weights& weights, const ModelContext& context) : Module(weights) {
    const BertSizes sizes(context.config);
    // transformers keeps the decoder's bias under this second name as well.
    if (weights.contains("bias")) parameter(weights, "bias", {sizes.vocab});
    transform = member<BertPredictionHeadTransform>(weights, "transform", context);
    decoder = member<Linear>(weights, "decoder", sizes.hidden, sizes.vocab);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return decoder->forward(transform->forward(x));
  }

 private:
  std::shared_ptr<BertPredictionHeadTransform> transform;
  std::shared_ptr<Linear> decoder;
};

// Prediction scores for tokens, for whether one sentence follows the other, or both.
class BertHeads : public Module {
 public:
  BertHeads(const Weights& weights, const ModelContext& context, bool tokens, bool sentences) : Module(weights) {
    if (tokens) predictions = member<BertLMPredictionHead>(weights, "predictions", context);
    if (sentences) seq_relationship = member<Linear>(weights, "seq_relationship", BertSizes(context.config).hidden, 2);
  }
  std::shared_ptr<BertLMPredictionHead> predictions;
  std::shared_ptr<Linear> seq_relationship;
};

// What all BERT classes have in common as models.
class BertPreTrainedModel : public PreTrainedModel {
 public:
  using PreTrainedModel::PreTrainedModel;

  std::vector<InputInfo> inputs() const override {
    const auto axes = token_axes();
    auto embeds = axes;
    embeds.emplace_back("");
    return {{"input_ids", at::kLong, axes},
            {"attention_mask", at::kLong, axes},
            {"token_type_ids", at::kLong, axes},
            {"position_ids", at::kLong, axes},
            {"inputs_embeds", dtype(), embeds}};
  }

  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto ids = example_ids(batch, sequence, BertSizes(config()).vocab, config().integer("pad_token_id", 0));
    return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
  }

  std::optional<Cache> empty_cache() const override {
    if (!is_decoder()) return std::nullopt;
    return Cache::dynamic(std::vector<std::optional<int64_t>>(static_cast<size_t>(BertSizes(config()).layers)));
  }

 protected:
  virtual std::vector<std::string> token_axes() const { return {"batch", "sequence"}; }
  bool is_decoder() const { return config().boolean("is_decoder", false); }
};

class BertModel : public BertPreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    at::Tensor pooler_output;  // undefined without a pooler
    std::optional<Cache> cache;
  };

  BertModel(const Weights& weights, const ModelContext& context, bool with_pooler = true)
      : BertPreTrainedModel(weights, context, "BertModel") {
    embeddings = member<BertEmbeddings>(weights, "embeddings", context);
    encoder = member<BertEncoder>(weights, "encoder", context);
    if (with_pooler) pooler = member<BertPooler>(weights, "pooler", context);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
    const auto result = run(inputs);
    ModelOutput output("BaseModelOutputWithPoolingAndCrossAttentions");
    output.set("last_hidden_state", result.last_hidden_state);
    output.set("pooler_output", result.pooler_output);
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

  Result run(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    Result result;
    if (inputs.cache() != nullptr) {
      result.cache = *inputs.cache();
    } else if (inputs.use_cache.value_or(config().boolean("use_cache", true))) {
      result.cache = empty_cache();
    }
    const CacheLayer* past = result.cache ? result.cache->layers.front().get() : nullptr;
    const auto x = embeddings->forward(inputs, past == nullptr ? c10::SymInt(0) : past->length());
    MaskArguments mask;
    mask.implementation = context().attention;
    mask.dtype = x.scalar_type();
    mask.batch = x.sym_size(0);
    mask.query_length = x.sym_size(1);
    mask.attention_mask = inputs.tensor("attention_mask");
    mask.cache = past;
    result.last_hidden_state = encoder->forward(x, is_decoder() ? causal_mask(mask) : bidirectional_mask(mask),
                                                result.cache ? &*result.cache : nullptr);
    if (pooler) result.pooler_output = pooler->forward(result.last_hidden_state);
    return result;
  }

 private:
  std::shared_ptr<BertEmbeddings> embeddings;
  std::shared_ptr<BertEncoder> encoder;
  std::shared_ptr<BertPooler> pooler;
};

// Base model and prediction heads under "cls".
class BertWithPredictions : public BertPreTrainedModel {
 public:
  BertWithPredictions(const Weights& weights, const ModelContext& context, const std::string& name, bool tokens,
                      bool sentences)
      : BertPreTrainedModel(weights, context, name) {
    bert = member<BertModel>(weights, "bert", context, /*with_pooler=*/sentences);
    cls = member<BertHeads>(weights, "cls", context, tokens, sentences);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
    const auto result = bert->run(inputs);
    at::Tensor tokens, sentences;
    if (cls->predictions) {
      const auto kept = last_tokens(result.last_hidden_state, inputs.logits_to_keep);
      const ModuleScope scope(cls->path());
      tokens = cls->predictions->forward(kept);
    }
    if (cls->seq_relationship) {
      const ModuleScope scope(cls->path());
      sentences = cls->seq_relationship->forward(result.pooler_output);
    }
    if (tokens.defined() && sentences.defined()) {
      ModelOutput output("transformers.models.bert.modeling_bert.BertForPreTrainingOutput");
      output.set("prediction_logits", tokens);
      output.set("seq_relationship_logits", sentences);
      return output;
    }
    ModelOutput output(sentences.defined()                   ? "NextSentencePredictorOutput"
                       : architecture() == "BertLMHeadModel" ? "CausalLMOutputWithCrossAttentions"
                                                             : "MaskedLMOutput");
    output.set("logits", tokens.defined() ? tokens : sentences);
    if (result.cache && architecture() == "BertLMHeadModel") output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<BertModel> bert;
  std::shared_ptr<BertHeads> cls;
};

// Base model and a linear layer named `head` over the pooled first token, or over each token.
class BertWithClassifier : public BertPreTrainedModel {
 public:
  BertWithClassifier(const Weights& weights, const ModelContext& context, const std::string& name,
                     const std::string& head, int64_t labels, bool pooled)
      : BertPreTrainedModel(weights, context, name), pooled_(pooled) {
    bert = member<BertModel>(weights, "bert", context, /*with_pooler=*/pooled);
    classifier = member<Linear>(weights, head, BertSizes(context.config).hidden, labels);
  }

 protected:
  at::Tensor logits(const ModelInputs& inputs) const {
    const auto result = bert->run(inputs);
    return classifier->forward(pooled_ ? result.pooler_output : result.last_hidden_state);
  }

 private:
  bool pooled_;
  std::shared_ptr<BertModel> bert;
  std::shared_ptr<Linear> classifier;
};

class BertForSequenceClassification : public BertWithClassifier {
 public:
  BertForSequenceClassification(const Weights& weights, const ModelContext& context)
      : BertWithClassifier(weights, context, "BertForSequenceClassification", "classifier", context.config.num_labels(),
                           /*pooled=*/true) {}
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
    ModelOutput output("SequenceClassifierOutput");
    output.set("logits", logits(inputs));
    return output;
  }
};

class BertForTokenClassification : public BertWithClassifier {
 public:
  BertForTokenClassification(const Weights& weights, const ModelContext& context)
      : BertWithClassifier(weights, context, "BertForTokenClassification", "classifier", context.config.num_labels(),
                           /*pooled=*/false) {}
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
    ModelOutput output("TokenClassifierOutput");
    output.set("logits", logits(inputs));
    return output;
  }
};

class BertForQuestionAnswering : public BertWithClassifier {
 public:
  BertForQuestionAnswering(const Weights& weights, const ModelContext& context)
      : BertWithClassifier(weights, context, "BertForQuestionAnswering", "qa_outputs", context.config.num_labels(),
                           /*pooled=*/false) {
    if (context.config.num_labels() != 2)
      context.config.fail("num_labels", "expected 2 (start and end) for question answering, got " +
                                            std::to_string(context.config.num_labels()));
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
    return question_answering_output(logits(inputs));
  }
};

// Inputs are [batch, choices, sequence]; the choices of a question are scored as if they were a batch.
class BertForMultipleChoice : public BertWithClassifier {
 public:
  BertForMultipleChoice(const Weights& weights, const ModelContext& context)
      : BertWithClassifier(weights, context, "BertForMultipleChoice", "classifier", 1, /*pooled=*/true) {}

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_names(inputs);
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
    output.set("logits", logits(flat).view_symint({-1, choices}));
    return output;
  }

  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    constexpr int64_t kChoices = 2;
    const auto inputs = BertWithClassifier::example_inputs(batch * kChoices, sequence);
    ModelInputs result;
    for (const auto& [name, tensor] : inputs.leaves()) result.set(name, tensor.view({batch, kChoices, sequence}));
    return result;
  }

 protected:
  std::vector<std::string> token_axes() const override { return {"batch", "choices", "sequence"}; }
};

template <typename M>
std::shared_ptr<PreTrainedModel> make(const Weights& weights, const ModelContext& context) {
  return std::make_shared<M>(weights, context);
}

ModelClass predictions_class(const std::string& name, Task task, bool tokens, bool sentences,
                             const WeightStore::Naming& naming) {
  ModelClass result{name, task, naming};
  if (tokens)
    result.tied = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                   {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  result.ties_by_default = true;
  result.make = [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
    return std::make_shared<BertWithPredictions>(weights, context, name, tokens, sentences);
  };
  return result;
}

}  // namespace

std::vector<ModelClass> bert_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "bert";
  naming.optional = {"pooler"};
  naming.obsolete = {"position_ids"};
  WeightStore::Naming base = naming;
  base.is_base = true;
  return {
      {"BertModel", Task::Base, base, {}, false, make<BertModel>},
      predictions_class("BertForMaskedLM", Task::MaskedLM, true, false, naming),
      predictions_class("BertForPreTraining", Task::PreTraining, true, true, naming),
      predictions_class("BertLMHeadModel", Task::CausalLM, true, false, naming),
      predictions_class("BertForNextSentencePrediction", Task::NextSentencePrediction, false, true, naming),
      {"BertForSequenceClassification",
       Task::SequenceClassification,
       naming,
       {},
       false,
       make<BertForSequenceClassification>},
      {"BertForTokenClassification", Task::TokenClassification, naming, {}, false, make<BertForTokenClassification>},
      {"BertForQuestionAnswering", Task::QuestionAnswering, naming, {}, false, make<BertForQuestionAnswering>},
      {"BertForMultipleChoice", Task::MultipleChoice, naming, {}, false, make<BertForMultipleChoice>},
  };
}

}  // namespace transporters
