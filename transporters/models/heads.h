// Heads that are one linear layer over the hidden states of a base model, whatever that is.
//
// A family of models gives two classes. `Family` is what all its classes derive from, made from (weights, context, name
// of the class, settings); `Base` is its base model, made from (weights, context, settings, ...), whose run(inputs) has
// last_hidden_state and a cache. The settings have a hidden_size.
#pragma once

#include <memory>
#include <string>

#include "transporters/layers/linear.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

struct HeadNames {
  std::string architecture;  // "LlamaForTokenClassification"
  std::string base;          // names of the members in checkpoints
  std::string head;
};

template <typename Family, typename Base>
class ModelWithHead : public Family {
 public:
  template <typename Settings, typename... BaseArguments>
  ModelWithHead(const Weights& weights, const ModelContext& context, const HeadNames& names, const Settings& settings,
                int64_t outputs, bool bias, const BaseArguments&... more)
      : Family(weights, context, names.architecture, settings) {
    base_ = this->template member<Base>(weights, names.base, context, settings, more...);
    head_ = this->template member<Linear>(weights, names.head, settings.hidden_size, outputs, bias);
  }

 protected:
  std::shared_ptr<Base> base_;
  std::shared_ptr<Linear> head_;
};

// Scores each token.
template <typename Family, typename Base>
class TokenClassification : public ModelWithHead<Family, Base> {
 public:
  template <typename Settings, typename... BaseArguments>
  TokenClassification(const Weights& weights, const ModelContext& context, const HeadNames& names,
                      const Settings& settings, const BaseArguments&... more)
      : ModelWithHead<Family, Base>(weights, context, names, settings, context.config.num_labels(), /*bias=*/true,
                                    more...) {}

  ModelOutput forward(const ModelInputs& inputs) const override {
    this->check_inputs(inputs);
    ModelOutput output("TokenClassifierOutput");
    output.set("logits", this->head_->forward(this->base_->run(inputs).last_hidden_state));
    return output;
  }
};

// Scores each token as the start and as the end of an answer.
template <typename Family, typename Base>
class QuestionAnswering : public ModelWithHead<Family, Base> {
 public:
  template <typename Settings, typename... BaseArguments>
  QuestionAnswering(const Weights& weights, const ModelContext& context, const HeadNames& names,
                    const Settings& settings, const BaseArguments&... more)
      : ModelWithHead<Family, Base>(weights, context, names, settings, 2, /*bias=*/true, more...) {}

  ModelOutput forward(const ModelInputs& inputs) const override {
    this->check_inputs(inputs);
    return question_answering_output(this->head_->forward(this->base_->run(inputs).last_hidden_state));
  }
};

// Scores the last token of each row that is not padding.
template <typename Family, typename Base>
class LastTokenClassification : public ModelWithHead<Family, Base> {
 public:
  template <typename Settings, typename... BaseArguments>
  LastTokenClassification(const Weights& weights, const ModelContext& context, const HeadNames& names,
                          const Settings& settings, const BaseArguments&... more)
      : ModelWithHead<Family, Base>(weights, context, names, settings, context.config.num_labels(), /*bias=*/false,
                                    more...) {}

  ModelOutput forward(const ModelInputs& inputs) const override {
    this->check_inputs(inputs);
    const auto result = this->base_->run(inputs);
    const auto logits = this->head_->forward(result.last_hidden_state);
    ModelOutput output("SequenceClassifierOutputWithPast");
    output.set("logits", last_token_logits(logits, inputs.tensor("input_ids"), this->config()));
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }
};

}  // namespace transporters
