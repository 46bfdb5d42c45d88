#include "transporters/models/bert.h"

#include "transporters/models/encoder.h"

namespace transporters {
namespace {

EncoderSettings settings(const Config& config) { return EncoderSettings::from_config(config); }

class BertLMPredictionHead : public Module {
 public:
  BertLMPredictionHead(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
      : Module(weights) {
    // The decoder's bias has this second name in transformers, and some checkpoints have only this one.
    if (weights.contains("bias")) parameter(weights, "bias", {s.vocab_size});
    transform = member<PredictionTransform>(weights, "transform", context, s);
    decoder = member<Linear>(weights, "decoder", s.hidden_size, s.vocab_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return decoder->forward(transform->forward(x));
  }

 private:
  std::shared_ptr<PredictionTransform> transform;
  std::shared_ptr<Linear> decoder;
};

enum class Predicts { Tokens, Sentences, Both };

// Scores for tokens, for whether one sentence follows the other, or both.
class BertHeads : public Module {
 public:
  BertHeads(const Weights& weights, const ModelContext& context, const EncoderSettings& s, Predicts what)
      : Module(weights) {
    if (what != Predicts::Sentences) predictions = member<BertLMPredictionHead>(weights, "predictions", context, s);
    if (what != Predicts::Tokens) seq_relationship = member<Linear>(weights, "seq_relationship", s.hidden_size, 2);
  }

  std::shared_ptr<BertLMPredictionHead> predictions;
  std::shared_ptr<Linear> seq_relationship;
};

// The classes whose head is "cls".
class BertWithPredictions : public EncoderPreTrainedModel {
 public:
  BertWithPredictions(const Weights& weights, const ModelContext& context, const EncoderSettings& s,
                      const std::string& name, Predicts what)
      : EncoderPreTrainedModel(weights, context, name, s) {
    bert = member<EncoderModel>(weights, "bert", context, s, /*with_pooler=*/what != Predicts::Tokens);
    cls = member<BertHeads>(weights, "cls", context, s, what);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = bert->run(inputs);
    const ModuleScope scope(cls->path());
    at::Tensor tokens, sentences;
    if (cls->predictions)
      tokens = cls->predictions->forward(last_tokens(result.last_hidden_state, inputs.logits_to_keep));
    if (cls->seq_relationship) sentences = cls->seq_relationship->forward(result.pooler_output);
    if (tokens.defined() && sentences.defined()) {
      ModelOutput output("transformers.models.bert.modeling_bert.BertForPreTrainingOutput");
      output.set("prediction_logits", tokens);
      output.set("seq_relationship_logits", sentences);
      return output;
    }
    if (sentences.defined()) {
      ModelOutput output("NextSentencePredictorOutput");
      output.set("logits", sentences);
      return output;
    }
    const bool causal = architecture() == "BertLMHeadModel";
    ModelOutput output(causal ? "CausalLMOutputWithCrossAttentions" : "MaskedLMOutput");
    output.set("logits", tokens);
    if (causal && result.cache) output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<EncoderModel> bert;
  std::shared_ptr<BertHeads> cls;
};

class BertForSequenceClassification : public EncoderPreTrainedModel {
 public:
  BertForSequenceClassification(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
      : EncoderPreTrainedModel(weights, context, "BertForSequenceClassification", s) {
    bert = member<EncoderModel>(weights, "bert", context, s);
    classifier = member<Linear>(weights, "classifier", s.hidden_size, context.config.num_labels());
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    ModelOutput output("SequenceClassifierOutput");
    output.set("logits", classifier->forward(bert->run(inputs).pooler_output));
    return output;
  }

 private:
  std::shared_ptr<EncoderModel> bert;
  std::shared_ptr<Linear> classifier;
};

ModelClass predictions_class(const std::string& name, Task task, Predicts what) {
  ModelClass result{name,
                    task,
                    encoder_naming("bert", /*is_base=*/false),
                    {},
                    /*ties_by_default=*/true,
                    make_encoder<BertWithPredictions>(settings, name, what)};
  if (what != Predicts::Sentences)
    result.tied = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                   {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  return result;
}

}  // namespace

std::vector<ModelClass> bert_classes() {
  auto classes = encoder_classes(settings, "Bert", "bert");
  classes.push_back(predictions_class("BertForMaskedLM", Task::MaskedLM, Predicts::Tokens));
  classes.push_back(predictions_class("BertForPreTraining", Task::PreTraining, Predicts::Both));
  classes.push_back(predictions_class("BertLMHeadModel", Task::CausalLM, Predicts::Tokens));
  classes.push_back(
      predictions_class("BertForNextSentencePrediction", Task::NextSentencePrediction, Predicts::Sentences));
  classes.push_back({"BertForSequenceClassification",
                     Task::SequenceClassification,
                     encoder_naming("bert", /*is_base=*/false),
                     {},
                     false,
                     make_encoder<BertForSequenceClassification>(settings)});
  return classes;
}

}  // namespace transporters
