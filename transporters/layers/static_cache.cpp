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

std::pair<c10::SymInt, c10::SymInt> StaticLayer::mask_sizes(const c10::SymInt&) const {
  return {keys_.sym_size(2), 0};
}

std::vector<NamedTensor> StaticLayer::tensors() const {
  return {{"keys", keys_}, {"values", values_}, {"cumulative_length", length_}};
}

void StaticLayer::set_tensors(std::span<const at::Tensor> tensors) {
  keys_ = tensors[0];
  values_ = tensors[1];
  length_ = tensors[2];
}

std::string StaticLayer::state_json(size_t first_leaf) const {
  const auto leaf = [&](size_t i) { return R"({"_t": "tensor", "i": )" + std::to_string(first_leaf + i) + "}"; };
  const auto number = [](const char* name, int64_t value) {
    return ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  return R"({"keys": )" + leaf(0) + R"(, "values": )" + leaf(1) + R"(, "is_initialized": true)" +
         number("max_cache_len", max_length_) + R"(, "cumulative_length": )" + leaf(2) + ", " + more_state() +
         R"("device": {"_t": "device", "s": "cpu"})" + number("batch_size", batch_) + number("num_heads", heads_) +
         number("v_head_dim", head_dim_) + number("k_head_dim", head_dim_) + "}";
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
  const auto seen = place_of(at::clamp_min(length_ - (size - 1), 0) +
                             at::arange(visible.value_or(size + count - 1), at::kLong));
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
