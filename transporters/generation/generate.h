// Generation with the graphs of an export folder.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "transporters/generation/prompt.h"
#include "transporters/generation/search.h"

namespace transporters {

struct GeneratorOptions {
  std::string onnxruntime;  // its library; "" looks where it usually is
  int threads = 0;          // of one operator in ONNX Runtime; 0 lets it choose
};

// An export of a model's generation stages ("prefill" and "decode", with "encoder" for models that have one; "decode"
// alone when it takes any number of tokens), loaded; components besides those are left alone when "prefill" is there.
// Inputs are known by their names, as transformers' exporters give them. Caches are passed from run to run without
// copies; those of fixed size are written in place.
class Generator {
 public:
  // Throws Error for a folder that is no such export.
  explicit Generator(const std::filesystem::path& folder, const GeneratorOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Continues each prompt: with its likeliest tokens, or as the folder's generation_config.json or the options say with
  // a beam search. Prompts of several lengths are padded on the left. Each call begins with an empty cache. Throws
  // Error for an empty prompt, one that is longer than a cache of fixed size, and for a graph with an input of unknown
  // meaning.
  GenerateResult generate(const Prompt& prompt, const GenerateOptions& options = {});

  // An empty cache and what the prompt begins with, for a loop of the caller's own: session().step(start.ids) is its
  // first run. Throws Error as `generate`.
  SearchStart start(const Prompt& prompt);
  DecodingSession& session();
  // Whether prompts may have several lengths.
  bool takes_padding() const;

  // The tensors that hold the cache after a call, by leaf path.
  const std::map<std::string, at::Tensor>& cache() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace transporters
