// Picks and loads the model class for a checkpoint folder, like transformers' Auto classes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transporters/models/pretrained_model.h"

namespace transporters {

// What a class is for; one Auto class each.
enum class Task {
  Base,
  CausalLM,
  Seq2SeqLM,
  SpeechSeq2Seq,
  MaskedLM,
  PreTraining,
  SequenceClassification,
  TokenClassification,
  QuestionAnswering,
  MultipleChoice,
  NextSentencePrediction,
  ImageClassification,
  ImageTextToText,
};

// One transformers class, and how its checkpoints name things.
struct ModelClass {
  std::string name;  // "BertForMaskedLM"
  Task task = Task::Base;
  WeightStore::Naming naming;
  // Pairs of parameters that are one when the config ties word embeddings.
  std::vector<std::pair<std::string, std::string>> tied;
  // What the config's class assumes when "tie_word_embeddings" is absent.
  bool ties_by_default = false;
  std::function<std::shared_ptr<PreTrainedModel>(const Weights&, const ModelContext&)> make;
  // Pairs that are one whatever the config says, unless the checkpoint has different values for both.
  std::vector<std::pair<std::string, std::string>> always_tied = {};
};

struct ModelType {
  std::string name;  // config.json's "model_type"
  std::vector<ModelClass> classes;
};

// Every supported type, by name.
const std::vector<ModelType>& model_types();

// The class of that name in the config's model type. Throws Error with near names, and says which ways there are for
// models that are not here. `named_by` is who asks for the name in the message; "" is the config's "architectures".
const ModelClass& find_class(const Config& config, const std::string& name, const std::string& named_by = "");
// The class of that purpose.
const ModelClass& find_class(const Config& config, Task task);

// Loads a checkpoint folder as one class; errors name the file, the tensors and what to do.
std::shared_ptr<PreTrainedModel> load_model(const std::string& folder, const ModelClass& model_class,
                                            const LoadOptions& options = {});
// As the class that config.json's "architectures" names first, or the base model when it names none; a name in
// `architecture` goes first, and messages say that `named_by` gave it.
std::shared_ptr<PreTrainedModel> load_model(const std::string& folder, const LoadOptions& options = {},
                                            const std::string& architecture = "",
                                            const std::string& named_by = "the caller");

// AutoConfig::from_pretrained(folder): the checked config.json.
struct AutoConfig {
  static Config from_pretrained(const std::string& folder) { return Config::from_folder(folder); }
};

// AutoModelFor...::from_pretrained(folder).
template <Task task>
struct AutoModelFor {
  static std::shared_ptr<PreTrainedModel> from_pretrained(const std::string& folder, const LoadOptions& options = {}) {
    return load_model(folder, find_class(Config::from_folder(folder), task), options);
  }
};
using AutoModel = AutoModelFor<Task::Base>;
using AutoModelForCausalLM = AutoModelFor<Task::CausalLM>;
using AutoModelForSeq2SeqLM = AutoModelFor<Task::Seq2SeqLM>;
using AutoModelForSpeechSeq2Seq = AutoModelFor<Task::SpeechSeq2Seq>;
using AutoModelForMaskedLM = AutoModelFor<Task::MaskedLM>;
using AutoModelForPreTraining = AutoModelFor<Task::PreTraining>;
using AutoModelForSequenceClassification = AutoModelFor<Task::SequenceClassification>;
using AutoModelForTokenClassification = AutoModelFor<Task::TokenClassification>;
using AutoModelForQuestionAnswering = AutoModelFor<Task::QuestionAnswering>;
using AutoModelForMultipleChoice = AutoModelFor<Task::MultipleChoice>;
using AutoModelForNextSentencePrediction = AutoModelFor<Task::NextSentencePrediction>;
using AutoModelForImageClassification = AutoModelFor<Task::ImageClassification>;
using AutoModelForImageTextToText = AutoModelFor<Task::ImageTextToText>;

}  // namespace transporters
