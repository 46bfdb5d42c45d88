#include "transporters/generation/decompose.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <filesystem>

#include "transporters/error.h"

namespace transporters {
namespace {

const ErrorContext kStage{.stage = "generation"};

// The same values in memory of their own, for what a run writes to.
ModelInputs copy(const ModelInputs& inputs) {
  std::vector<at::Tensor> leaves;
  for (const auto& [path, tensor] : inputs.leaves()) leaves.push_back(tensor.clone());
  ModelInputs copied = inputs;
  copied.set_leaves(leaves);
  return copied;
}

// Calls of a decoder, one after the other.
class Loop {
 public:
  // `mask` is of the decoder's tokens; `given` is what every call gets besides them and the cache.
  Loop(const PreTrainedModel& model, at::Tensor mask, Cache cache, ModelInputs given)
      : model_(model), mask_(std::move(mask)), cache_(std::move(cache)), given_(std::move(given)) {}

  // What the model is called with for `ids`, [batch, tokens]; `mask` tells the padding of all tokens so far.
  ModelInputs inputs(const at::Tensor& ids, const at::Tensor& mask) const {
    ModelInputs inputs = given_;
    inputs.use_cache = true;
    if (model_.encoder() != nullptr) {
      // The decoder's own tokens have no padding.
      inputs.set("decoder_input_ids", ids);
      inputs.set("cache", cache_);
      return inputs;
    }
    inputs.set("input_ids", ids);
    const int64_t count = ids.size(1);
    if (cache_.is_static())
      set_ready_masks(inputs, mask, count);
    else
      inputs.set("attention_mask", mask);
    const auto positions = at::clamp_min(mask.cumsum(-1) - 1, 0);
    inputs.set("position_ids", positions.narrow(1, positions.size(1) - count, count).contiguous());
    inputs.set("cache", cache_);
    return inputs;
  }

  // Runs the model on `ids` and returns the tokens that follow, [batch, 1].
  at::Tensor step(const at::Tensor& ids) {
    const ModelOutput output = model_.forward(inputs(ids, mask_));
    const Cache* cache = output.cache();
    if (cache == nullptr) throw Error(kStage, model_.architecture() + " returns no cache");
    cache_ = *cache;
    mask_ = with_tokens(1);
    return output.tensor("logits").select(1, -1).argmax(-1, /*keepdim=*/true);
  }

  // The mask with so many tokens more.
  at::Tensor with_tokens(int64_t count) const {
    return at::cat({mask_, at::ones({mask_.size(0), count}, at::kLong)}, 1);
  }
  const at::Tensor& mask() const { return mask_; }

 private:
  void set_ready_masks(ModelInputs& inputs, const at::Tensor& mask, int64_t count) const {
    const auto kinds = model_.mask_kinds();
    const auto ready = [&](bool sliding) {
      const CacheLayer* layer = cache_.first(sliding);
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
    if (kinds.empty()) {
      inputs.set("attention_mask", ready(cache_.first(false) == nullptr));
      return;
    }
    TensorDict masks;
    for (const std::string& kind : kinds) masks.entries.emplace_back(kind, ready(kind == kSlidingMask));
    inputs.set("attention_mask", std::move(masks));
  }

  const PreTrainedModel& model_;
  at::Tensor mask_;
  Cache cache_;
  ModelInputs given_;
};

// The token that a decoder begins with.
int64_t decoder_start(const PreTrainedModel& model) {
  const std::string folder = std::filesystem::path(model.config().file()).parent_path().string();
  if (const auto generation = Config::generation_from_folder(folder))
    if (const auto id = generation->integer_or_none("decoder_start_token_id")) return *id;
  return model.config().integer("decoder_start_token_id");
}

Cache first_cache(const PreTrainedModel& model, const at::Tensor& ids, const GenerationOptions& options,
                  int64_t tokens) {
  if (!options.static_cache_length) return model.empty_cache().value();
  const int64_t length = *options.static_cache_length;
  auto cache = model.static_cache(ids.size(0), length);
  if (!cache) throw Error(kStage, model.architecture() + " has no cache of fixed size");
  if (length < ids.size(1) + tokens)
    throw Error(kStage, "a cache of " + std::to_string(length) + " tokens is too short for the sample: expected at least " +
                            std::to_string(ids.size(1) + tokens) + " (" + std::to_string(ids.size(1)) +
                            " of the prompt and " + std::to_string(tokens) + " new ones)");
  return *cache;
}

}  // namespace

std::vector<GenerationStage> decompose_for_generation(const std::shared_ptr<PreTrainedModel>& model,
                                                      const ModelInputs& inputs, const GenerationOptions& options) {
  const at::NoGradGuard no_grad;
  model->check_inputs(inputs);
  if (!model->generates())
    throw Error(kStage, model->architecture() + " does not generate tokens; expected a class such as ...ForCausalLM");
  at::Tensor ids = inputs.tensor("input_ids");
  if (!ids.defined()) throw Error(kStage, "the prompt is missing: expected 'input_ids'");
  for (const std::string& name : inputs.names())
    if (name != "input_ids" && name != "attention_mask" && name != "decoder_input_ids")
      throw Error(kStage, "expected a prompt of input_ids and attention_mask, got '" + name + "' as well");
  const int64_t tokens = options.multi_token_decode ? 2 : 1;
  const at::Tensor given = inputs.tensor("attention_mask");
  at::Tensor mask = given.defined() ? given : at::ones_like(ids);
  std::vector<GenerationStage> stages;
  ModelInputs every_call;
  if (const auto encoder = model->encoder()) {
    const ModelInputs encoder_inputs{{"input_ids", ids}, {"attention_mask", mask}};
    stages.push_back({"encoder", encoder, encoder_inputs});
    const ModelOutput encoded = encoder->forward(encoder_inputs);
    every_call.set("attention_mask", mask);
    every_call.set("encoder_outputs",
                   TensorDict{{{"last_hidden_state", encoded.tensor("last_hidden_state")}}, encoded.type()});
    ids = at::full({ids.size(0), 1}, decoder_start(*model), at::kLong);
    mask = at::ones_like(ids);
  }
  Loop loop(*model, mask, first_cache(*model, ids, options, tokens), every_call);
  stages.push_back({"prefill", model, copy(loop.inputs(ids, loop.mask()))});
  at::Tensor next = loop.step(ids);
  if (!options.multi_token_decode) {
    stages.push_back({"decode", model, copy(loop.inputs(next, loop.mask()))});
    return stages;
  }
  // Both tokens in one call: the second is whatever follows, and the cache is that before the first.
  next = at::cat({next, next}, 1);
  stages.push_back({"decode", model, copy(loop.inputs(next, loop.with_tokens(1)))});
  return stages;
}

}  // namespace transporters
