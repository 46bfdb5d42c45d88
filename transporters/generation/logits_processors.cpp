#include "transporters/generation/logits_processors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <set>

namespace transporters {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

void LogitsProcessors::apply(at::Tensor& scores, const std::vector<TokenIds>& sequences,
                             const std::vector<int64_t>& padding) const {
  const auto length = static_cast<int64_t>(sequences.front().size());
  const int64_t vocabulary = scores.size(1);
  for (size_t row = 0; row < sequences.size(); ++row) {
    float* values = scores.data_ptr<float>() + static_cast<int64_t>(row) * vocabulary;
    if (settings_.repetition_penalty != 1.0) penalize_repetition(values, vocabulary, sequences[row], padding[row]);
    if (settings_.no_repeat_ngram_size > 0) ban_repeated_ngrams(values, vocabulary, sequences[row]);
  }
  if (length < settings_.min_length || length - prompt_length_ < settings_.min_new_tokens)
    suppress(scores, settings_.eos_token_ids);
  if (settings_.forced_bos_token_id && length == 1) force(scores, {*settings_.forced_bos_token_id});
  if (!settings_.forced_eos_token_ids.empty() && length == max_length_ - 1)
    force(scores, settings_.forced_eos_token_ids);
  suppress(scores, settings_.suppress_tokens);
  // A forced first token is not the one that the list is about.
  const int64_t begin = prompt_length_ + (prompt_length_ <= 1 && settings_.forced_bos_token_id ? 1 : 0);
  if (length == begin) suppress(scores, settings_.begin_suppress_tokens);
}

void LogitsProcessors::suppress(at::Tensor& scores, const TokenIds& tokens) const {
  for (const int64_t token : tokens)
    if (token >= 0 && token < scores.size(1)) scores.select(1, token).fill_(kNever);
}

void LogitsProcessors::force(at::Tensor& scores, const TokenIds& tokens) const {
  scores.fill_(kNever);
  for (const int64_t token : tokens)
    if (token >= 0 && token < scores.size(1)) scores.select(1, token).fill_(0);
}

void LogitsProcessors::penalize_repetition(float* scores, int64_t vocabulary, const TokenIds& sequence,
                                           int64_t padding) const {
  const auto penalty = static_cast<float>(settings_.repetition_penalty);
  for (const int64_t token : std::set<int64_t>(sequence.begin() + padding, sequence.end()))
    if (token >= 0 && token < vocabulary)
      scores[token] = scores[token] < 0 ? scores[token] * penalty : scores[token] / penalty;
}

void LogitsProcessors::ban_repeated_ngrams(float* scores, int64_t vocabulary, const TokenIds& sequence) const {
  const auto size = static_cast<size_t>(settings_.no_repeat_ngram_size);
  if (sequence.size() < size) return;
  const auto suffix = sequence.end() - static_cast<ptrdiff_t>(size - 1);
  for (auto start = sequence.begin(); start + static_cast<ptrdiff_t>(size) <= sequence.end(); ++start) {
    const int64_t next = *(start + static_cast<ptrdiff_t>(size - 1));
    if (std::equal(suffix, sequence.end(), start) && next >= 0 && next < vocabulary) scores[next] = kNever;
  }
}

}  // namespace transporters
