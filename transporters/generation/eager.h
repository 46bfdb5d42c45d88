// Generation with a model of the native zoo, without an export.
#pragma once

#include <memory>

#include "transporters/generation/prompt.h"
#include "transporters/generation/search.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

// A model with the cache of the sequences it is in the middle of.
class EagerSession : public DecodingSession {
 public:
  // `prompt`: what the model generates from: input_ids and attention_mask for one with padding, or what its encoder
  // takes, and inputs of the first call such as pixel_values. A model with an encoder runs it here. Without a length
  // the cache grows; with one it holds so many tokens. Throws Error for a model that doesn't generate, for a prompt it
  // can't begin with, and for a kind of cache that it has not.
  EagerSession(const PreTrainedModel& model, const ModelInputs& prompt,
               std::optional<int64_t> static_cache_length = std::nullopt);

  at::Tensor step(const at::Tensor& ids) override;
  void reorder(const at::Tensor& rows) override;

  // Where a search begins: the prompt, or a decoder's first token.
  const at::Tensor& ids() const { return first_ids_; }
  // 0 for padding, of all tokens that `step` has run or will run next, [rows, tokens].
  const at::Tensor& mask() const { return mask_; }
  // What `step` would call the model with for `ids`.
  ModelInputs inputs(const at::Tensor& ids) const;
  // What the encoder was called with; no fields without one.
  const ModelInputs& encoder_inputs() const { return encoder_inputs_; }
  // Tokens that the cache has room for in all; nullopt when it grows.
  std::optional<int64_t> capacity() const { return static_cache_length_; }

 private:
  void encode(const ModelInputs& prompt);
  void set_ready_masks(ModelInputs& inputs, const at::Tensor& mask, int64_t count) const;
  bool takes(const std::string& name) const;

  const PreTrainedModel& model_;
  std::optional<int64_t> static_cache_length_;
  std::optional<Cache> cache_;
  at::Tensor first_ids_;
  at::Tensor mask_;
  at::Tensor first_mask_;
  at::Tensor rows_;  // the prompt's row that each row goes on from, [rows]; undefined: as they are
  ModelInputs encoder_inputs_;
  ModelInputs every_call_;  // besides tokens and cache
  ModelInputs first_call_;  // what only the first has
  int64_t past_ = 0;        // tokens run
};

// What EagerSession takes for a prompt. Prompts of several lengths are padded on the left, those of an encoder on the
// right. Throws Error for ids that the vocabulary lacks and for a prompt that the model can't begin with.
ModelInputs prompt_inputs(const PreTrainedModel& model, const Prompt& prompt,
                          std::optional<int64_t> vocab_size = std::nullopt);

// Continues a prompt with `settings`, as transformers' generate() does. Throws Error as EagerSession and prompt_inputs.
GenerateResult generate(const PreTrainedModel& model, const Prompt& prompt, const GenerationSettings& settings,
                        const GenerateOptions& options = {}, std::optional<int64_t> static_cache_length = std::nullopt);
// With the settings in the model's folder.
GenerateResult generate(const PreTrainedModel& model, const Prompt& prompt, const GenerateOptions& options = {});

}  // namespace transporters
