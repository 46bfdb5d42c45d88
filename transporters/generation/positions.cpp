#include "transporters/generation/positions.h"

#include <string_view>

namespace transporters {
namespace {

struct Row {
  std::string_view model_type;
  const char* key;
  int64_t size;                      // without the key
  const char* other_name = nullptr;  // of the key
  bool after_padding = false;        // whether positions begin behind that of pad_token_id
};

constexpr const char* kLongest = "max_position_embeddings";

constexpr Row kRows[] = {
    {"bart", kLongest, 1024},
    {"bert", kLongest, 512},
    {"bert-generation", kLongest, 512},
    {"big_bird", kLongest, 4096},
    {"bigbird_pegasus", kLongest, 4096},
    {"biogpt", kLongest, 1024},
    {"blenderbot", kLongest, 128},
    {"blenderbot-small", kLongest, 512},
    {"camembert", kLongest, 512, nullptr, true},
    {"codegen", "n_positions", 2048, kLongest},
    {"ctrl", "n_positions", 256, kLongest},
    {"data2vec-text", kLongest, 512, nullptr, true},
    {"electra", kLongest, 512},
    {"git", kLongest, 1024},
    {"gpt2", "n_positions", 1024, kLongest},
    {"gpt_bigcode", "n_positions", 1024, kLongest},
    {"gpt_neo", kLongest, 2048},
    {"gptj", "n_positions", 2048, kLongest},
    {"led", "max_decoder_position_embeddings", 1024},
    {"marian", kLongest, 1024},
    {"mbart", kLongest, 1024},
    {"megatron-bert", kLongest, 512},
    {"mvp", kLongest, 1024},
    {"openai-gpt", "n_positions", 512, kLongest},
    {"opt", kLongest, 2048},
    {"pegasus", kLongest, 1024},
    {"plbart", kLongest, 1024},
    {"rembert", kLongest, 512},
    {"roberta", kLongest, 512, nullptr, true},
    {"roberta-prelayernorm", kLongest, 512, nullptr, true},
    {"roc_bert", kLongest, 512},
    {"trocr", kLongest, 512},
    {"whisper", "max_target_positions", 448},
    {"xlm-roberta", kLongest, 512, nullptr, true},
    {"xlm-roberta-xl", kLongest, 514, nullptr, true},
};

PositionTable table_of(const Config& config, const Row& row) {
  const bool has_other = row.other_name != nullptr && config.has(row.other_name) && !config.has(row.key);
  const char* key = has_other ? row.other_name : row.key;
  const int64_t size = config.integer(key, row.size);
  const int64_t padding = row.after_padding ? config.integer_or_none("pad_token_id").value_or(1) + 1 : 0;
  return {key, size, size - padding};
}

}  // namespace

std::optional<PositionTable> decoder_positions(const Config& config) {
  std::vector<Config> parts{config};
  for (const char* name : {"decoder", "text_config"})
    if (config.is_object(name)) parts.push_back(config.object(name));
  for (const Config& part : parts)
    for (const Row& row : kRows)
      if (part.string("model_type", "") == row.model_type) return table_of(part, row);
  return std::nullopt;
}

void limit_to_positions(SearchStart& start, const PositionTable& table) {
  start.limit(table.longest, /*with_last=*/false, "positions_full",
              "'" + table.key + "' of the model is " + std::to_string(table.size) + ": give a shorter prompt");
}

}  // namespace transporters
