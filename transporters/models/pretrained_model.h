// A transformers model with its weights, for the tracer and for running eagerly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transporters/checkpoint/config.h"
#include "transporters/layers/attention.h"
#include "transporters/layers/module.h"
#include "transporters/models/model_io.h"

namespace transporters {

struct LoadOptions {
  // Type of floating-point weights and of computation. Without it: the config's, else that of the file.
  std::optional<at::ScalarType> dtype;
  // "sdpa" or "eager".
  std::string attention = "sdpa";
};

// One input of a model's forward, or one leaf of its cache.
struct InputInfo {
  std::string name;
  at::ScalarType dtype = at::kLong;
  // What each axis is: "batch", "sequence", ...; "" for one without a name, "=" for one that no export makes dynamic.
  std::vector<std::string> axes;
};

// A table of learned positions: longer inputs have none.
struct PositionTable {
  std::string key;      // of config.json
  int64_t size = 0;     // what the key says
  int64_t longest = 0;  // tokens that positions count when the caller gives none
};

class PreTrainedModel;

// A part of a model that is a graph of its own while the model generates, and what it is called with.
struct ModelPart {
  std::string name;  // as transformers' exporters name components: "image_encoder"
  std::shared_ptr<PreTrainedModel> model;
  ModelInputs inputs;
};

// What every module of a model needs to know.
struct ModelContext {
  Config config;
  AttentionImplementation attention = AttentionImplementation::Sdpa;
  at::ScalarType dtype = at::kFloat;
};

// Member names are those of transformers, so named_parameters() has the names of its state dict. Parameters are views
// of the mapped checkpoint: they must not be written to. Tied parameters are one tensor. Buffers are never saved in
// checkpoints: they follow from the config.
class PreTrainedModel : public Module {
 public:
  PreTrainedModel(const Weights& weights, const ModelContext& context, std::string architecture)
      : Module(weights), context_(context), architecture_(std::move(architecture)) {}

  // Runs the model; never reads sizes of dynamic axes as numbers, nor values of tensors. Throws Error for inputs the
  // model lacks or can't combine.
  virtual ModelOutput forward(const ModelInputs& inputs) const = 0;
  // Every input forward knows except the cache, in the order of transformers' signature.
  virtual std::vector<InputInfo> inputs() const = 0;
  // What to export with when the caller has nothing better; the same for the same sizes.
  virtual ModelInputs example_inputs(int64_t batch, int64_t sequence) const = 0;
  // Whether its logits say which token comes next.
  virtual bool generates() const { return false; }
  // A cache without tokens; nullopt for models that have none.
  virtual std::optional<Cache> empty_cache() const { return std::nullopt; }
  // The same with layers of fixed size, for `length` tokens of `batch` sequences; nullopt for models that have none.
  virtual std::optional<Cache> static_cache(int64_t /*batch*/, int64_t /*length*/) const { return std::nullopt; }
  // Kinds of attention that ready masks are given for, by transformers' names (kFullMask, kSlidingMask), in a
  // dictionary; empty for models that take one for all.
  virtual std::vector<std::string> mask_kinds() const { return {}; }
  // The part that reads the prompt, of models that have an encoder for it; null otherwise. Its output is their input
  // "encoder_outputs".
  virtual std::shared_ptr<PreTrainedModel> encoder() const { return nullptr; }
  // The parts, in the order that they run in, with what they are called with while forward(inputs) runs; empty for
  // models that are one graph.
  virtual std::vector<ModelPart> parts(const ModelInputs& /*inputs*/) const { return {}; }
  // What "inputs_embeds" stands for: the embeddings of token ids. Throws Error for a model without.
  virtual at::Tensor embed(const at::Tensor& ids) const;
  // While generating: "attention_mask" of a call with the last `count` of the tokens that `mask`, [batch, tokens],
  // tells the padding of; undefined for none.
  virtual at::Tensor generation_mask(const at::Tensor& mask, int64_t /*count*/) const { return mask; }
  // While generating: "position_ids" of a call with the last `count` of the tokens that `mask`, [batch, tokens], tells
  // the padding of. `first` is what the first call was given.
  virtual at::Tensor generation_positions(const at::Tensor& mask, int64_t count, const ModelInputs& first) const;
  // Nullopt for models whose positions have no end.
  virtual std::optional<PositionTable> position_table() const { return std::nullopt; }

  // Throws Error naming inputs that forward would not look at, with near names, and inputs longer than the position
  // table (unless the caller gives positions, and for sizes that are numbers: not for dynamic ones while tracing).
  void check_inputs(const ModelInputs& inputs) const;

  const Config& config() const { return context_.config; }
  AttentionImplementation attention() const { return context_.attention; }
  at::ScalarType dtype() const { return context_.dtype; }
  // Its class in transformers: "LlamaForCausalLM".
  const std::string& architecture() const { return architecture_; }
  // Tensors of the checkpoint that this class has no use for (another head's), sorted.
  const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }
  void set_unused_tensors(std::vector<std::string> names) { unused_tensors_ = std::move(names); }

 protected:
  const ModelContext& context() const { return context_; }
  // The cache to run with: a copy of the caller's, or an empty one when the model is to return one. Throws Error for a
  // cache of another number of layers.
  std::optional<Cache> start_cache(const ModelInputs& inputs) const;

 private:
  void check_length(const ModelInputs& inputs, const PositionTable& table) const;

  ModelContext context_;
  std::string architecture_;
  std::vector<std::string> unused_tensors_;
};

inline constexpr const char* kFullMask = "full_attention";
inline constexpr const char* kSlidingMask = "sliding_attention";

// The attention_mask for layers of that kind: the input itself, or its entry when it is a dictionary. Undefined without
// one; throws Error for a dictionary that lacks the kind.
at::Tensor attention_mask(const ModelInputs& inputs, bool sliding);

// Throws Error unless exactly one of input_ids and inputs_embeds is there.
void check_ids_or_embeds(const ModelInputs& inputs);

// Token ids [batch, sequence] that count through the vocabulary, avoiding `pad`.
at::Tensor example_ids(int64_t batch, int64_t sequence, int64_t vocab_size, std::optional<int64_t> pad);

// [1, length] counting up from `past`.
at::Tensor default_position_ids(const c10::SymInt& length, const c10::SymInt& past);

// The last `count` tokens of [batch, sequence, hidden]; all for 0.
at::Tensor last_tokens(const at::Tensor& hidden, int64_t count);

// Of logits [batch, sequence, labels], those of each row's last token that is not padding, on whichever side the
// padding is; without ids the last token's. Throws Error for a batch when the config has no pad_token_id.
at::Tensor last_token_logits(const at::Tensor& logits, const at::Tensor& input_ids, const Config& config);

// QuestionAnsweringModelOutput from logits [batch, sequence, 2].
ModelOutput question_answering_output(const at::Tensor& logits);

}  // namespace transporters
