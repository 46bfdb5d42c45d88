// Greedy generation with the graphs of an export folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/generation/cache_layout.h"
#include "transporters/generation/stage.h"

namespace transporters {

using TokenIds = std::vector<int64_t>;

struct GenerateOptions {
  int64_t max_new_tokens = 20;
  // Overrides the tokens that end a sequence, which the folder's generation_config.json names.
  std::optional<TokenIds> eos_token_ids;
  // Called with the next token of each row as it comes; rows that have ended repeat their last.
  std::function<void(const TokenIds&)> on_tokens;
};

struct GenerateResult {
  // The new tokens of each row, with the one that ended it.
  std::vector<TokenIds> tokens;
  // "eos": every row ended; "max_new_tokens"; "cache_full": a cache of fixed size has no room for another token.
  std::string stopped;
  int64_t steps = 0;  // runs of the decode graph
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

struct GeneratorOptions {
  std::string onnxruntime;  // its library; "" looks where it usually is
  int threads = 0;          // of one operator in ONNX Runtime; 0 lets it choose
};

// An export of a model's generation stages ("prefill" and "decode", with "encoder" for models that have one; "decode"
// alone when it takes any number of tokens), loaded. Inputs are known by their names, as transformers' exporters give
// them. Caches are passed from run to run without copies; those of fixed size are written in place.
class Generator {
 public:
  // Throws Error for a folder that is no such export.
  explicit Generator(const std::filesystem::path& folder, const GeneratorOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Continues each prompt with its likeliest tokens. Prompts of several lengths are padded on the left. Each call begins
  // with an empty cache. Throws Error for an empty prompt, one that is longer than a cache of fixed size, and for a graph
  // with an input of unknown meaning.
  GenerateResult generate(const std::vector<TokenIds>& prompts, const GenerateOptions& options = {});

  // The tensors that hold the cache after a call, by leaf path.
  const std::map<std::string, at::Tensor>& cache() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace transporters
