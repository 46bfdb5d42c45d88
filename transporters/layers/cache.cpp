#include "transporters/layers/cache.h"

#include <ATen/ATen.h>

#include "transporters/error.h"

namespace transporters {
namespace {

std::string tensor_reference(size_t leaf) { return R"({"_t": "tensor", "i": )" + std::to_string(leaf) + "}"; }

}  // namespace

std::pair<at::Tensor, at::Tensor> DynamicLayer::update(const at::Tensor& keys, const at::Tensor& values) {
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

Cache::Cache(const Cache& other) {
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

std::vector<NamedTensor> Cache::tensors() const {
  std::vector<NamedTensor> result;
  for (size_t i = 0; i < layers.size(); ++i)
    for (auto& [name, tensor] : layers[i]->tensors())
      result.emplace_back("layers." + std::to_string(i) + "." + name, std::move(tensor));
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

TreeSpec Cache::spec() const {
  TreeSpec spec;
  spec.type = "transformers.cache_utils:DynamicCache";
  spec.context = R"({"_t": "obj", "p": ")" + spec.type + R"(", "s": {"layers": [)";
  size_t leaf = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    spec.context += (i ? ", " : "") + (R"({"_t": "obj", "p": ")" + layers[i]->python_class() + R"(", "s": )") +
                    layers[i]->state_json(leaf) + "}";
    leaf += layers[i]->tensors().size();
  }
  spec.context += R"(], "layer_class_to_replicate": null, "offloading": false}})";
  spec.children.assign(leaf, TreeSpec::leaf());
  return spec;
}

}  // namespace transporters
