// What generation begins with.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transporters/generation/settings.h"

namespace transporters {

struct Prompt {
  // Token ids of each row, of any length: what an encoder of text reads, or what the new tokens follow. Rows may be
  // missing where an encoder reads something else.
  std::vector<TokenIds> ids;
  // More inputs by name, with all rows: "pixel_values", "input_features".
  std::map<std::string, at::Tensor> inputs = {};
};

// Rows as one batch [rows, longest], padded on the left, where new tokens follow them, or on the right; and the mask, 0
// for padding. The padding is the row's first token, which is in the vocabulary for sure. Throws Error for no rows and
// for an empty one.
std::pair<at::Tensor, at::Tensor> padded_batch(const std::vector<TokenIds>& rows, bool left);

// The mask of `length` tokens, [rows, length]: those after the ones that `mask` tells of are no padding.
at::Tensor extended_mask(const at::Tensor& mask, int64_t length);

// Throws Error for one of prompt.inputs that is not among `known` (what a model or its graphs read), that generation
// makes itself, or that has no elements.
void check_prompt_inputs(const Prompt& prompt, const std::vector<std::string>& known);

// Throws Error for an id that is none of a vocabulary of that size; nullopt is a size that is not known.
void check_vocabulary(const Prompt& prompt, std::optional<int64_t> vocab_size);

}  // namespace transporters
