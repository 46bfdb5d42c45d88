#include "transporters/generation/eager.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "transporters/error.h"
#include "transporters/generation/positions.h"

namespace transporters {
namespace {

const ErrorContext kStage{.stage = "generation"};

bool has_input(const PreTrainedModel& model, const std::string& name) {
  const auto inputs = model.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const InputInfo& input) { return input.name == name; });
}

std::filesystem::path folder_of(const PreTrainedModel& model) {
  return std::filesystem::path(model.config().file()).parent_path();
}

std::vector<std::string> input_names(const PreTrainedModel& model) {
  std::vector<std::string> names;
  for (const InputInfo& input : model.inputs()) names.push_back(input.name);
  return names;
}

std::string sizes_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

// Models cast floats, but not whole numbers to them.
void check_kind(const InputInfo& input, const at::Tensor& tensor) {
  if (c10::isFloatingType(input.dtype) != tensor.is_floating_point())
    throw Error(kStage, "'" + input.name + "': expected " + dtype_name(input.dtype) + ", got " +
                            dtype_name(tensor.scalar_type()));
}

at::Tensor repeated(const at::Tensor& tensor, const at::Tensor& rows) {
  return tensor.defined() ? tensor.index_select(0, rows) : tensor;
}

// The token that a decoder begins with.
int64_t decoder_start(const PreTrainedModel& model) {
  const auto start = decoder_start_token(folder_of(model));
  if (!start)
    throw Error({.stage = "generation", .file = model.config().file()},
                "'decoder_start_token_id' is missing here and in generation_config.json");
  return *start;
}

Cache first_cache(const PreTrainedModel& model, int64_t rows, std::optional<int64_t> length) {
  const auto cache = length ? model.static_cache(rows, *length) : model.empty_cache();
  if (!cache)
    throw Error(kStage, model.architecture() +
                            (length ? " has no cache of fixed size; leave out --static-cache" : " has no cache"));
  return *cache;
}

}  // namespace

EagerSession::EagerSession(const PreTrainedModel& model, const ModelInputs& prompt,
                           std::optional<int64_t> static_cache_length)
    : model_(model), static_cache_length_(static_cache_length) {
  if (!model.generates())
    throw Error(kStage, model.architecture() + " does not generate tokens; expected a class such as ...ForCausalLM");
  const at::NoGradGuard no_grad;
  if (model.encoder() != nullptr) {
    encode(prompt);
  } else {
    first_ids_ = prompt.tensor("input_ids");
    if (!first_ids_.defined()) throw Error(kStage, "the prompt is missing: expected 'input_ids'");
    const at::Tensor given = prompt.tensor("attention_mask");
    mask_ = given.defined() ? given : at::ones_like(first_ids_);
    if (mask_.sizes() != first_ids_.sizes())
      throw Error(kStage, "'attention_mask': expected the sizes of 'input_ids', " + sizes_text(first_ids_) + ", got " +
                              sizes_text(mask_));
    for (const auto& [name, value] : prompt.fields()) {
      if (name == "input_ids" || name == "attention_mask") continue;
      if (!takes(name) || name == "position_ids" || name == "inputs_embeds")
        throw Error(kStage, "'" + name + "': " + model.architecture() + " can't be prompted with it");
      first_call_.set(name, prompt.tensor(name));
    }
  }
  first_mask_ = mask_;
  cache_ = first_cache(model, first_ids_.size(0), static_cache_length_);
}

void EagerSession::encode(const ModelInputs& prompt) {
  const PreTrainedModel& encoder = *model_.encoder();
  const bool reads_ids = has_input(encoder, "input_ids");
  for (const auto& [name, value] : prompt.fields()) {
    // The decoder begins with a token that the settings name.
    if (name == "decoder_input_ids" || name == "decoder_attention_mask" || (name == "input_ids" && !reads_ids))
      continue;
    if (!has_input(encoder, name) && !(name == "attention_mask" && takes(name)))
      throw Error(kStage, "'" + name + "': the encoder of " + model_.architecture() + " has no such input");
    if (has_input(encoder, name)) encoder_inputs_.set(name, prompt.tensor(name));
    if (name == "attention_mask" && takes(name)) every_call_.set(name, prompt.tensor(name));
  }
  if (encoder_inputs_.fields().empty())
    throw Error(kStage, "the prompt is missing: expected '" + encoder.inputs().front().name + "' (--inputs)");
  if (reads_ids && !encoder_inputs_.tensor("attention_mask").defined()) {
    const at::Tensor mask = at::ones_like(encoder_inputs_.tensor("input_ids"));
    encoder_inputs_.set("attention_mask", mask);
    every_call_.set("attention_mask", mask);
  }
  const ModelOutput encoded = encoder.forward(encoder_inputs_);
  const at::Tensor states = encoded.tensor("last_hidden_state");
  every_call_.set("encoder_outputs", TensorDict{{{"last_hidden_state", states}}, encoded.type()});
  const at::Tensor given = reads_ids ? at::Tensor() : prompt.tensor("input_ids");
  first_ids_ = given.defined() ? given : at::full({states.size(0), 1}, decoder_start(model_), at::kLong);
  if (first_ids_.size(0) != states.size(0))
    throw Error(kStage, "expected ids of " + std::to_string(states.size(0)) + " rows, as '" +
                            encoder.inputs().front().name + "' has, got " + std::to_string(first_ids_.size(0)));
  mask_ = at::ones_like(first_ids_);
}

bool EagerSession::takes(const std::string& name) const { return has_input(model_, name); }

ModelInputs EagerSession::inputs(const at::Tensor& ids) const {
  ModelInputs inputs = every_call_;
  inputs.use_cache = true;
  const int64_t count = ids.size(1);
  const at::Tensor mask = extended_mask(mask_, past_ + count);
  if (model_.encoder() != nullptr) {
    // The decoder's own tokens have no padding.
    inputs.set("decoder_input_ids", ids);
    if (cache_->is_static() && takes("decoder_attention_mask")) set_ready_masks(inputs, mask, count);
  } else {
    inputs.set("input_ids", ids);
    if (past_ == 0)
      for (const auto& [name, value] : first_call_.fields()) inputs.set(name, first_call_.tensor(name));
    if (takes("attention_mask")) {
      if (cache_->is_static())
        set_ready_masks(inputs, mask, count);
      else
        inputs.set("attention_mask", model_.generation_mask(mask, count));
    }
    if (takes("position_ids")) {
      ModelInputs first = first_call_;
      first.set("input_ids", first_ids_);
      // Of the prompt's rows, since what the first call had (images) has a place in those.
      const at::Tensor positions = model_.generation_positions(extended_mask(first_mask_, mask.size(1)), count, first);
      inputs.set("position_ids", rows_.defined() ? positions.index_select(-2, rows_) : positions);
    }
  }
  inputs.set("cache", *cache_);
  return inputs;
}

void EagerSession::set_ready_masks(ModelInputs& inputs, const at::Tensor& mask, int64_t count) const {
  const auto ready = [&](bool sliding) {
    const CacheLayer* layer = cache_->first(sliding);
    MaskArguments arguments;
    arguments.implementation = model_.attention();
    arguments.dtype = model_.dtype();
    arguments.batch = mask.size(0);
    arguments.query_length = count;
    arguments.attention_mask = mask;
    arguments.cache = layer;
    if (sliding) arguments.sliding_window = layer->tensors().front().second.size(2);
    return causal_mask(arguments).contiguous();
  };
  const std::string name = model_.encoder() == nullptr ? "attention_mask" : "decoder_attention_mask";
  const auto kinds = model_.mask_kinds();
  if (kinds.empty()) {
    inputs.set(name, ready(cache_->first(false) == nullptr));
    return;
  }
  TensorDict masks;
  for (const std::string& kind : kinds) masks.entries.emplace_back(kind, ready(kind == kSlidingMask));
  inputs.set(name, std::move(masks));
}

at::Tensor EagerSession::step(const at::Tensor& ids) {
  const at::NoGradGuard no_grad;
  const ModelInputs given = inputs(ids);
  const ModelOutput output = model_.forward(given);
  const Cache* cache = output.cache();
  if (cache == nullptr) throw Error(kStage, model_.architecture() + " returns no cache");
  cache_ = *cache;
  past_ += ids.size(1);
  // Of the tokens run and those to come next.
  mask_ = extended_mask(mask_, past_ + 1);
  return output.tensor("logits").select(1, -1);
}

void EagerSession::reorder(const at::Tensor& rows) {
  const int64_t before = mask_.size(0);
  mask_ = repeated(mask_, rows);
  rows_ = rows_.defined() ? rows_.index_select(0, rows) : rows;
  std::vector<at::Tensor> tensors;
  for (const auto& [path, tensor] : cache_->tensors())
    tensors.push_back(tensor.dim() > 0 && tensor.size(0) == before ? repeated(tensor, rows) : tensor);
  cache_->set_tensors(tensors);
  if (const TensorDict* states = every_call_.dict("encoder_outputs")) {
    TensorDict reordered{{}, states->type};
    for (const auto& [name, tensor] : states->entries) reordered.entries.emplace_back(name, repeated(tensor, rows));
    every_call_.set("encoder_outputs", std::move(reordered));
  }
  every_call_.set("attention_mask", repeated(every_call_.tensor("attention_mask"), rows));
}

ModelInputs prompt_inputs(const PreTrainedModel& model, const Prompt& prompt, std::optional<int64_t> vocab_size) {
  check_vocabulary(prompt, vocab_size);
  const auto encoder = model.encoder();
  const PreTrainedModel& reader = encoder ? *encoder : model;
  check_prompt_inputs(prompt, input_names(reader));
  for (const InputInfo& input : reader.inputs())
    if (const auto given = prompt.inputs.find(input.name); given != prompt.inputs.end())
      check_kind(input, given->second);
  ModelInputs inputs;
  const bool is_decoder_prompt = encoder != nullptr && !has_input(*encoder, "input_ids");
  if (!prompt.ids.empty() || !is_decoder_prompt) {
    const auto [ids, mask] = padded_batch(prompt.ids, /*left=*/encoder == nullptr);
    if (is_decoder_prompt && mask.eq(0).any().item<bool>())
      throw Error(kStage, "the decoder's prompts have several lengths; give prompts of one length");
    inputs.set("input_ids", ids);
    if (!is_decoder_prompt) inputs.set("attention_mask", mask);
  }
  for (const auto& [name, tensor] : prompt.inputs) inputs.set(name, tensor);
  return inputs;
}

GenerateResult generate(const PreTrainedModel& model, const Prompt& prompt, const GenerationSettings& settings,
                        const GenerateOptions& options, std::optional<int64_t> static_cache_length) {
  const auto clock = std::chrono::steady_clock::now();
  const GenerationSettings chosen = overridden(settings, options);
  const ModelInputs inputs = prompt_inputs(model, prompt, chosen.vocab_size);
  EagerSession session(model, inputs, static_cache_length);
  SearchStart start{.ids = session.ids(), .mask = session.mask(), .clock = clock};
  if (const auto table = model.position_table()) limit_to_positions(start, *table);
  if (const auto capacity = session.capacity())
    start.limit(*capacity, /*with_last=*/true, "cache_full", "make the cache for more of them");
  return search(session, start, chosen, options);
}

GenerateResult generate(const PreTrainedModel& model, const Prompt& prompt, const GenerateOptions& options) {
  return generate(model, prompt, GenerationSettings::from_folder(folder_of(model)), options);
}

}  // namespace transporters
