#include "transporters/models/pretrained_model.h"

#include <algorithm>

#include "transporters/error.h"

namespace transporters {

void PreTrainedModel::check_inputs(const ModelInputs& inputs) const {
  std::vector<std::string> known;
  for (const auto& input : this->inputs()) known.push_back(input.name);
  if (encoder() != nullptr) known.push_back("encoder_outputs");
  if (empty_cache()) known.push_back("cache");
  for (const auto& name : inputs.names()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const auto& other : known) list += (list.empty() ? "" : ", ") + other;
    throw Error(architecture_ + " has no input '" + name + "'" + did_you_mean(name, known) + "; it takes " + list);
  }
  const auto table = position_table();
  const bool has_positions = inputs.find("position_ids") != nullptr || inputs.find("decoder_position_ids") != nullptr;
  if (table && !has_positions) check_length(inputs, *table);
}

void PreTrainedModel::check_length(const ModelInputs& inputs, const PositionTable& table) const {
  c10::SymInt past = 0;
  if (const Cache* cache = inputs.cache(); cache != nullptr && !cache->layers.empty()) {
    if (cache->is_static()) return;  // has room for so many
    past = cache->layers[0]->length();
  }
  for (const InputInfo& input : this->inputs()) {
    if (!input.name.ends_with("input_ids") && !input.name.ends_with("inputs_embeds")) continue;
    const at::Tensor tensor = inputs.tensor(input.name);
    const auto axis = std::find(input.axes.begin(), input.axes.end(), "sequence") - input.axes.begin();
    if (!tensor.defined() || axis >= tensor.dim()) continue;
    const auto length = tensor.sym_size(axis).maybe_as_int(), before = past.maybe_as_int();
    if (!length || !before || *length + *before <= table.longest) continue;
    throw Error({.stage = "inputs", .op = "", .module = "", .file = config().file()},
                "'" + input.name + "' has " + std::to_string(*length) + " tokens" +
                    (*before > 0 ? " after " + std::to_string(*before) + " in the cache" : "") + ", but '" + table.key +
                    "' is " + std::to_string(table.size) + ": " + architecture_ + " has positions for at most " +
                    std::to_string(table.longest) + "; take shorter samples");
  }
}

std::optional<Cache> PreTrainedModel::start_cache(const ModelInputs& inputs) const {
  if (const Cache* given = inputs.cache()) {
    const size_t expected = empty_cache().value().layers.size();
    if (given->layers.size() != expected)
      throw Error("'cache': expected " + std::to_string(expected) + " layers, got " +
                  std::to_string(given->layers.size()));
    return *given;
  }
  return inputs.use_cache.value_or(config().boolean("use_cache", true)) ? empty_cache() : std::nullopt;
}

at::Tensor PreTrainedModel::generation_positions(const at::Tensor& mask, int64_t count,
                                                 const ModelInputs& /*first*/) const {
  const auto positions = at::clamp_min(mask.cumsum(-1) - 1, 0);
  return positions.narrow(1, positions.size(1) - count, count).contiguous();
}

at::Tensor PreTrainedModel::embed(const at::Tensor& /*ids*/) const {
  throw Error(architecture_ + " has no embeddings of token ids");
}

at::Tensor attention_mask(const ModelInputs& inputs, bool sliding) {
  const TensorDict* masks = inputs.dict("attention_mask");
  if (masks == nullptr) return inputs.tensor("attention_mask");
  const char* kind = sliding ? kSlidingMask : kFullMask;
  const at::Tensor mask = masks->find(kind);
  if (!mask.defined()) throw Error("'attention_mask': expected an entry '" + std::string(kind) + "', there is none");
  return mask;
}

void check_ids_or_embeds(const ModelInputs& inputs) {
  const bool ids = inputs.tensor("input_ids").defined();
  const bool embeds = inputs.tensor("inputs_embeds").defined();
  if (ids == embeds)
    throw Error(std::string("expected exactly one of input_ids and inputs_embeds, got ") + (ids ? "both" : "neither"));
}

at::Tensor example_ids(int64_t batch, int64_t sequence, int64_t vocab_size, std::optional<int64_t> pad) {
  const auto count = at::arange(batch * sequence, at::kLong).view({batch, sequence});
  auto ids = at::remainder(count * 7 + 3, vocab_size);
  if (pad && vocab_size > 1) ids = at::where(ids.eq(*pad), at::remainder(ids + 1, vocab_size), ids);
  return ids;
}

at::Tensor default_position_ids(const c10::SymInt& length, const c10::SymInt& past) {
  const auto range = at::arange(length, at::kLong).unsqueeze(0);
  return past.maybe_as_int() == 0 ? range : range + past;
}

at::Tensor last_tokens(const at::Tensor& hidden, int64_t count) {
  return count == 0 ? hidden : hidden.slice(1, -count);
}

at::Tensor last_token_logits(const at::Tensor& logits, const at::Tensor& input_ids, const Config& config) {
  const auto pad = config.integer_or_none("pad_token_id");
  if (!pad && logits.sym_size(0).maybe_as_int().value_or(1) != 1)
    config.fail("pad_token_id", "is missing: without it the rows of a batch can't be told from their padding");
  if (!pad || !input_ids.defined()) return logits.select(1, -1);
  const auto positions = at::arange(input_ids.sym_size(1), at::kInt);
  const auto last = (positions * input_ids.ne(*pad).to(at::kInt)).argmax(-1);
  return at::index(logits, {at::arange(logits.sym_size(0), at::kLong), last});
}

ModelOutput question_answering_output(const at::Tensor& logits) {
  ModelOutput output("QuestionAnsweringModelOutput");
  output.set("start_logits", logits.select(-1, 0).contiguous());
  output.set("end_logits", logits.select(-1, 1).contiguous());
  return output;
}

}  // namespace transporters
