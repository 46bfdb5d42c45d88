// Rotary position embeddings: rotating query and key by their positions.
// Default: https://arxiv.org/abs/2104.09864. Dynamic NTK: the base grows with the length. YaRN:
// https://arxiv.org/abs/2309.00071. LongRoPE: https://arxiv.org/abs/2402.13753. Llama 3.1: wavelength-dependent
// scaling.
#pragma once

#include <utility>

#include "transporters/checkpoint/rope_parameters.h"
#include "transporters/layers/module.h"

namespace transporters {

// Cosines and sines for positions. The kinds that depend on the current length take it from the positions in the graph,
// so one exported program serves every length.
class RotaryEmbedding : public Module {
 public:
  // `head_dim` is the size that rotates; `max_position_embeddings` is where dynamic scaling sets in.
  RotaryEmbedding(const Weights& weights, const Config& config, const RopeParameters& parameters, int64_t head_dim,
                  int64_t max_position_embeddings);
  // position_ids [batch or 1, sequence] -> cos and sin [batch or 1, sequence, head_dim] of `dtype`. With sections also
  // position_ids [3, batch, sequence]: those in time, height and width.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& position_ids, at::ScalarType dtype) const;

 private:
  at::Tensor frequencies(const at::Tensor& position_ids) const;

  RopeParameters parameters_;
  int64_t dim_;
  int64_t max_position_embeddings_;
  double scaling_ = 1.0;  // of cosines and sines
  at::Tensor inv_freq_;   // [head_dim / 2]
  at::Tensor long_inv_freq_;
  at::Tensor exponents_;  // 0, 2/dim, 4/dim, ...
  at::Tensor axes_;       // of three position_ids, that which each frequency turns by
};

// Rotates query or key [batch, heads, sequence, head_dim] by halves; a head_dim longer than cos keeps its rest.
// Patches replace it by "layers.rope.apply_rotary".
at::Tensor apply_rotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace transporters
