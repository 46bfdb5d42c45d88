#include "transporters/generation/search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "transporters/error.h"
#include "transporters/generation/logits_processors.h"

namespace transporters {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool contains(const TokenIds& ids, int64_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

std::vector<TokenIds> rows_of(const at::Tensor& ids) {
  std::vector<TokenIds> rows;
  const at::Tensor whole = ids.to(at::kLong).contiguous();
  for (int64_t row = 0; row < whole.size(0); ++row) {
    const auto* first = whole.data_ptr<int64_t>() + row * whole.size(1);
    rows.emplace_back(first, first + whole.size(1));
  }
  return rows;
}

// What both searches have in common: how long they go on, and counting.
class Search {
 public:
  Search(DecodingSession& session, const SearchStart& start, const GenerationSettings& settings,
         const GenerateOptions& options)
      : session_(session),
        start_(start),
        settings_(settings),
        options_(options),
        most_(std::max<int64_t>(std::min(options.max_new_tokens, start.room.value_or(options.max_new_tokens)), 0)),
        processors_(settings, start.ids.size(1), options.max_new_tokens) {
    for (const TokenIds& row : rows_of(start.mask))
      padding_.push_back(std::find_if(row.begin(), row.end(), [](int64_t value) { return value != 0; }) - row.begin());
  }

 protected:
  // [rows, vocabulary] in float32, in memory of its own.
  at::Tensor run(const at::Tensor& ids) {
    at::Tensor logits = session_.step(ids).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
    if (logits.isnan().any().item<bool>())
      throw Error({.stage = "generation"}, "the logits of call " + std::to_string(runs_ + 1) +
                                               " of the model are NaN; look for NaN in the inputs and the weights, or "
                                               "take a wider --dtype");
    const bool is_first = runs_++ == 0;
    if (is_first) result_.prefill_seconds = seconds_since(start_.clock);
    if (!is_first || !start_.has_prefill) ++result_.steps;
    return logits;
  }

  // Why a search ends that has made as many tokens as it may.
  std::string length_ends() const { return most_ < options_.max_new_tokens ? start_.room_ends : "max_new_tokens"; }

  GenerateResult finish(const std::string& stopped) {
    result_.stopped = stopped;
    result_.decode_seconds = runs_ == 0 ? 0 : seconds_since(start_.clock) - result_.prefill_seconds;
    return std::move(result_);
  }

  DecodingSession& session_;
  const SearchStart& start_;
  const GenerationSettings& settings_;
  const GenerateOptions& options_;
  int64_t most_;  // new tokens
  LogitsProcessors processors_;
  std::vector<int64_t> padding_;
  GenerateResult result_;

 private:
  int64_t runs_ = 0;
};

class GreedySearch : Search {
 public:
  using Search::Search;

  GenerateResult run_all() {
    std::vector<TokenIds> sequences = rows_of(start_.ids);
    const size_t rows = sequences.size();
    result_.tokens.resize(rows);
    std::vector<bool> ended(rows);
    at::Tensor ids = start_.ids;
    for (int64_t count = 0; count < most_; ++count) {
      at::Tensor scores = run(ids);
      processors_.apply(scores, sequences, padding_);
      const at::Tensor next = scores.argmax(-1);
      TokenIds tokens;
      for (size_t row = 0; row < rows; ++row) {
        tokens.push_back(ended[row] ? result_.tokens[row].back() : next[static_cast<int64_t>(row)].item<int64_t>());
        sequences[row].push_back(tokens.back());
        if (ended[row]) continue;
        result_.tokens[row].push_back(tokens.back());
        ended[row] = contains(settings_.eos_token_ids, tokens.back());
      }
      if (options_.on_tokens) options_.on_tokens(tokens);
      if (std::find(ended.begin(), ended.end(), false) == ended.end()) return finish("eos");
      ids = at::tensor(tokens, at::kLong).unsqueeze(1);
    }
    return finish(length_ends());
  }
};

struct Beam {
  float score = 0;  // sum of log-probabilities; of ended ones divided by their length to the power of the penalty
  TokenIds tokens;  // new ones
};

// The beams of one prompt.
struct Beams {
  std::vector<Beam> open;
  std::vector<Beam> ended;  // best first, num_beams at most
  bool can_improve = true;  // whether an open beam may still become better than the ended ones
};

constexpr float kWorst = -1e9f;

// A beam with one more token.
struct Candidate {
  float score;
  int64_t beam;
  int64_t token;
};

class BeamSearch : Search {
 public:
  BeamSearch(DecodingSession& session, const SearchStart& start, const GenerationSettings& settings,
             const GenerateOptions& options)
      : Search(session, start, settings, options), beams_(settings.num_beams) {}

  GenerateResult run_all() {
    const std::vector<TokenIds> prompts = rows_of(start_.ids);
    const auto rows = static_cast<int64_t>(prompts.size());
    std::vector<Beams> all(prompts.size(), Beams{.open = {Beam{}}});
    for (int64_t length = 1; length <= most_; ++length) {
      at::Tensor scores = at::log_softmax(run(length == 1 ? start_.ids : last_tokens(all)), -1);
      process(scores, prompts, all);
      std::vector<int64_t> sources;
      bool all_end = true;
      for (int64_t row = 0; row < rows; ++row) {
        Beams& beams = all[static_cast<size_t>(row)];
        const auto open = static_cast<int64_t>(beams.open.size());
        const auto candidates = best(scores.narrow(0, row * open, open), beams.open);
        all_end &= std::all_of(candidates.begin(), candidates.end(),
                               [&](const Candidate& one) { return ends(one.token, length); });
        for (const int64_t source : advance(beams, candidates, length)) sources.push_back(row * open + source);
      }
      const bool open_left = std::any_of(all.begin(), all.end(), [](const Beams& beams) { return beams.can_improve; });
      const bool all_full = std::all_of(all.begin(), all.end(), [&](const Beams& beams) { return is_full(beams); });
      const bool is_done = !open_left || (all_full && settings_.early_stopping == EarlyStopping::Yes);
      if (is_done || all_end) break;
      session_.reorder(at::tensor(sources, at::kLong));
    }
    for (const Beams& beams : all)
      result_.tokens.push_back(beams.ended.empty() ? TokenIds() : beams.ended.front().tokens);
    const bool every_row_ended =
        most_ > 0 && std::all_of(result_.tokens.begin(), result_.tokens.end(), [&](const TokenIds& tokens) {
          return !tokens.empty() && contains(settings_.eos_token_ids, tokens.back());
        });
    return finish(every_row_ended ? "eos" : length_ends());
  }

 private:
  bool is_full(const Beams& beams) const { return static_cast<int64_t>(beams.ended.size()) == beams_; }
  bool ends(int64_t token, int64_t length) const { return length == most_ || contains(settings_.eos_token_ids, token); }

  void process(at::Tensor& scores, const std::vector<TokenIds>& prompts, const std::vector<Beams>& all) const {
    std::vector<TokenIds> sequences;
    std::vector<int64_t> padding;
    for (size_t row = 0; row < prompts.size(); ++row)
      for (const Beam& beam : all[row].open) {
        sequences.push_back(prompts[row]);
        sequences.back().insert(sequences.back().end(), beam.tokens.begin(), beam.tokens.end());
        padding.push_back(padding_[row]);
      }
    processors_.apply(scores, sequences, padding);
  }

  at::Tensor last_tokens(const std::vector<Beams>& all) const {
    TokenIds tokens;
    for (const Beams& beams : all)
      for (const Beam& beam : beams.open) tokens.push_back(beam.tokens.back());
    return at::tensor(tokens, at::kLong).unsqueeze(1);
  }

  // So many candidates that num_beams are left when every token that ends a sequence is among them.
  std::vector<Candidate> best(const at::Tensor& scores, const std::vector<Beam>& open) const {
    const int64_t vocabulary = scores.size(1);
    std::vector<float> before;
    for (const Beam& beam : open) before.push_back(beam.score);
    const at::Tensor sums = (scores + at::tensor(before, at::kFloat).unsqueeze(1)).flatten();
    const auto wanted = std::max<int64_t>(2, 1 + static_cast<int64_t>(settings_.eos_token_ids.size())) * beams_;
    const auto [values, places] = sums.topk(std::min(wanted, sums.numel()));
    std::vector<Candidate> candidates;
    for (int64_t i = 0; i < values.numel(); ++i) {
      const int64_t place = places[i].item<int64_t>();
      candidates.push_back({values[i].item<float>(), place / vocabulary, place % vocabulary});
    }
    return candidates;
  }

  // Replaces the open beams by the best candidates that go on, and keeps those that end. Returns which beams the new
  // ones continue.
  std::vector<int64_t> advance(Beams& beams, const std::vector<Candidate>& candidates, int64_t length) const {
    const auto extended = [&](const Candidate& one) {
      TokenIds tokens = beams.open[static_cast<size_t>(one.beam)].tokens;
      tokens.push_back(one.token);
      return Beam{one.score, std::move(tokens)};
    };
    std::vector<Beam> open;
    std::vector<int64_t> sources;
    const bool takes_ended = beams.can_improve && !(is_full(beams) && settings_.early_stopping == EarlyStopping::Yes);
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& one = candidates[i];
      if (!ends(one.token, length)) {
        if (static_cast<int64_t>(open.size()) == beams_) continue;
        open.push_back(extended(one));
        sources.push_back(one.beam);
      } else if (takes_ended && static_cast<int64_t>(i) < beams_ && std::isfinite(one.score)) {
        Beam beam = extended(one);
        beam.score /= penalty(length);
        const auto worse = [](const Beam& a, const Beam& b) { return a.score > b.score; };
        beams.ended.insert(std::upper_bound(beams.ended.begin(), beams.ended.end(), beam, worse), std::move(beam));
        if (static_cast<int64_t>(beams.ended.size()) > beams_) beams.ended.pop_back();
      }
    }
    // Where nothing goes on (the length ends it, or a vocabulary smaller than the beams), places are filled with beams
    // that no other is worse than.
    if (open.empty()) {
      open.push_back(beams.open.front());
      sources.push_back(0);
    }
    while (static_cast<int64_t>(open.size()) < beams_) {
      open.push_back(open.front());
      open.back().score = kWorst;
      sources.push_back(sources.front());
    }
    beams.open = std::move(open);
    if (is_full(beams)) {
      const bool looks_ahead = settings_.early_stopping == EarlyStopping::Never && settings_.length_penalty > 0;
      const float hoped = beams.open.front().score / penalty(looks_ahead ? options_.max_new_tokens : length);
      beams.can_improve = beams.can_improve && hoped > beams.ended.back().score;
    }
    return sources;
  }

  float penalty(int64_t length) const {
    return static_cast<float>(std::pow(static_cast<double>(length), settings_.length_penalty));
  }

  int64_t beams_;
};

}  // namespace

void SearchStart::limit(int64_t length, bool with_last, const std::string& ends, const std::string& advice) {
  const int64_t count = ids.size(1);
  if (count > length)
    throw Error({.stage = "generation"}, "the prompt has " + std::to_string(count) + " tokens, and there is room for " +
                                             std::to_string(length) + "; " + advice);
  const int64_t more = length - count + (with_last ? 0 : 1);
  if (room && *room <= more) return;
  room = more;
  room_ends = ends;
}

GenerationSettings overridden(GenerationSettings settings, const GenerateOptions& options) {
  if (options.eos_token_ids) {
    settings.eos_token_ids = *options.eos_token_ids;
    settings.check_in_vocabulary("eos_token_id", settings.eos_token_ids, "");
  }
  if (options.num_beams) settings.num_beams = *options.num_beams;
  if (options.length_penalty) settings.length_penalty = *options.length_penalty;
  if (options.early_stopping) settings.early_stopping = *options.early_stopping;
  settings.check("");
  return settings;
}

GenerateResult search(DecodingSession& session, const SearchStart& start, const GenerationSettings& settings,
                      const GenerateOptions& options) {
  return settings.num_beams > 1 ? BeamSearch(session, start, settings, options).run_all()
                                : GreedySearch(session, start, settings, options).run_all();
}

}  // namespace transporters
