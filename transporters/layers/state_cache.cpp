#include "transporters/layers/state_cache.h"

#include <ATen/ATen.h>

#include "transporters/checkpoint/config.h"
#include "transporters/error.h"

namespace transporters {

at::Tensor with_zeros_before(const at::Tensor& x, int64_t width) { return at::constant_pad_nd(x, {width, 0}); }

at::Tensor StateLayer::update_convolution(const at::Tensor& x) {
  const auto all = is_empty() ? with_zeros_before(x, width_) : at::cat({convolution_, x}, 2);
  convolution_ = all.slice_symint(2, x.sym_size(2));
  return all;
}

std::pair<at::Tensor, at::Tensor> StateLayer::update(const at::Tensor&, const at::Tensor&,
                                                     const std::optional<c10::SymInt>&) {
  throw InternalError("a cache layer of states got keys and values");
}

c10::SymInt StateLayer::length() const { throw InternalError("a cache layer of states does not count tokens"); }

std::pair<c10::SymInt, c10::SymInt> StateLayer::mask_sizes(const c10::SymInt&) const {
  throw InternalError("a cache layer of states has no keys to mask");
}

std::vector<NamedTensor> StateLayer::tensors() const {
  if (is_empty()) return {};
  return {{"conv_states.0", convolution_}, {"recurrent_states.0", recurrence_}};
}

void StateLayer::set_tensors(std::span<const at::Tensor> tensors) {
  convolution_ = tensors[0];
  recurrence_ = tensors[1];
}

std::string StateLayer::state_json(size_t first_leaf) const {
  // Dictionaries by the number of a state; here there is one.
  const auto of_state = [](const std::string& value) { return R"({"_t": "items", "v": [[0, )" + value + "]]}"; };
  const auto leaf = [&](size_t i) {
    return is_empty() ? "null" : R"({"_t": "tensor", "i": )" + std::to_string(first_leaf + i) + "}";
  };
  const std::string filled = of_state(is_empty() ? "false" : "true");
  return R"({"number_of_states": 1, "conv_states": )" + of_state(leaf(0)) + R"(, "recurrent_states": )" +
         of_state(leaf(1)) + R"(, "is_conv_states_initialized": )" + filled +
         R"(, "is_recurrent_states_initialized": )" + filled + R"(, "has_previous_state": )" + filled +
         R"(, "conv_kernel_size": )" + of_state(is_empty() ? "null" : std::to_string(width_)) + R"(, "device": )" +
         (is_empty() ? "null" : R"({"_t": "device", "s": "cpu"})") + R"(, "dtype": )" +
         (is_empty() ? "null" : R"({"_t": "dtype", "n": ")" + dtype_name(convolution_.scalar_type()) + R"("})") +
         R"(, "record_past": false})";
}

}  // namespace transporters
