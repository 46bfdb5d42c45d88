// A model of the native zoo that generates, as the stages of its generation loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/models/pretrained_model.h"

namespace transporters {

struct GenerationOptions {
  // "decode" takes any number of tokens: the prompt, when the cache is empty, a chunk of it, or one.
  bool multi_token_decode = false;
  // Tokens that a cache of fixed size holds; without it the cache grows.
  std::optional<int64_t> static_cache_length;
};

// One graph of the loop, and what it is called with.
struct GenerationStage {
  std::string name;  // as transformers' exporters name components: "prefill", "decode", "image_encoder"
  std::shared_ptr<PreTrainedModel> model;
  ModelInputs inputs;
};

// The stages of `model`, with the inputs that one run over the prompt `inputs` (input_ids, attention_mask for one with
// padding, and what else its first call takes) calls them with: "prefill" has the whole prompt and an empty cache,
// "decode" the next token (two with multi_token_decode) and the cache after the prompt. Before them are the parts that
// "prefill" is made of, in models that have some. Caches of fixed size are in all, with ready masks. No two stages
// share a cache's buffers. Throws Error for a model that doesn't generate or has no cache of that kind.
std::vector<GenerationStage> decompose_for_generation(const std::shared_ptr<PreTrainedModel>& model,
                                                      const ModelInputs& inputs, const GenerationOptions& options = {});

}  // namespace transporters
