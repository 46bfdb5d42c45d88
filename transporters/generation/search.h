// Choosing tokens: greedy and beam search over anything that says which token comes next.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transporters/generation/settings.h"

namespace transporters {

struct GenerateOptions {
  int64_t max_new_tokens = 20;
  // Override the model's own generation settings.
  std::optional<TokenIds> eos_token_ids;
  std::optional<int64_t> num_beams;
  std::optional<double> length_penalty;
  std::optional<EarlyStopping> early_stopping;
  // Called with the next token of each row as it comes; rows that have ended repeat their last. Not with several beams,
  // whose tokens are known only in the end.
  std::function<void(const TokenIds&)> on_tokens;
};

struct GenerateResult {
  // The new tokens of each row, with the one that ended it.
  std::vector<TokenIds> tokens;
  // "eos": every row ended; "max_new_tokens"; "cache_full": a cache of fixed size has no room for another token;
  // "positions_full": the model has no position for another token.
  std::string stopped;
  int64_t steps = 0;  // runs of the decode graph
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

// A model and its cache, eager or exported, in the middle of some sequences.
class DecodingSession {
 public:
  virtual ~DecodingSession() = default;
  // Runs [rows, count] tokens that follow those so far. Returns [rows, vocabulary]: the logits after the last.
  virtual at::Tensor step(const at::Tensor& ids) = 0;
  // Row i goes on from where row rows[i] is. There may be more rows than before, or fewer.
  virtual void reorder(const at::Tensor& rows) = 0;
};

// Where a search begins.
struct SearchStart {
  at::Tensor ids;               // [rows, count], the first to run
  at::Tensor mask;              // 0 for padding in front
  bool has_prefill = true;      // whether the first run is not one of the decode graph
  std::optional<int64_t> room;  // new tokens at most
  std::string room_ends;        // what GenerateResult::stopped says then
  // What the clock of prefill_seconds counts from.
  std::chrono::steady_clock::time_point clock = std::chrono::steady_clock::now();

  // There are places for `length` tokens of a sequence; `with_last` says whether the last new one, which is not run,
  // needs one as well. Throws Error, with what to try, when the ids are more.
  void limit(int64_t length, bool with_last, const std::string& ends, const std::string& advice);
};

// Settings with what the options override. Throws Error for values that can't be.
GenerationSettings overridden(GenerationSettings settings, const GenerateOptions& options);

// The likeliest token each time, or with settings.num_beams > 1 the sequence of the best score that a beam search
// finds, as transformers' generate() does both. Ties go to the lower token id.
GenerateResult search(DecodingSession& session, const SearchStart& start, const GenerationSettings& settings,
                      const GenerateOptions& options);

}  // namespace transporters
