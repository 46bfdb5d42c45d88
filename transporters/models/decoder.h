// The decoder-only transformer that llama and its descendants share: pre-normalised layers of rotary attention and a
// gated MLP. Each model type says in its own file how it differs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/layers/norm.h"
#include "transporters/layers/rope.h"
#include "transporters/models/auto.h"
#include "transporters/models/experts.h"

namespace transporters {

struct DecoderSettings {
  // Reads what all these models' configs have. `defaults` has the values for absent keys; the rest is left to the
  // caller.
  static DecoderSettings from_config(const Config& config, const DecoderSettings& defaults);

  // Before "Model" and "ForCausalLM" in names of classes.
  std::string class_prefix;
  int64_t vocab_size = 32000;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 11008;
  int64_t num_layers = 32;
  int64_t num_heads = 32;
  int64_t num_key_value_heads = 0;  // 0: as num_heads
  int64_t head_dim = 0;             // 0: hidden_size / num_heads
  int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  bool query_key_value_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  // RMSNorm of each head's queries and keys.
  bool query_key_norm = false;
  // Norms after attention and MLP as well, before they are added: Gemma.
  bool sandwich_norms = false;
  RMSNorm::Scale norm_scale = RMSNorm::Scale::Weight;
  std::string activation_key = "hidden_act";
  std::string activation = "silu";
  double embedding_scale = 1.0;
  std::optional<double> attention_scale;  // without it head_dim^-0.5
  std::optional<double> logit_softcap;
  RopeParameters rope;
  // Of sliding layers, when they differ.
  std::optional<RopeParameters> sliding_rope;
  // For each layer, how far back it looks; nullopt for everything.
  std::vector<std::optional<int64_t>> windows;
  // The config's class lists "layer_types": ready masks are then given by kind.
  bool has_layer_types = false;

  // The mixture of experts of layers that are `sparse`.
  ExpertSettings experts;
  std::vector<bool> sparse;  // empty: none
  // Throws Error for more experts a token than there are.
  void set_experts(const Config& config, const ExpertSettings& settings, const std::function<bool(int64_t)>& is_sparse);

  // PreTrainedModel::mask_kinds().
  std::vector<std::string> mask_kinds() const;
};

// Axes of "position_ids" with positions in time, height and width, and with those of text before them.
inline const std::vector<std::string> kGridPositionAxes{"=", "batch", "sequence"};

// Windows by the config's "layer_types"; without them `is_sliding(layer)` decides. A sliding layer needs a window.
std::vector<std::optional<int64_t>> layer_windows(const Config& config, int64_t num_layers,
                                                  std::optional<int64_t> window,
                                                  const std::function<bool(int64_t)>& is_sliding);

// The classes of such a model type: PREFIXModel, PREFIXForCausalLM and so on; only those whose task is in `tasks`.
// `causal_lm_prefix` is that of ...ForCausalLM where it differs.
std::vector<ModelClass> decoder_classes(const std::string& prefix, DecoderSettings (*settings)(const Config&),
                                        bool ties_by_default = false, const std::string& causal_lm_prefix = "",
                                        const std::vector<Task>& tasks = {
                                            Task::Base, Task::CausalLM, Task::SequenceClassification,
                                            Task::TokenClassification, Task::QuestionAnswering});

}  // namespace transporters
