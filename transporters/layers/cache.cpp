#include "transporters/layers/cache.h"

#include <ATen/ATen.h>

#include "transporters/error.h"
#include "transporters/layers/static_cache.h"

namespace transporters {
namespace {

std::string tensor_reference(size_t leaf) { return R"({"_t": "tensor", "i": )" + std::to_string(leaf) + "}"; }

}  // namespace

at::Tensor CacheLayer::positions(const c10::SymInt& count) const {
  const auto range = at::arange(count, at::kLong).unsqueeze(0);
  const c10::SymInt past = length();
  return past.maybe_as_int() == 0 ? range : range + past;
}

void CacheLayer::clear() { throw InternalError("a cache layer of a decoder's own states is never cleared"); }

at::Tensor next_positions(const c10::SymInt& count, const CacheLayer* past) {
  return past == nullptr ? at::arange(count, at::kLong).unsqueeze(0) : past->positions(count);
}

std::pair<at::Tensor, at::Tensor> DynamicLayer::update(const at::Tensor& keys, const at::Tensor& values,
                                                       const std::optional<c10::SymInt>&) {
  keys_ = keys_.defined() ? at::cat({keys_, keys}, -2) : keys;
  values_ = values_.defined() ? at::cat({values_, values}, -2) : values;
  return {keys_, values_};
}

c10::SymInt DynamicLayer::length() const { return keys_.defined() ? keys_.sym_size(2) : c10::SymInt(0); }

std::pair<c10::SymInt, c10::SymInt> DynamicLayer::mask_sizes(const c10::SymInt& query_length) const {
  return {length() + query_length, 0};
}

std::vector<NamedTensor> DynamicLayer::tensors() const {
  if (!keys_.defined()) return {};
  return {{"keys", keys_}, {"values", values_}};
}

void DynamicLayer::set_tensors(std::span<const at::Tensor> tensors) {
  keys_ = tensors[0];
  values_ = tensors[1];
}

std::string DynamicLayer::state_json(size_t first_leaf) const {
  if (!keys_.defined()) return R"({"keys": null, "values": null, "is_initialized": false})";
  return R"({"keys": )" + tensor_reference(first_leaf) + R"(, "values": )" + tensor_reference(first_leaf + 1) +
         R"(, "is_initialized": true, "device": {"_t": "device", "s": "cpu"}})";
}

DynamicSlidingWindowLayer::DynamicSlidingWindowLayer(int64_t window)
    : window_(window), window_tensor_(at::scalar_tensor(window, at::kLong)) {}

std::vector<NamedTensor> DynamicSlidingWindowLayer::tensors() const {
  auto tensors = DynamicLayer::tensors();
  tensors.emplace_back("_sliding_window_tensor", window_tensor_);
  return tensors;
}

void DynamicSlidingWindowLayer::set_tensors(std::span<const at::Tensor> tensors) {
  if (tensors.size() > 1) DynamicLayer::set_tensors(tensors);
  window_tensor_ = tensors.back();
}

std::string DynamicSlidingWindowLayer::state_json(size_t first_leaf) const {
  const bool is_empty = DynamicLayer::tensors().empty();
  const std::string window = R"("sliding_window": )" + std::to_string(window_) + R"(, "cumulative_length": )" +
                             std::to_string(length().maybe_as_int().value_or(0)) + R"(, "_sliding_window_tensor": )" +
                             tensor_reference(is_empty ? first_leaf : first_leaf + 2) + R"(, "record_past": false)";
  if (is_empty) return R"({"keys": null, "values": null, "is_initialized": false, )" + window + "}";
  return R"({"keys": )" + tensor_reference(first_leaf) + R"(, "values": )" + tensor_reference(first_leaf + 1) +
         R"(, "is_initialized": true, )" + window + R"(, "device": {"_t": "device", "s": "cpu"}})";
}

Cache::Cache(const Cache& other) : cross_layers(other.cross_layers) {
  for (const auto& layer : other.layers) layers.push_back(layer->clone());
}

Cache& Cache::operator=(const Cache& other) {
  if (this != &other) *this = Cache(other);
  return *this;
}

Cache Cache::dynamic(const std::vector<std::optional<int64_t>>& windows) {
  Cache cache;
  for (const auto& window : windows) {
    if (window) {
      cache.layers.push_back(std::make_unique<DynamicSlidingWindowLayer>(*window));
    } else {
      cache.layers.push_back(std::make_unique<DynamicLayer>());
    }
  }
  return cache;
}

Cache Cache::fixed(const std::vector<std::optional<int64_t>>& windows, int64_t batch, int64_t heads, int64_t max_length,
                   int64_t head_dim, at::ScalarType dtype) {
  Cache cache;
  for (const auto& window : windows) {
    if (window) {
      cache.layers.push_back(
          std::make_unique<StaticSlidingWindowLayer>(batch, heads, max_length, *window, head_dim, dtype));
    } else {
      cache.layers.push_back(std::make_unique<StaticLayer>(batch, heads, max_length, head_dim, dtype));
    }
  }
  return cache;
}

void Cache::add_cross_layers(size_t count, int64_t batch, int64_t heads, int64_t length, int64_t head_dim) {
  const bool fixed = is_static();
  for (size_t i = 0; i < count; ++i) {
    if (fixed)
      layers.push_back(std::make_unique<StaticCrossLayer>(batch, heads, length, head_dim));
    else
      layers.push_back(std::make_unique<DynamicLayer>());
  }
  cross_layers += count;
}

void Cache::drop_cross_layers_of(const Cache& given) {
  if (given.cross_layers != cross_layers || given.layers.size() != layers.size()) return;
  const size_t own = layers.size() - cross_layers;
  for (size_t i = own; i < layers.size(); ++i) {
    const auto tensors = layers[i]->tensors(), before = given.layers[i]->tensors();
    if (!given.layers[i]->is_filled() || tensors.size() != before.size()) return;
    for (size_t j = 0; j < tensors.size(); ++j)
      if (!tensors[j].second.is_same(before[j].second)) return;
  }
  for (size_t i = own; i < layers.size(); ++i) layers[i]->clear();
}

const CacheLayer* Cache::first(bool sliding) const {
  for (size_t i = 0; i + cross_layers < layers.size(); ++i)
    if (layers[i]->is_sliding() == sliding) return layers[i].get();
  return nullptr;
}

std::vector<NamedTensor> Cache::tensors() const {
  std::vector<NamedTensor> result;
  const size_t own = layers.size() - cross_layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string part = cross_layers == 0 ? "" : i < own ? "self_attention_cache." : "cross_attention_cache.";
    for (auto& [name, tensor] : layers[i]->tensors())
      result.emplace_back(part + "layers." + std::to_string(i < own ? i : i - own) + "." + name, std::move(tensor));
  }
  return result;
}

void Cache::set_tensors(std::span<const at::Tensor> tensors) {
  for (const auto& layer : layers) {
    const size_t count = layer->tensors().size();
    if (count > tensors.size()) throw InternalError("a cache got fewer tensors than it has");
    if (count > 0) layer->set_tensors(tensors.first(count));
    tensors = tensors.subspan(count);
  }
  if (!tensors.empty()) throw InternalError("a cache got more tensors than it has");
}

namespace {

std::string object(const std::string& python_class, const std::string& state) {
  return R"({"_t": "obj", "p": ")" + python_class + R"(", "s": )" + state + "}";
}

}  // namespace

TreeSpec Cache::spec() const {
  TreeSpec spec;
  size_t leaf = 0;
  const auto list = [&](size_t from, size_t to) {
    std::string text;
    bool is_fixed = false;
    for (size_t i = from; i < to; ++i) {
      text += (i > from ? ", " : "") + object(layers[i]->python_class(), layers[i]->state_json(leaf));
      leaf += layers[i]->tensors().size();
      is_fixed |= layers[i]->is_static();
    }
    spec.type = std::string("transformers.cache_utils:") + (is_fixed ? "StaticCache" : "DynamicCache");
    return object(spec.type, R"({"layers": [)" + text + R"(], "layer_class_to_replicate": null, "offloading": false})");
  };
  const size_t own = layers.size() - cross_layers;
  spec.context = list(0, own);
  if (cross_layers > 0) {
    std::string updated;
    for (size_t i = own; i < layers.size(); ++i)
      updated += (i > own ? ", [" : "[") + std::to_string(i - own) + (layers[i]->is_filled() ? ", true]" : ", false]");
    const std::string cross = list(own, layers.size());
    spec.type = "transformers.cache_utils:EncoderDecoderCache";
    spec.context = object(spec.type, R"({"self_attention_cache": )" + spec.context + R"(, "cross_attention_cache": )" +
                                         cross + R"(, "is_updated": {"_t": "items", "v": [)" + updated + "]}}");
  }
  spec.children.assign(leaf, TreeSpec::leaf());
  return spec;
}

}  // namespace transporters
