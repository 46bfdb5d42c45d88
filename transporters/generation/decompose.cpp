#include "transporters/generation/decompose.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "transporters/error.h"
#include "transporters/generation/eager.h"

namespace transporters {
namespace {

const ErrorContext kStage{.stage = "generation"};

void check_length(int64_t prompt, int64_t tokens, int64_t length) {
  if (length < prompt + tokens)
    throw Error(kStage, "a cache of " + std::to_string(length) +
                            " tokens is too short for the sample: expected at least " +
                            std::to_string(prompt + tokens) + " (" + std::to_string(prompt) + " of the prompt and " +
                            std::to_string(tokens) + " new ones)");
}

}  // namespace

std::vector<GenerationStage> decompose_for_generation(const std::shared_ptr<PreTrainedModel>& model,
                                                      const ModelInputs& inputs, const GenerationOptions& options) {
  const at::NoGradGuard no_grad;
  model->check_inputs(inputs);
  const int64_t tokens = options.multi_token_decode ? 2 : 1;
  EagerSession session(*model, inputs, options.static_cache_length);
  if (const auto length = options.static_cache_length) check_length(session.ids().size(1), tokens, *length);
  std::vector<GenerationStage> stages;
  if (const auto encoder = model->encoder()) stages.push_back({"encoder", encoder, session.encoder_inputs()});
  const ModelInputs prompt = session.inputs(session.ids()).copied();
  for (const ModelPart& part : model->parts(prompt)) stages.push_back({part.name, part.model, part.inputs.copied()});
  stages.push_back({"prefill", model, prompt});
  at::Tensor next = session.step(session.ids()).argmax(-1, /*keepdim=*/true);
  // Of two tokens the second is whatever follows.
  if (options.multi_token_decode) next = at::cat({next, next}, 1);
  // After a prompt of one token: a cache that holds one could not be told from one that is broadcast.
  if (session.ids().size(1) == 1 && !options.static_cache_length)
    next = session.step(next).argmax(-1, /*keepdim=*/true);
  stages.push_back({"decode", model, session.inputs(next).copied()});
  return stages;
}

}  // namespace transporters
