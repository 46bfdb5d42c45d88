#include "transporters/models/roberta.h"

#include "transporters/models/encoder.h"

namespace transporters {
namespace {

EncoderSettings settings(const Config& config) {
  auto s = EncoderSettings::from_config(config);
  s.pad_token_id = config.integer("pad_token_id", 1);
  s.positions_from_padding = true;
  s.base_prefix = "roberta";
  s.class_prefix = "Roberta";
  return s;
}

class RobertaLMHead : public Module {
 public:
  RobertaLMHead(const Weights& weights, const EncoderSettings& s) : Module(weights) {
    // The decoder's bias has this second name in transformers, and some checkpoints have only this one.
    if (weights.contains("bias")) parameter(weights, "bias", {s.vocab_size});
    dense = member<Linear>(weights, "dense", s.hidden_size, s.hidden_size);
    layer_norm = member<LayerNorm>(weights, "layer_norm", s.hidden_size, s.layer_norm_eps);
    decoder = member<Linear>(weights, "decoder", s.hidden_size, s.vocab_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return decoder->forward(layer_norm->forward(at::gelu(dense->forward(x))));
  }

 private:
  std::shared_ptr<Linear> dense, decoder;
  std::shared_ptr<LayerNorm> layer_norm;
};

// RobertaForMaskedLM and RobertaForCausalLM.
class RobertaWithLMHead : public EncoderPreTrainedModel {
 public:
  RobertaWithLMHead(const Weights& weights, const ModelContext& context, const EncoderSettings& s,
                    const std::string& name)
      : EncoderPreTrainedModel(weights, context, name, s) {
    roberta = member<EncoderModel>(weights, "roberta", context, s, /*with_pooler=*/false);
    lm_head = member<RobertaLMHead>(weights, "lm_head", s);
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = roberta->run(inputs);
    const bool causal = architecture() == "RobertaForCausalLM";
    ModelOutput output(causal ? "CausalLMOutputWithCrossAttentions" : "MaskedLMOutput");
    output.set("logits", lm_head->forward(last_tokens(result.last_hidden_state, inputs.logits_to_keep)));
    if (causal && result.cache) output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<EncoderModel> roberta;
  std::shared_ptr<RobertaLMHead> lm_head;
};

// Scores for a sequence from its first token.
class RobertaClassificationHead : public Module {
 public:
  RobertaClassificationHead(const Weights& weights, const EncoderSettings& s, int64_t labels) : Module(weights) {
    dense = member<Linear>(weights, "dense", s.hidden_size, s.hidden_size);
    out_proj = member<Linear>(weights, "out_proj", s.hidden_size, labels);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return out_proj->forward(at::tanh(dense->forward(x.select(1, 0))));
  }

 private:
  std::shared_ptr<Linear> dense, out_proj;
};

class RobertaForSequenceClassification : public EncoderPreTrainedModel {
 public:
  RobertaForSequenceClassification(const Weights& weights, const ModelContext& context, const EncoderSettings& s)
      : EncoderPreTrainedModel(weights, context, "RobertaForSequenceClassification", s) {
    roberta = member<EncoderModel>(weights, "roberta", context, s, /*with_pooler=*/false);
    classifier = member<RobertaClassificationHead>(weights, "classifier", s, context.config.num_labels());
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    ModelOutput output("SequenceClassifierOutput");
    output.set("logits", classifier->forward(roberta->run(inputs).last_hidden_state));
    return output;
  }

 private:
  std::shared_ptr<EncoderModel> roberta;
  std::shared_ptr<RobertaClassificationHead> classifier;
};

ModelClass language_class(const std::string& name, Task task) {
  return {name,
          task,
          encoder_naming("roberta", /*is_base=*/false),
          {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
           {"lm_head.decoder.bias", "lm_head.bias"}},
          /*ties_by_default=*/true,
          make_encoder<RobertaWithLMHead>(settings, name)};
}

}  // namespace

std::vector<ModelClass> roberta_classes() {
  auto classes = encoder_classes(settings, "Roberta", "roberta");
  classes.push_back(language_class("RobertaForMaskedLM", Task::MaskedLM));
  classes.push_back(language_class("RobertaForCausalLM", Task::CausalLM));
  classes.push_back({"RobertaForSequenceClassification",
                     Task::SequenceClassification,
                     encoder_naming("roberta", /*is_base=*/false),
                     {},
                     false,
                     make_encoder<RobertaForSequenceClassification>(settings)});
  return classes;
}

}  // namespace transporters
