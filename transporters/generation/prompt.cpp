#include "transporters/generation/prompt.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "transporters/error.h"

namespace transporters {
namespace {

// Where the encoder reads no ids, a mask is one of what it reads.
bool is_made_here(const std::string& name, bool reads_ids) {
  for (const char* made : {"input_ids", "inputs_embeds", "position_ids", "cache_position", "encoder_outputs", "cache",
                           "past_key_values", "use_cache"})
    if (name == made || name.starts_with(std::string(made) + ".")) return true;
  return name.starts_with("decoder_") || (name.starts_with("attention_mask") && reads_ids);
}

}  // namespace

std::pair<at::Tensor, at::Tensor> padded_batch(const std::vector<TokenIds>& rows, bool left) {
  const ErrorContext stage{.stage = "generation"};
  size_t longest = 0;
  for (const TokenIds& row : rows) {
    if (row.empty()) throw Error(stage, "expected prompts of one token at least, got an empty one");
    longest = std::max(longest, row.size());
  }
  if (longest == 0) throw Error(stage, "the prompt's token ids are missing: give one row of them at least (--ids)");
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

void check_prompt_inputs(const Prompt& prompt, const std::vector<std::string>& known) {
  const ErrorContext stage{.stage = "generation"};
  const bool reads_ids = std::find(known.begin(), known.end(), "input_ids") != known.end();
  std::vector<std::string> free;
  std::string list;
  for (const std::string& name : known) {
    if (is_made_here(name, reads_ids) || std::find(free.begin(), free.end(), name) != free.end()) continue;
    free.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  }
  for (const auto& [name, tensor] : prompt.inputs) {
    if (name == "input_ids" || name == "decoder_input_ids")
      throw Error(stage, "'" + name + "': tokens of the prompt are given as ids (--ids), not among the other inputs");
    if (is_made_here(name, reads_ids)) throw Error(stage, "'" + name + "' follows from the prompt's ids; leave it out");
    if (std::find(free.begin(), free.end(), name) == free.end())
      throw Error(stage, "'" + name + "' is no input of the model" + did_you_mean(name, free) +
                             "; besides ids it takes " + (list.empty() ? "none" : list));
    if (tensor.numel() == 0) throw Error(stage, "'" + name + "': expected values, got a tensor without elements");
  }
}

void check_vocabulary(const Prompt& prompt, std::optional<int64_t> vocab_size) {
  for (const TokenIds& row : prompt.ids)
    for (const int64_t id : row)
      if (id < 0 || (vocab_size && id >= *vocab_size))
        throw Error({.stage = "generation"},
                    "token " + std::to_string(id) + " of the prompt: expected ids from 0 to " +
                        (vocab_size ? std::to_string(*vocab_size - 1) : "the vocabulary's last"));
}

}  // namespace transporters
