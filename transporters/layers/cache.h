// Key/value caches, with the structure of transformers' Cache classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transporters/graph/tree_spec.h"

namespace transporters {

using NamedTensor = std::pair<std::string, at::Tensor>;

// One layer's keys and values: [batch, key_value_heads, length, head_dim]. An update of a layer that grows replaces
// this object's tensors and never writes into them; layers of fixed size (static_cache.h) are written in place.
class CacheLayer {
 public:
  virtual ~CacheLayer() = default;
  virtual std::unique_ptr<CacheLayer> clone() const = 0;

  // Adds the new tokens' states and returns what attention reads. `visible` is the number of keys that the mask has,
  // where there is one: layers that can choose return as many.
  virtual std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                                   const std::optional<c10::SymInt>& visible = std::nullopt) = 0;
  // Tokens seen so far.
  virtual c10::SymInt length() const = 0;
  // Number of keys attention will read for `query_length` new tokens, and the position of the first of them.
  virtual std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt& query_length) const = 0;
  // Positions of the next `count` tokens, [1, count].
  virtual at::Tensor positions(const c10::SymInt& count) const;
  virtual bool is_sliding() const { return false; }
  // Whether its size is fixed and updates are in place.
  virtual bool is_static() const { return false; }
  // Whether there are keys and values.
  virtual bool is_filled() const { return !tensors().empty(); }
  // Lets go of keys and values; only for layers of an encoder's states.
  virtual void clear();

  // False for layers that hold a state of fixed size in place of keys and values (state_cache.h).
  virtual bool has_keys() const { return true; }

  // How transformers' class of this layer flattens: its path ("transformers.cache_utils:DynamicLayer"), its tensors by
  // attribute, and its attributes as JSON text in which a tensor is a reference to its place among the cache's leaves.
  virtual std::string python_class() const = 0;
  virtual std::vector<NamedTensor> tensors() const = 0;
  virtual std::string state_json(size_t first_leaf) const = 0;
  // Replaces the tensors, in the order of tensors().
  virtual void set_tensors(std::span<const at::Tensor> tensors) = 0;
};

// Grows by every token: transformers' DynamicLayer.
class DynamicLayer : public CacheLayer {
 public:
  DynamicLayer() = default;
  DynamicLayer(at::Tensor keys, at::Tensor values) : keys_(std::move(keys)), values_(std::move(values)) {}

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<DynamicLayer>(*this); }
  std::pair<at::Tensor, at::Tensor> update(const at::Tensor& keys, const at::Tensor& values,
                                           const std::optional<c10::SymInt>& visible = std::nullopt) override;
  c10::SymInt length() const override;
  std::pair<c10::SymInt, c10::SymInt> mask_sizes(const c10::SymInt& query_length) const override;
  std::string python_class() const override { return "transformers.cache_utils:DynamicLayer"; }
  std::vector<NamedTensor> tensors() const override;
  std::string state_json(size_t first_leaf) const override;
  void set_tensors(std::span<const at::Tensor> tensors) override;
  bool is_filled() const override { return keys_.defined(); }
  void clear() override { keys_ = values_ = at::Tensor(); }

 private:
  at::Tensor keys_;  // undefined before the first update
  at::Tensor values_;
};

// A layer whose attention looks back `window` tokens at most: transformers' DynamicSlidingWindowLayer, with the leaf
// that class has besides keys and values. Older states are kept, as transformers does while exporting: cutting them off
// would need the number of tokens seen, which no tensor of this class holds. The mask hides them.
class DynamicSlidingWindowLayer : public DynamicLayer {
 public:
  explicit DynamicSlidingWindowLayer(int64_t window);

  std::unique_ptr<CacheLayer> clone() const override { return std::make_unique<DynamicSlidingWindowLayer>(*this); }
  bool is_sliding() const override { return true; }
  std::string python_class() const override { return "transformers.cache_utils:DynamicSlidingWindowLayer"; }
  std::vector<NamedTensor> tensors() const override;
  std::string state_json(size_t first_leaf) const override;
  void set_tensors(std::span<const at::Tensor> tensors) override;

 private:
  int64_t window_;
  at::Tensor window_tensor_;  // window_, as a number in a tensor
};

// The positions that `past` gives the next `count` tokens, [1, count]; without a cache they count from 0.
at::Tensor next_positions(const c10::SymInt& count, const CacheLayer* past);

// A list of layers: transformers' DynamicCache or StaticCache, or with cross layers its EncoderDecoderCache. Copies are
// independent but for the buffers of layers of fixed size, and share tensors.
class Cache {
 public:
  Cache() = default;
  Cache(const Cache& other);
  Cache& operator=(const Cache& other);
  Cache(Cache&&) = default;
  Cache& operator=(Cache&&) = default;

  // Empty layers: a window gives a DynamicSlidingWindowLayer, none a DynamicLayer.
  static Cache dynamic(const std::vector<std::optional<int64_t>>& windows);

  // Layers of `max_length` tokens: a window gives a StaticSlidingWindowLayer, none a StaticLayer.
  static Cache fixed(const std::vector<std::optional<int64_t>>& windows, int64_t batch, int64_t heads,
                     int64_t max_length, int64_t head_dim, at::ScalarType dtype);
  bool is_static() const { return !layers.empty() && layers.front()->is_static(); }
  // Layers of an encoder's states, whose size is theirs, after `layers`; of fixed size when those are. For an encoder
  // of `length` states in the sample.
  void add_cross_layers(size_t count, int64_t batch, int64_t heads, int64_t length, int64_t head_dim);
  // Lets go of the cross layers' keys and values where `given` has them all.
  void drop_cross_layers_of(const Cache& given);
  // The first layer that slides, or that does not; null when there is none.
  const CacheLayer* first(bool sliding) const;

  // "layers.0.keys", "layers.0.values", "layers.1.keys", ...; empty layers have none.
  std::vector<NamedTensor> tensors() const;
  void set_tensors(std::span<const at::Tensor> tensors);
  TreeSpec spec() const;

  std::vector<std::unique_ptr<CacheLayer>> layers;
  // So many of the layers, at the end, are of an encoder's states for cross-attention; the rest are before them. Their
  // tensors are "self_attention_cache.layers.0.keys", ..., "cross_attention_cache.layers.0.keys", ...
  size_t cross_layers = 0;
};

}  // namespace transporters
