#include "transporters/layers/linear.h"

namespace transporters {

Linear::Linear(const Weights& weights, int64_t in_features, int64_t out_features, bool with_bias) : Module(weights) {
  weight = parameter(weights, "weight", {out_features, in_features});
  if (with_bias) bias = parameter(weights, "bias", {out_features});
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  return at::linear(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

Conv1D::Conv1D(const Weights& weights, int64_t in_features, int64_t out_features) : Module(weights) {
  weight = parameter(weights, "weight", {in_features, out_features});
  bias = parameter(weights, "bias", {out_features});
}

at::Tensor Conv1D::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  return at::matmul(x, weight) + bias;
}

Embedding::Embedding(const Weights& weights, int64_t num_embeddings, int64_t embedding_dim) : Module(weights) {
  weight = parameter(weights, "weight", {num_embeddings, embedding_dim});
}

at::Tensor Embedding::forward(const at::Tensor& indices) const {
  const ModuleScope scope(path());
  return at::embedding(weight, indices);
}

}  // namespace transporters
