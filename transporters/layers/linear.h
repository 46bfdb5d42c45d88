// Layers with a weight matrix.
#pragma once

#include "transporters/layers/module.h"

namespace transporters {

// y = x W^T + b. Weight [out_features, in_features].
class Linear : public Module {
 public:
  Linear(const Weights& weights, int64_t in_features, int64_t out_features, bool bias = true);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight;
  at::Tensor bias;  // undefined without one
};

// GPT-2's linear layer: y = x W + b, weight [in_features, out_features].
class Conv1D : public Module {
 public:
  Conv1D(const Weights& weights, int64_t in_features, int64_t out_features);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor weight;
  at::Tensor bias;
};

// Rows of a table by index.
class Embedding : public Module {
 public:
  Embedding(const Weights& weights, int64_t num_embeddings, int64_t embedding_dim);
  at::Tensor forward(const at::Tensor& indices) const;
  at::Tensor weight;
};

}  // namespace transporters
