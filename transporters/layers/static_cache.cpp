#include "transporters/layers/static_cache.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "transporters/error.h"

namespace transporters {

StaticLayer::StaticLayer(int64_t batch, int64_t heads, int64_t max_length, int64_t head_dim, at::ScalarType dtype)
    : keys_(at::zeros({batch, heads, max_length, head_dim}, dtype)),
      values_(at::zeros_like(keys_)),
      length_(at::scalar_tensor(0, at::kLong)),
      batch_(batch),
      heads_(heads),
      max_length_(max_length),
      head_dim_(head_dim) {}

std::pair<at::Tensor, at::Tensor> StaticLayer::update(const at::Tensor& keys, const at::Tensor& values,
                                                      const std::optional<c10::SymInt>&) {
  const auto count = keys.sym_size(2);
  const auto places = at::arange(count, at::kLong) + length_;
  length_.add_(count);
  keys_.index_copy_(2, places, keys);
  values_.index_copy_(2, places, values);
  return {keys_, values_};
}

c10::SymInt StaticLayer::length() const { return length_.item<int64_t>(); }

at::Tensor StaticLayer::positions(const c10::SymInt& count) const {
  return at::arange(count, at::kLong).unsqueeze(0) + length_;
}

std::pair<c10::SymInt, c10::SymInt> StaticLayer::mask_sizes(const c10::SymInt&) const { return {keys_.sym_size(2), 0}; }

std::vector<NamedTensor> StaticLayer::tensors() const {
  return {{"keys", keys_}, {"values", values_}, {"cumulative_length", length_}};
}

void StaticLayer::set_tensors(std::span<const at::Tensor> tensors) {
  keys_ = tensors[0];
  values_ = tensors[1];
  length_ = tensors[2];
}

namespace {

std::string tensor_json(size_t leaf) { return R"({"_t": "tensor", "i": )" + std::to_string(leaf) + "}"; }

std::string number_json(const char* name, int64_t value) {
  return ", \"" + std::string(name) + "\": " + std::to_string(value);
}

// What a layer has once its buffers are made, after `more`.
std::string buffers_json(const std::string& more, int64_t batch, int64_t heads, int64_t head_dim) {
  return ", " + more + R"("device": {"_t": "device", "s": "cpu"})" + number_json("batch_size", batch) +
         number_json("num_heads", heads) + number_json("v_head_dim", head_dim) + number_json("k_head_dim", head_dim) +
         "}";
}

}  // namespace

std::string StaticLayer::state_json(size_t first_leaf) const {
  return R"({"keys": )" + tensor_json(first_leaf) + R"(, "values": )" + tensor_json(first_leaf + 1) +
         R"(, "is_initialized": true)" + number_json("max_cache_len", max_length_) + R"(, "cumulative_length": )" +
         tensor_json(first_leaf + 2) + buffers_json(more_state(), batch_, heads_, head_dim_);
}

StaticCrossLayer::StaticCrossLayer(int64_t batch, int64_t heads, int64_t length, int64_t head_dim)
    : length_(at::scalar_tensor(0, at::kLong)),
      batch_(batch),
      heads_(heads),
      max_length_(length),
      head_dim_(head_dim) {}

std::pair<at::Tensor, at::Tensor> StaticCrossLayer::update(const at::Tensor& keys, const at::Tensor& values,
                                                           const std::optional<c10::SymInt>&) {
  if (is_filled()) throw InternalError("an encoder's states come once");
  length_.add_(keys.sym_size(2));
  if (const auto size = keys.sym_size(2).maybe_as_int()) max_length_ = *size;
  keys_ = keys;
  values_ = values;
  return {keys_, values_};
}

std::vector<NamedTensor> StaticCrossLayer::tensors() const {
  if (!is_filled()) return {{"cumulative_length", length_}};
  return {{"keys", keys_}, {"values", values_}, {"cumulative_length", length_}};
}

std::string StaticCrossLayer::state_json(size_t first_leaf) const {
  if (!is_filled())
    return R"({"keys": null, "values": null, "is_initialized": false)" + number_json("max_cache_len", max_length_) +
           R"(, "cumulative_length": )" + tensor_json(first_leaf) + "}";
  return R"({"keys": )" + tensor_json(first_leaf) + R"(, "values": )" + tensor_json(first_leaf + 1) +
         R"(, "is_initialized": true)" + number_json("max_cache_len", max_length_) + R"(, "cumulative_length": )" +
         tensor_json(first_leaf + 2) + buffers_json("", batch_, heads_, head_dim_);
}

void StaticCrossLayer::set_tensors(std::span<const at::Tensor> tensors) {
  if (is_filled()) {
    keys_ = tensors[0];
    values_ = tensors[1];
  }
  length_ = tensors.back();
}

StaticSlidingWindowLayer::StaticSlidingWindowLayer(int64_t batch, int64_t heads, int64_t max_length, int64_t window,
                                                   int64_t head_dim, at::ScalarType dtype)
    : StaticLayer(batch, heads, std::min(max_length, window), head_dim, dtype), holds_all_(max_length <= window) {}

std::pair<at::Tensor, at::Tensor> StaticSlidingWindowLayer::update(const at::Tensor& keys, const at::Tensor& values,
                                                                   const std::optional<c10::SymInt>& visible) {
  const auto count = keys.sym_size(2);
  const auto size = keys_.sym_size(2);
  // The buffer holds the last `size` tokens, the first of them at position `start`; new ones stand behind it.
  const auto start = at::clamp_min(length_ - size, 0);
  const auto after = length_ + count;
  const auto place_of = [&](const at::Tensor& positions) {
    const auto place = at::where(positions.lt(length_), positions - start, positions - length_ + size);
    return at::clamp_max(place, size + count - 1);
  };
  const auto seen =
      place_of(at::clamp_min(length_ - (size - 1), 0) + at::arange(visible.value_or(size + count - 1), at::kLong));
  const auto kept = place_of(at::clamp_min(after - size, 0) + at::arange(size, at::kLong));
  const auto all_keys = at::cat({keys_, keys}, 2);
  const auto all_values = at::cat({values_, values}, 2);
  std::pair<at::Tensor, at::Tensor> result{all_keys.index_select(2, seen), all_values.index_select(2, seen)};
  keys_.copy_(all_keys.index_select(2, kept));
  values_.copy_(all_values.index_select(2, kept));
  length_.copy_(after);
  if (const auto number = count.maybe_as_int()) seen_ += *number;
  return result;
}

std::pair<c10::SymInt, c10::SymInt> StaticSlidingWindowLayer::mask_sizes(const c10::SymInt& query_length) const {
  // As many keys as transformers' class gives for this state.
  const int64_t past = length_.item<int64_t>();
  const c10::SymInt size = keys_.sym_size(2);
  const c10::SymInt offset = std::max<c10::SymInt>(past - size + 1, 0);
  if (past >= size) return {size + query_length - 1, offset};
  if (past + query_length > size) return {past + query_length, offset};
  return {size, offset};
}

std::string StaticSlidingWindowLayer::more_state() const {
  return R"("cumulative_length_int": )" + std::to_string(seen_) + R"(, "_is_croppable": )" +
         (holds_all_ ? "true" : "false") + ", ";
}

}  // namespace transporters
