// Changes of logits before a token is chosen, as transformers' logits processors of the same names make them.
#pragma once

#include <ATen/core/Tensor.h>

#include "transporters/generation/settings.h"

namespace transporters {

class LogitsProcessors {
 public:
  // `prompt_length` tokens (with padding) begin each sequence, and it ends with `max_new_tokens` more.
  LogitsProcessors(const GenerationSettings& settings, int64_t prompt_length, int64_t max_new_tokens)
      : settings_(settings), prompt_length_(prompt_length), max_length_(prompt_length + max_new_tokens) {}

  // `scores`: [rows, vocabulary], logits or their logarithms of probabilities, float32; changed in place. `sequences`:
  // the tokens of each row, the prompt's too; `padding` has how many at the front are padding.
  void apply(at::Tensor& scores, const std::vector<TokenIds>& sequences, const std::vector<int64_t>& padding) const;

 private:
  void suppress(at::Tensor& scores, const TokenIds& tokens) const;
  // Leaves only these tokens.
  void force(at::Tensor& scores, const TokenIds& tokens) const;
  void penalize_repetition(float* scores, int64_t vocabulary, const TokenIds& sequence, int64_t padding) const;
  void ban_repeated_ngrams(float* scores, int64_t vocabulary, const TokenIds& sequence) const;

  GenerationSettings settings_;
  int64_t prompt_length_;
  int64_t max_length_;
};

}  // namespace transporters
