#include "transporters/layers/recurrence.h"

#include <ATen/ATen.h>

#include "transporters/error.h"

namespace transporters {

std::pair<at::Tensor, at::Tensor> linear_recurrence(at::Tensor factors, at::Tensor additions, int64_t dim) {
  const c10::SymInt length = additions.sym_size(dim);
  const auto known = length.maybe_as_int();
  if (!known && !length.sym_le(kLongestRecurrence).expect_true(__FILE__, __LINE__))
    throw Error("a recurrence of dynamic length takes at most " + std::to_string(kLongestRecurrence) + " steps");
  const int64_t longest = known.value_or(kLongestRecurrence);
  const auto places = at::arange(length, at::kLong);
  for (int64_t distance = 1; distance < longest; distance *= 2) {
    const auto from = at::clamp_min(places - distance, 0);
    auto has_earlier = places.ge(distance);
    for (int64_t i = dim + 1; i < additions.dim(); ++i) has_earlier = has_earlier.unsqueeze(-1);
    const auto longer = factors * additions.index_select(dim, from) + additions;
    additions = at::where(has_earlier, longer, additions);
    factors = at::where(has_earlier, factors * factors.index_select(dim, from), factors);
  }
  return {factors, additions};
}

}  // namespace transporters
