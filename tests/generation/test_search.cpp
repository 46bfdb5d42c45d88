// Greedy and beam search over a table of logits, and what changes logits before the choice.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "transporters/error.h"
#include "transporters/generation/logits_processors.h"
#include "transporters/generation/positions.h"
#include "transporters/generation/prompt.h"
#include "transporters/generation/search.h"

using namespace transporters;

namespace {

constexpr int64_t kVocabulary = 4, kEos = 3;

// The next token depends on the last two, by a table of random logits; the state of each row is its tokens.
class TableSession : public DecodingSession {
 public:
  explicit TableSession(int64_t rows) : rows_(static_cast<size_t>(rows)) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
    table = at::randn({kVocabulary, kVocabulary, kVocabulary}, generator) * 2;
  }

  at::Tensor step(const at::Tensor& ids) override {
    ++steps;
    REQUIRE(ids.size(0) == static_cast<int64_t>(rows_.size()));
    std::vector<at::Tensor> logits;
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (int64_t i = 0; i < ids.size(1); ++i) rows_[row].push_back(ids[static_cast<int64_t>(row)][i].item<int64_t>());
      logits.push_back(of(rows_[row]));
    }
    return at::stack(logits);
  }
  void reorder(const at::Tensor& rows) override {
    std::vector<TokenIds> next;
    for (int64_t i = 0; i < rows.size(0); ++i) next.push_back(rows_[static_cast<size_t>(rows[i].item<int64_t>())]);
    rows_ = std::move(next);
  }
  at::Tensor of(const TokenIds& tokens) const { return table[tokens[tokens.size() - 2]][tokens.back()]; }

  at::Tensor table;
  int64_t steps = 0;

 private:
  std::vector<TokenIds> rows_;
};

SearchStart start_of(const at::Tensor& ids) { return {.ids = ids, .mask = at::ones_like(ids)}; }

// The best score over all continuations of up to `left` tokens.
void enumerate(const TableSession& session, const TokenIds& prompt, const TokenIds& tokens, double score, int64_t left,
               double length_penalty, std::pair<double, TokenIds>& best) {
  TokenIds all = prompt;
  all.insert(all.end(), tokens.begin(), tokens.end());
  const at::Tensor log_probs = at::log_softmax(session.of(all), -1);
  for (int64_t token = 0; token < kVocabulary; ++token) {
    TokenIds longer = tokens;
    longer.push_back(token);
    const double sum = score + log_probs[token].item<double>();
    if (token != kEos && left > 1) {
      enumerate(session, prompt, longer, sum, left - 1, length_penalty, best);
      continue;
    }
    const double final = sum / std::pow(static_cast<double>(longer.size()), length_penalty);
    if (final > best.first) best = {final, longer};
  }
}

}  // namespace

TEST_CASE("as many beams as there are sequences find the best of all") {
  for (const double length_penalty : {0.0, 1.0, 2.0}) {
    CAPTURE(length_penalty);
    const at::Tensor prompts = at::tensor({0, 1, 2, 0, 1, 1}, at::kLong).view({3, 2});
    TableSession session(3);
    GenerationSettings settings;
    settings.eos_token_ids = {kEos};
    settings.num_beams = 300;  // more than 3^5 open ones
    settings.length_penalty = length_penalty;
    settings.early_stopping = EarlyStopping::Never;
    const GenerateResult result = search(session, start_of(prompts), settings, {.max_new_tokens = 5});
    for (int64_t row = 0; row < 3; ++row) {
      std::pair<double, TokenIds> best{-1e9, {}};
      enumerate(session, {prompts[row][0].item<int64_t>(), prompts[row][1].item<int64_t>()}, {}, 0, 5, length_penalty,
                best);
      CHECK(result.tokens[static_cast<size_t>(row)] == best.second);
    }
  }
}

TEST_CASE("one beam takes the likeliest token, and ended rows wait for the others") {
  const at::Tensor prompts = at::tensor({0, 1, 2, 0}, at::kLong).view({2, 2});
  TableSession session(2);
  GenerationSettings settings;
  settings.eos_token_ids = {kEos};
  std::vector<TokenIds> steps;
  GenerateOptions options{.max_new_tokens = 12};
  options.on_tokens = [&](const TokenIds& tokens) { steps.push_back(tokens); };
  const GenerateResult result = search(session, start_of(prompts), settings, options);
  for (int64_t row = 0; row < 2; ++row) {
    TokenIds all{prompts[row][0].item<int64_t>(), prompts[row][1].item<int64_t>()}, expected;
    while (expected.size() < 12 && (expected.empty() || expected.back() != kEos)) {
      expected.push_back(session.of(all).argmax().item<int64_t>());
      all.push_back(expected.back());
    }
    CHECK(result.tokens[static_cast<size_t>(row)] == expected);
    for (size_t i = 0; i < steps.size(); ++i)
      CHECK(steps[i][static_cast<size_t>(row)] == expected[std::min(i, expected.size() - 1)]);
  }
  CHECK(session.steps == static_cast<int64_t>(steps.size()));
  CHECK(result.steps == session.steps - 1);
}

TEST_CASE("a search ends where there is no room") {
  for (const int64_t beams : {1, 3}) {
    TableSession session(1);
    GenerationSettings settings;
    settings.num_beams = beams;
    SearchStart start = start_of(at::tensor({0, 1}, at::kLong).view({1, 2}));
    start.limit(4, /*with_last=*/true, "cache_full", "");
    const GenerateResult result = search(session, start, settings, {.max_new_tokens = 5});
    CHECK(result.tokens[0].size() == 2);
    CHECK(result.stopped == "cache_full");
    TableSession other(1);
    start.limit(2, /*with_last=*/true, "cache_full", "");
    const GenerateResult none = search(other, start, settings, {.max_new_tokens = 5});
    CHECK(none.tokens == std::vector<TokenIds>{{}});
    CHECK(other.steps == 0);
  }
}

TEST_CASE("the least room counts") {
  SearchStart start = start_of(at::tensor({0, 1}, at::kLong).view({1, 2}));
  start.limit(3, /*with_last=*/false, "positions_full", "");
  CHECK(start.room == 2);  // the second is not run
  start.limit(4, /*with_last=*/true, "cache_full", "");
  CHECK(start.room_ends == "positions_full");
  start.limit(3, /*with_last=*/true, "cache_full", "");
  CHECK(start.room == 1);
  CHECK(start.room_ends == "cache_full");
  CHECK_THROWS_WITH_AS(start.limit(1, /*with_last=*/true, "cache_full", "take less"),
                       "[generation] the prompt has 2 tokens, and there is room for 1; take less", Error);
}

TEST_CASE("logits that are not numbers") {
  for (const int64_t beams : {1, 2}) {
    TableSession session(1);
    session.table.fill_(std::numeric_limits<float>::quiet_NaN());
    GenerationSettings settings;
    settings.num_beams = beams;
    const SearchStart start = start_of(at::tensor({0, 1}, at::kLong).view({1, 2}));
    CHECK_THROWS_AS(search(session, start, settings, {.max_new_tokens = 5}), Error);
  }
}

TEST_CASE("positions of decoders") {
  const auto longest = [](const std::string& text) -> std::optional<int64_t> {
    const auto table = decoder_positions(Config::parse(text, "config.json"));
    return table ? std::optional(table->longest) : std::nullopt;
  };
  CHECK(longest(R"({"model_type": "gpt2", "n_positions": 64})") == 64);
  CHECK(longest(R"({"model_type": "gpt2", "max_position_embeddings": 32})") == 32);
  CHECK(longest(R"({"model_type": "gpt2"})") == 1024);
  CHECK(longest(R"({"model_type": "roberta", "max_position_embeddings": 20, "pad_token_id": 1})") == 18);
  CHECK(longest(R"({"model_type": "both", "decoder": {"model_type": "trocr", "max_position_embeddings": 7}})") == 7);
  CHECK(!longest(R"({"model_type": "llama", "max_position_embeddings": 64})"));
}

TEST_CASE("what a prompt may have besides ids") {
  const std::vector<std::string> known{"input_ids", "attention_mask", "pixel_values", "position_ids"};
  const auto message = [&](const std::string& name, const at::Tensor& tensor,
                           const std::vector<std::string>& names) -> std::string {
    try {
      check_prompt_inputs({.ids = {}, .inputs = {{name, tensor}}}, names);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  const at::Tensor some = at::ones({1, 2});
  CHECK(message("pixel_values", some, known).empty());
  CHECK(message("pixel_values", at::ones({0, 2}), known) ==
        "'pixel_values': expected values, got a tensor without elements");
  CHECK(message("pixel_value", some, known) ==
        "'pixel_value' is no input of the model; did you mean 'pixel_values'?; besides ids it takes pixel_values");
  CHECK(message("position_ids", some, known) == "'position_ids' follows from the prompt's ids; leave it out");
  CHECK(message("attention_mask", some, known) == "'attention_mask' follows from the prompt's ids; leave it out");
  CHECK(message("cache.layers.0.keys", some, known).find("leave it out") != std::string::npos);
  CHECK(message("input_ids", some, known) ==
        "'input_ids': tokens of the prompt are given as ids (--ids), not among the other inputs");
  CHECK(message("foo", some, {"input_ids"}) == "'foo' is no input of the model; besides ids it takes none");
  // An encoder of speech has a mask of what it reads.
  CHECK(message("attention_mask", some, {"input_features", "attention_mask", "decoder_input_ids"}).empty());
}

TEST_CASE("settings that can't be") {
  TableSession session(1);
  const auto message = [](const GenerateOptions& options) -> std::string {
    try {
      overridden({}, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({.num_beams = 0}).find("'num_beams': expected 1 to 1024, got 0") != std::string::npos);
  CHECK(message({.num_beams = 2}).empty());
  CHECK(message({.length_penalty = NAN}).find("'length_penalty': expected a finite number, got nan") !=
        std::string::npos);
  const auto refused = [](const std::function<void(GenerationSettings&)>& change) -> std::string {
    GenerationSettings settings;
    settings.vocab_size = 10;
    change(settings);
    try {
      settings.check("file");
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  CHECK(refused([](auto& s) { s.min_length = -1; }) == "'min_length': expected 0 or more, got -1");
  CHECK(refused([](auto& s) { s.min_new_tokens = -1; }) == "'min_new_tokens': expected 0 or more, got -1");
  CHECK(refused([](auto& s) { s.forced_bos_token_id = 10; }) ==
        "'forced_bos_token_id': expected ids from 0 to 9, got 10");
  CHECK(refused([](auto& s) { s.forced_eos_token_ids = {-1}; }) ==
        "'forced_eos_token_id': expected ids from 0 to 9, got -1");
  CHECK(refused([](auto& s) { s.decoder_start_token_id = 11; }) ==
        "'decoder_start_token_id': expected ids from 0 to 9, got 11");
  CHECK(refused([](auto& s) {
          s.forced_bos_token_id = 4;
          s.suppress_tokens = {3, 4};
        }) == "'suppress_tokens': expected no token that is forced, got 4");
  // transformers takes these too: they never match.
  CHECK(refused([](auto& s) { s.eos_token_ids = {50256}; }).empty());
}

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<float> processed(const GenerationSettings& settings, const TokenIds& sequence, int64_t prompt_length,
                             int64_t max_new_tokens = 10, int64_t padding = 0) {
  at::Tensor scores = at::tensor({1.0f, -1.0f, 2.0f, 0.5f}).unsqueeze(0);
  LogitsProcessors(settings, prompt_length, max_new_tokens).apply(scores, {sequence}, {padding});
  const float* first = scores.data_ptr<float>();
  return {first, first + 4};
}

}  // namespace

TEST_CASE("logits processors") {
  GenerationSettings settings;
  const std::vector<float> same{1.0f, -1.0f, 2.0f, 0.5f};
  CHECK(processed(settings, {0, 1}, 2) == same);

  SUBCASE("repetition") {
    settings.repetition_penalty = 2;
    CHECK(processed(settings, {3, 3, 0, 1, 1}, 3) == std::vector<float>{0.5f, -2.0f, 2.0f, 0.25f});
    // Padding is not repeated.
    CHECK(processed(settings, {3, 3, 0, 1, 1}, 3, 10, 2) == std::vector<float>{0.5f, -2.0f, 2.0f, 0.5f});
  }
  SUBCASE("n-grams") {
    settings.no_repeat_ngram_size = 2;
    CHECK(processed(settings, {0, 1, 2, 0}, 2) == std::vector<float>{1.0f, kNever, 2.0f, 0.5f});
    CHECK(processed(settings, {0}, 1) == same);
    settings.no_repeat_ngram_size = 1;
    CHECK(processed(settings, {0, 2}, 2) == std::vector<float>{kNever, -1.0f, kNever, 0.5f});
  }
  SUBCASE("shortest lengths") {
    settings.eos_token_ids = {3, 99};
    settings.min_length = 3;
    CHECK(processed(settings, {0, 1}, 2) == std::vector<float>{1.0f, -1.0f, 2.0f, kNever});
    CHECK(processed(settings, {0, 1, 2}, 2) == same);
    settings.min_new_tokens = 2;
    CHECK(processed(settings, {0, 1, 2}, 2)[3] == kNever);
    CHECK(processed(settings, {0, 1, 2, 0}, 2) == same);
  }
  SUBCASE("first and last tokens") {
    settings.forced_bos_token_id = 1;
    settings.forced_eos_token_ids = {3};
    CHECK(processed(settings, {2}, 1) == std::vector<float>{kNever, 0.0f, kNever, kNever});
    CHECK(processed(settings, {2, 1}, 1) == same);
    CHECK(processed(settings, {2, 1, 0}, 1, 3) == std::vector<float>{kNever, kNever, kNever, 0.0f});
  }
  SUBCASE("suppressed tokens") {
    settings.suppress_tokens = {2};
    settings.begin_suppress_tokens = {0};
    CHECK(processed(settings, {2, 1}, 2) == std::vector<float>{kNever, -1.0f, kNever, 0.5f});
    CHECK(processed(settings, {2, 1, 0}, 2) == std::vector<float>{1.0f, -1.0f, kNever, 0.5f});
    // The first token after a forced one is the first that is chosen.
    settings.forced_bos_token_id = 1;
    CHECK(processed(settings, {2, 1}, 1)[0] == kNever);
  }
}

TEST_CASE("prompts as one batch") {
  const auto [ids, mask] = padded_batch({{7}, {1, 2, 3}}, /*left=*/true);
  CHECK(at::equal(ids, at::tensor({7, 7, 7, 1, 2, 3}, at::kLong).view({2, 3})));
  CHECK(at::equal(mask, at::tensor({0, 0, 1, 1, 1, 1}, at::kLong).view({2, 3})));
  CHECK(
      at::equal(padded_batch({{7}, {1, 2}}, /*left=*/false).second, at::tensor({1, 0, 1, 1}, at::kLong).view({2, 2})));
  CHECK_THROWS_AS(padded_batch({{}}, true), Error);
  CHECK_THROWS_AS(padded_batch({}, true), Error);
  CHECK_NOTHROW(check_vocabulary({.ids = {{0, 9}}}, 10));
  CHECK_THROWS_WITH_AS(check_vocabulary({.ids = {{0, 10}}}, 10),
                       "[generation] token 10 of the prompt: expected ids from 0 to 9", Error);
}
