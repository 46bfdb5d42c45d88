// How tokens are chosen: the fields of transformers' GenerationConfig that decide without chance.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace transporters {

using TokenIds = std::vector<int64_t>;

// When a beam search is done with a prompt that has num_beams ended sequences.
enum class EarlyStopping {
  No,     // when no open beam is likely to become better
  Yes,    // at once
  Never,  // when no open beam can become better
};

struct GenerationSettings {
  TokenIds eos_token_ids;
  std::optional<int64_t> decoder_start_token_id;
  std::optional<int64_t> vocab_size;

  int64_t num_beams = 1;  // 1 takes the likeliest token
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::No;

  double repetition_penalty = 1.0;
  int64_t no_repeat_ngram_size = 0;
  int64_t min_length = 0;  // with the prompt
  int64_t min_new_tokens = 0;
  std::optional<int64_t> forced_bos_token_id;
  TokenIds forced_eos_token_ids;
  TokenIds suppress_tokens;
  TokenIds begin_suppress_tokens;

  // generation_config.json of the folder, or config.json where there is none; the ids of an ended sequence and of the
  // decoder's start are looked for in both. Throws Error for values that can't be, and for a field that would change
  // the tokens and is not one of the above. Sampling is not looked at.
  static GenerationSettings from_folder(const std::filesystem::path& folder);
  // Throws Error that names `file` for values that can't be.
  void check(const std::string& file) const;
  // Throws Error for ids of the field `key` that the vocabulary, where its size is known, has not.
  void check_in_vocabulary(const std::string& key, const TokenIds& ids, const std::string& file) const;
};

// The token that a decoder begins with, by generation_config.json or config.json of the folder. Throws Error for one
// that the vocabulary has not.
std::optional<int64_t> decoder_start_token(const std::filesystem::path& folder);

}  // namespace transporters
