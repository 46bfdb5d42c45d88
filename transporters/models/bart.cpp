#include "transporters/models/bart.h"

#include <ATen/ATen.h>

#include <cmath>

#include "transporters/error.h"
#include "transporters/models/seq2seq.h"

namespace transporters {
namespace {

Seq2SeqSettings settings(const Config& config) {
  Seq2SeqSettings s = Seq2SeqSettings::from_config(config, {});
  s.activation = activation(config, "activation_function", "gelu");
  if (config.boolean("scale_embedding", false)) s.embedding_scale = std::sqrt(static_cast<double>(s.hidden_size));
  s.position_offset = 2;
  s.encoder_clamp = Seq2SeqSettings::Clamp::WhenNotFinite;
  s.decodes_prompt = true;
  return s;
}

// Two projections over one state of a row.
class BartClassificationHead : public Module {
 public:
  BartClassificationHead(const Weights& weights, int64_t hidden_size, int64_t labels) : Module(weights) {
    dense = member<Linear>(weights, "dense", hidden_size, hidden_size);
    out_proj = member<Linear>(weights, "out_proj", hidden_size, labels);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return out_proj->forward(at::tanh(dense->forward(x)));
  }

 private:
  std::shared_ptr<Linear> dense, out_proj;
};

class BartForSequenceClassification : public Seq2SeqWithHead {
 public:
  BartForSequenceClassification(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
      : Seq2SeqWithHead(weights, context, "ForSequenceClassification", s) {
    const Config& config = context.config;
    const bool has_labels = config.has("num_labels") || config.has("id2label");
    classification_head = member<BartClassificationHead>(weights, "classification_head", s.hidden_size,
                                                         has_labels ? config.num_labels() : 3);
  }

  // Scores the state of each row's last end-of-sequence token.
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const at::Tensor ids = inputs.tensor("input_ids");
    if (!ids.defined()) throw Error("'input_ids' is missing: the tokens tell where a sequence ends");
    const auto result = model_->run(inputs);
    const auto is_end = ids.eq(config().integer("eos_token_id", 2)).to(at::kLong);
    const auto last = (is_end * at::arange(ids.sym_size(1), at::kLong)).argmax(-1);
    const auto ends = at::index(result.last_hidden_state, {at::arange(ids.sym_size(0), at::kLong), last});
    ModelOutput output("Seq2SeqSequenceClassifierOutput");
    output.set("logits", classification_head->forward(ends));
    finish(output, result);
    return output;
  }

 private:
  std::shared_ptr<BartClassificationHead> classification_head;
};

class BartForQuestionAnswering : public Seq2SeqWithHead {
 public:
  BartForQuestionAnswering(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
      : Seq2SeqWithHead(weights, context, "ForQuestionAnswering", s) {
    qa_outputs = member<Linear>(weights, "qa_outputs", s.hidden_size, 2);
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = model_->run(inputs);
    const auto scores = question_answering_output(qa_outputs->forward(result.last_hidden_state));
    ModelOutput output("Seq2SeqQuestionAnsweringModelOutput");
    for (const char* name : {"start_logits", "end_logits"}) output.set(name, scores.tensor(name));
    finish(output, result);
    return output;
  }

 private:
  std::shared_ptr<Linear> qa_outputs;
};

}  // namespace

std::vector<ModelClass> bart_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  naming.obsolete = {"encoder.version", "decoder.version"};
  auto classes = seq2seq_classes(settings, "Bart", "lm_head", "shared", Task::Seq2SeqLM, naming);
  classes.push_back({"BartForSequenceClassification",
                     Task::SequenceClassification,
                     naming,
                     {},
                     /*ties_by_default=*/true,
                     make_seq2seq<BartForSequenceClassification>(settings)});
  classes.push_back({"BartForQuestionAnswering",
                     Task::QuestionAnswering,
                     naming,
                     {},
                     /*ties_by_default=*/true,
                     make_seq2seq<BartForQuestionAnswering>(settings)});
  for (ModelClass& one : classes) one = tied_words(one);
  return classes;
}

}  // namespace transporters
