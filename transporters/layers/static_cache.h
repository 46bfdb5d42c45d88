// Cache layers of fixed size: buffers that are written in place, and a tensor that counts the tokens.
#pragma once

#include "transporters/layers/cache.h"

namespace transporters {

// [batch, key_value_heads, max_length, head_dim] of zeros to begin with: transformers' StaticLayer. Copies share the
// buffers, so an update is seen by all of them. Updates past the end throw.
class StaticLayer : public CacheLayer {
 public:
  StaticLayer(int64_t batch, int64_t heads, int64_t max_length, int64_t head_dim, at::ScalarType dtype);

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<StaticLayer>(*this); }
  std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                           const std::optional<c10::SymInt>& visible) override;
  // Reads the tensor that counts, which no trace can: a traced model is given positions and ready masks.
  c10::SymInt length() const override;
  std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt& query_length) const override;
  at::Tensor positions(const c10::SymInt& count) const override;
  bool is_static() const override { return true; }
  std::string python_class() const override { return "transformers.cache_utils:StaticLayer"; }
  std::vector<NamedTensor> tensors() const override;
  std::string state_json(size_t first_leaf) const override;
  void set_tensors(std::span<const at::Tensor> tensors) override;

  int64_t max_length() const { return max_length_; }

 protected:
  // What the class has besides, as JSON members that end with ", ".
  virtual std::string more_state() const { return ""; }

  at::Tensor keys_;
  at::Tensor values_;
  at::Tensor length_;  // [], tokens seen

 private:
  int64_t batch_, heads_, max_length_, head_dim_;
};

// A layer whose attention looks back `window` tokens at most, with buffers of that many (or of `max_length` if less):
// transformers' StaticSlidingWindowLayer. One sequence of ops serves every state: buffers that are not full, that get
// full, and full ones that move on.
class StaticSlidingWindowLayer : public StaticLayer {
 public:
  StaticSlidingWindowLayer(int64_t batch, int64_t heads, int64_t max_length, int64_t window, int64_t head_dim,
                           at::ScalarType dtype);

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<StaticSlidingWindowLayer>(*this); }
  std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                           const std::optional<c10::SymInt>& visible) override;
  std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt& query_length) const override;
  bool is_sliding() const override { return true; }
  std::string python_class() const override { return "transformers.cache_utils:StaticSlidingWindowLayer"; }

 private:
  std::string more_state() const override;

  int64_t seen_ = 0;  // tokens, where their number is known: transformers has it as a number as well
  bool holds_all_;    // the window is no smaller than the cache
};

// A StaticLayer for an encoder's states. It has as many places as there are states, so that they are its buffers, and
// none before they come.
class StaticCrossLayer : public CacheLayer {
 public:
  // For an encoder of `length` states in the sample.
  StaticCrossLayer(int64_t batch, int64_t heads, int64_t length, int64_t head_dim);

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<StaticCrossLayer>(*this); }
  std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                           const std::optional<c10::SymInt>& visible) override;
  c10::SymInt length() const override { return is_filled() ? keys_.sym_size(2) : c10::SymInt(0); }
  std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt&) const override { return {length(), 0}; }
  bool is_static() const override { return true; }
  bool is_filled() const override { return keys_.defined(); }
  std::string python_class() const override { return "transformers.cache_utils:StaticLayer"; }
  std::vector<NamedTensor> tensors() const override;
  std::string state_json(size_t first_leaf) const override;
  void set_tensors(std::span<const at::Tensor> tensors) override;
  void clear() override { keys_ = values_ = at::Tensor(); }

 private:
  at::Tensor keys_, values_;  // undefined before the update
  at::Tensor length_;         // [], states seen
  int64_t batch_, heads_, max_length_, head_dim_;
};

}  // namespace transporters
