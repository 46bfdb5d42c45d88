#include "transporters/generation/settings.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "transporters/checkpoint/config.h"
#include "transporters/error.h"

namespace transporters {
namespace {

// What these do when they have their neutral value (or none) is nothing.
struct Unsupported {
  const char* key;
  std::optional<double> neutral;
};
constexpr Unsupported kUnsupported[] = {
    {"guidance_scale", 1.0},
    {"encoder_repetition_penalty", 1.0},
    {"encoder_no_repeat_ngram_size", 0.0},
    {"num_beam_groups", 1.0},
    {"penalty_alpha", 0.0},
    {"dola_layers", {}},
    {"sequence_bias", {}},
    {"bad_words_ids", {}},
    {"exponential_decay_length_penalty", {}},
    {"watermarking_config", {}},
    {"constraints", {}},
    {"force_words_ids", {}},
    {"diversity_penalty", 0.0},
    {"num_return_sequences", 1.0},
    {"stop_strings", {}},
};

bool changes_tokens(const Config& config, const Unsupported& field) {
  if (!config.has(field.key)) return false;
  if (field.neutral) return config.real(field.key) != *field.neutral;
  return true;
}

EarlyStopping early_stopping(const Config& config) {
  const bool is_text = config.is_string("early_stopping");
  if (is_text && config.string("early_stopping") == "never") return EarlyStopping::Never;
  try {
    return config.boolean("early_stopping", false) ? EarlyStopping::Yes : EarlyStopping::No;
  } catch (const Error&) {
    config.fail("early_stopping", "expected true, false or \"never\"");
  }
}

GenerationSettings read(const Config& config) {
  GenerationSettings settings;
  for (const Unsupported& field : kUnsupported)
    if (changes_tokens(config, field))
      config.fail(field.key, "is set, and generation here does not know it; remove it from the file");
  settings.num_beams = config.integer("num_beams", 1);
  settings.length_penalty = config.real("length_penalty", 1.0);
  settings.early_stopping = early_stopping(config);
  settings.repetition_penalty = config.real("repetition_penalty", 1.0);
  settings.no_repeat_ngram_size = config.integer("no_repeat_ngram_size", 0);
  settings.min_length = config.integer("min_length", 0);
  settings.min_new_tokens = config.integer("min_new_tokens", 0);
  settings.forced_bos_token_id = config.integer_or_none("forced_bos_token_id");
  settings.forced_eos_token_ids = config.integers("forced_eos_token_id");
  settings.suppress_tokens = config.integers("suppress_tokens");
  settings.begin_suppress_tokens = config.integers("begin_suppress_tokens");
  return settings;
}

// generation_config.json and config.json of a folder, where they are.
struct Configs {
  explicit Configs(const std::filesystem::path& folder) : generation(Config::generation_from_folder(folder.string())) {
    if (std::filesystem::exists(folder / "config.json")) model = Config::from_folder(folder.string());
  }

  // Where an id is looked for: models of several parts have it in the part that decodes.
  std::vector<Config> places() const {
    std::vector<Config> places;
    if (generation) places.push_back(*generation);
    if (!model) return places;
    places.push_back(*model);
    for (const char* part : {"decoder", "generator", "text_config"})
      if (model->is_object(part)) places.push_back(model->object(part));
    return places;
  }

  std::optional<int64_t> integer(const std::string& key) const {
    for (const Config& place : places())
      if (const auto value = place.integer_or_none(key)) return value;
    return std::nullopt;
  }

  std::optional<Config> generation;
  std::optional<Config> model;
};

}  // namespace

void GenerationSettings::check(const std::string& file) const {
  const auto expect = [&](bool fits, const std::string& key, const std::string& expected, const auto& got) {
    if (fits) return;
    std::ostringstream text;
    text << "'" << key << "': expected " << expected << ", got " << got;
    throw Error({.stage = "generation", .file = file}, text.str());
  };
  expect(num_beams >= 1 && num_beams <= 1024, "num_beams", "1 to 1024", num_beams);
  expect(std::isfinite(length_penalty), "length_penalty", "a finite number", length_penalty);
  expect(repetition_penalty > 0 && std::isfinite(repetition_penalty), "repetition_penalty", "a number above 0",
         repetition_penalty);
  expect(no_repeat_ngram_size >= 0, "no_repeat_ngram_size", "0 or more", no_repeat_ngram_size);
  expect(min_length >= 0, "min_length", "0 or more", min_length);
  expect(min_new_tokens >= 0, "min_new_tokens", "0 or more", min_new_tokens);
  TokenIds forced = forced_eos_token_ids;
  check_in_vocabulary("forced_eos_token_id", forced, file);
  if (forced_bos_token_id) {
    check_in_vocabulary("forced_bos_token_id", {*forced_bos_token_id}, file);
    forced.push_back(*forced_bos_token_id);
  }
  if (decoder_start_token_id) check_in_vocabulary("decoder_start_token_id", {*decoder_start_token_id}, file);
  for (const int64_t id : forced)
    expect(std::find(suppress_tokens.begin(), suppress_tokens.end(), id) == suppress_tokens.end(), "suppress_tokens",
           "no token that is forced", id);
}

void GenerationSettings::check_in_vocabulary(const std::string& key, const TokenIds& ids,
                                             const std::string& file) const {
  for (const int64_t id : ids)
    if (id < 0 || (vocab_size && id >= *vocab_size))
      throw Error({.stage = "generation", .file = file},
                  "'" + key + "': expected ids from 0 to " +
                      (vocab_size ? std::to_string(*vocab_size - 1) : "the vocabulary's last") + ", got " +
                      std::to_string(id));
}

GenerationSettings GenerationSettings::from_folder(const std::filesystem::path& folder) {
  const Configs configs(folder);
  GenerationSettings settings;
  const auto& config = configs.generation ? configs.generation : configs.model;
  if (config) settings = read(*config);
  for (const Config& place : configs.places())
    if (settings.eos_token_ids.empty()) settings.eos_token_ids = place.integers("eos_token_id");
  settings.decoder_start_token_id = configs.integer("decoder_start_token_id");
  settings.vocab_size = configs.integer("vocab_size");
  if (config) settings.check(config->file());
  return settings;
}

std::optional<int64_t> decoder_start_token(const std::filesystem::path& folder) {
  const Configs configs(folder);
  GenerationSettings settings;
  settings.vocab_size = configs.integer("vocab_size");
  settings.decoder_start_token_id = configs.integer("decoder_start_token_id");
  settings.check(folder.string());
  return settings.decoder_start_token_id;
}

}  // namespace transporters
