// Recurrences along a sequence, as a fixed number of ops for every length.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace transporters {

// Of h[t] = factors[t] * h[t - 1] + additions[t] along `dim`: the products of the factors up to each step, and the
// states when the first one is 0. Those after a state h0 are states + products * h0.
//
// Steps are combined over distances of 1, 2, 4, ... (Hillis and Steele, "Data parallel algorithms", 1986). A dynamic
// length gets as many rounds as the longest sequence, kLongestRecurrence, needs; the program checks that.
std::pair<at::Tensor, at::Tensor> linear_recurrence(at::Tensor factors, at::Tensor additions, int64_t dim);

inline constexpr int64_t kLongestRecurrence = 1 << 17;

}  // namespace transporters
