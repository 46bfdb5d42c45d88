#include "transporters/generation/prompt.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "transporters/error.h"

namespace transporters {

std::pair<at::Tensor, at::Tensor> padded_batch(const std::vector<TokenIds>& rows, bool left) {
  const ErrorContext stage{.stage = "generation"};
  size_t longest = 0;
  for (const TokenIds& row : rows) {
    if (row.empty()) throw Error(stage, "expected prompts of one token at least, got none");
    longest = std::max(longest, row.size());
  }
  if (longest == 0) throw Error(stage, "expected one prompt at least, got none");
  const auto count = static_cast<int64_t>(rows.size()), columns = static_cast<int64_t>(longest);
  at::Tensor ids = at::empty({count, columns}, at::kLong);
  at::Tensor mask = at::zeros({count, columns}, at::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const TokenIds& row = rows[static_cast<size_t>(i)];
    const auto length = static_cast<int64_t>(row.size());
    const int64_t first = left ? columns - length : 0;
    ids[i].fill_(row.front());
    ids[i].narrow(0, first, length).copy_(at::tensor(row, at::kLong));
    mask[i].narrow(0, first, length).fill_(1);
  }
  return {ids, mask};
}

at::Tensor extended_mask(const at::Tensor& mask, int64_t length) {
  const int64_t missing = length - mask.size(1);
  return missing > 0 ? at::cat({mask, at::ones({mask.size(0), missing}, mask.options())}, 1) : mask;
}

void check_vocabulary(const Prompt& prompt, std::optional<int64_t> vocab_size) {
  for (const TokenIds& row : prompt.ids)
    for (const int64_t id : row)
      if (id < 0 || (vocab_size && id >= *vocab_size))
        throw Error({.stage = "generation"}, "token " + std::to_string(id) + " of the prompt: expected ids from 0 to " +
                                                 (vocab_size ? std::to_string(*vocab_size - 1) : "the vocabulary's last"));
}

}  // namespace transporters
