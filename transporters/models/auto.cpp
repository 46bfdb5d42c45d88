#include "transporters/models/auto.h"

#include <algorithm>

#include "transporters/error.h"
#include "transporters/models/bart.h"
#include "transporters/models/bert.h"
#include "transporters/models/clip.h"
#include "transporters/models/gemma3.h"
#include "transporters/models/gpt2.h"
#include "transporters/models/llama.h"
#include "transporters/models/llava.h"
#include "transporters/models/mamba.h"
#include "transporters/models/mistral.h"
#include "transporters/models/mixtral.h"
#include "transporters/models/nllb_moe.h"
#include "transporters/models/qwen2.h"
#include "transporters/models/qwen2_vl.h"
#include "transporters/models/qwen3.h"
#include "transporters/models/qwen3_moe.h"
#include "transporters/models/roberta.h"
#include "transporters/models/t5.h"
#include "transporters/models/vit.h"
#include "transporters/models/whisper.h"

namespace transporters {
namespace {

constexpr const char* kOtherWays =
    "for a model that is not here, export it to .pt2 with Python's torch.export and continue from that file";

const char* task_name(Task task) {
  switch (task) {
    case Task::Base:
      return "AutoModel";
    case Task::CausalLM:
      return "AutoModelForCausalLM";
    case Task::Seq2SeqLM:
      return "AutoModelForSeq2SeqLM";
    case Task::SpeechSeq2Seq:
      return "AutoModelForSpeechSeq2Seq";
    case Task::MaskedLM:
      return "AutoModelForMaskedLM";
    case Task::PreTraining:
      return "AutoModelForPreTraining";
    case Task::SequenceClassification:
      return "AutoModelForSequenceClassification";
    case Task::TokenClassification:
      return "AutoModelForTokenClassification";
    case Task::QuestionAnswering:
      return "AutoModelForQuestionAnswering";
    case Task::MultipleChoice:
      return "AutoModelForMultipleChoice";
    case Task::NextSentencePrediction:
      return "AutoModelForNextSentencePrediction";
    case Task::ImageClassification:
      return "AutoModelForImageClassification";
    case Task::ImageTextToText:
      return "AutoModelForImageTextToText";
  }
  return "";
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const ModelType& find_type(const Config& config) {
  const std::string name = config.model_type();
  std::vector<std::string> known;
  for (const auto& type : model_types()) {
    if (type.name == name) return type;
    known.push_back(type.name);
  }
  config.fail("model_type", "is '" + name + "', which has no native model" + did_you_mean(name, known) +
                                "; there are " + join(known) + "; " + kOtherWays);
}

std::vector<std::string> class_names(const ModelType& type) {
  std::vector<std::string> names;
  for (const auto& model_class : type.classes) names.push_back(model_class.name);
  return names;
}

// The config's type, else that of the first floating-point tensor in the file.
std::optional<at::ScalarType> checkpoint_dtype(const Config& config, const Checkpoint& checkpoint) {
  if (const auto dtype = config.dtype()) return dtype;
  for (const auto& name : checkpoint.names())
    if (const auto dtype = checkpoint.get(name).dtype; c10::isFloatingType(dtype)) return dtype;
  return std::nullopt;
}

// Every layer has a tensor at least; a nonsense number of layers would take all memory before the first is missed.
void check_layers(const Config& config, const Checkpoint& checkpoint) {
  const auto tensors = static_cast<int64_t>(checkpoint.names().size());
  for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "encoder_layers",
                          "decoder_layers", "depth"})
    if (config.has(key) && config.positive(key) > tensors)
      config.fail(key, "is " + std::to_string(config.positive(key)) + ", but the checkpoint has " +
                           std::to_string(tensors) +
                           " tensors in all; take config.json and weights of the same checkpoint");
  for (const char* part : {"text_config", "vision_config"})
    if (config.is_object(part)) check_layers(config.object(part), checkpoint);
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> types{
      {"bart", bart_classes()},
      {"bert", bert_classes()},
      {"clip_vision_model", clip_vision_classes()},
      {"gemma3_text", gemma3_text_classes()},
      {"gpt2", gpt2_classes()},
      {"llama", llama_classes()},
      {"llava", llava_classes()},
      {"mamba", mamba_classes()},
      {"mistral", mistral_classes()},
      {"mixtral", mixtral_classes()},
      {"nllb-moe", nllb_moe_classes()},
      {"qwen2", qwen2_classes()},
      {"qwen2_vl", qwen2_vl_classes()},
      {"qwen2_vl_text", qwen2_vl_text_classes()},
      {"qwen3", qwen3_classes()},
      {"qwen3_moe", qwen3_moe_classes()},
      {"roberta", roberta_classes()},
      {"t5", t5_classes()},
      {"vit", vit_classes()},
      {"whisper", whisper_classes()},
  };
  return types;
}

const ModelClass& find_class(const Config& config, const std::string& name, const std::string& named_by) {
  const ModelType& type = find_type(config);
  for (const auto& model_class : type.classes)
    if (model_class.name == name) return model_class;
  const auto names = class_names(type);
  const std::string rest = did_you_mean(name, names) + "; '" + type.name + "' has " + join(names) + "; " + kOtherWays;
  if (named_by.empty()) config.fail("architectures", "names '" + name + "', which has no native model" + rest);
  throw Error({.stage = "checkpoint", .file = config.file()},
              named_by + " names '" + name + "', which is no native model of the type '" + type.name + "'" + rest);
}

const ModelClass& find_class(const Config& config, Task task) {
  const ModelType& type = find_type(config);
  for (const auto& model_class : type.classes)
    if (model_class.task == task) return model_class;
  config.fail("model_type", "is '" + type.name + "', which " + task_name(task) + " has no class for; it has " +
                                join(class_names(type)) + "; " + kOtherWays);
}

std::shared_ptr<PreTrainedModel> load_model(const std::string& folder, const ModelClass& model_class,
                                            const LoadOptions& options) {
  const Config config = Config::from_folder(folder);
  ModelContext context{config, attention_implementation(options.attention), at::kFloat};
  if (config.has("quantization_config"))
    config.fail("quantization_config", "is set: quantised checkpoints can't be read; use the unquantised one");
  const Checkpoint checkpoint = Checkpoint::open(folder);
  check_layers(config, checkpoint);
  const auto dtype = options.dtype ? options.dtype : checkpoint_dtype(config, checkpoint);
  if (dtype && *dtype != at::kFloat && *dtype != at::kHalf && *dtype != at::kBFloat16 && *dtype != at::kDouble)
    throw Error({.stage = "checkpoint", .file = config.file()},
                "models run in float32, float16, bfloat16 or float64, not in " + dtype_name(*dtype) +
                    "; choose one with the dtype option");
  context.dtype = dtype.value_or(at::kFloat);
  WeightStore store(checkpoint, model_class.naming, context.dtype);
  for (const auto& [name, other] : model_class.always_tied) store.tie(name, other);
  // Older configs of models of several parts say it in that of the text.
  const bool text_ties =
      config.is_object("text_config") && config.object("text_config").boolean("tie_word_embeddings", false);
  if (text_ties || config.boolean("tie_word_embeddings", model_class.ties_by_default))
    for (const auto& [name, other] : model_class.tied) store.tie(name, other);
  auto model = model_class.make(Weights(store), context);
  model->set_unused_tensors(store.finish());
  model->eval();
  return model;
}

std::shared_ptr<PreTrainedModel> load_model(const std::string& folder, const LoadOptions& options,
                                            const std::string& architecture, const std::string& named_by) {
  const Config config = Config::from_folder(folder);
  const auto named = config.architectures();
  if (!architecture.empty()) return load_model(folder, find_class(config, architecture, named_by), options);
  if (!named.empty()) return load_model(folder, find_class(config, named.front()), options);
  return load_model(folder, find_class(config, Task::Base), options);
}

}  // namespace transporters
