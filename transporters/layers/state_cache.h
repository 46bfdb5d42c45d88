// Cache layers of models that keep a state of fixed size in place of keys and values.
#pragma once

#include "transporters/layers/cache.h"

namespace transporters {

// The last `width` inputs of a causal convolution, [batch, channels, width], and the state of a recurrence over time,
// [batch, channels, state_size]: transformers' LinearAttentionLayer. Both are replaced, never written to.
class StateLayer : public CacheLayer {
 public:
  explicit StateLayer(int64_t width) : width_(width) {}

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<StateLayer>(*this); }
  bool is_empty() const { return !convolution_.defined(); }
  // What the convolution of `x`, [batch, channels, length], reads: the last inputs (zeros before the first) and `x`,
  // [batch, channels, width + length], of which it keeps the last `width`.
  at::Tensor update_convolution(const at::Tensor& x);
  // Undefined before the first update.
  const at::Tensor& recurrence() const { return recurrence_; }
  void set_recurrence(at::Tensor state) { recurrence_ = std::move(state); }

  bool has_keys() const override { return false; }
  // It has no keys, and doesn't count tokens: these are InternalErrors.
  std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                           const std::optional<c10::SymInt>& visible = std::nullopt) override;
  c10::SymInt length() const override;
  std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt& query_length) const override;

  std::string python_class() const override { return "transformers.cache_utils:LinearAttentionLayer"; }
  std::vector<NamedTensor> tensors() const override;
  std::string state_json(size_t first_leaf) const override;
  void set_tensors(std::span<const at::Tensor> tensors) override;

 private:
  int64_t width_;
  at::Tensor convolution_;  // undefined before the first update
  at::Tensor recurrence_;
};

// `x`, [batch, channels, length], with `width` zeros before it.
at::Tensor with_zeros_before(const at::Tensor& x, int64_t width);

}  // namespace transporters
