#include "transporters/generation/generate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "transporters/error.h"
#include "transporters/export/metadata.h"

namespace transporters {
namespace {

using Json = nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;
namespace fs = std::filesystem;

constexpr const char* kStageName = "generation";
const std::string kCache = "cache.";

Json read_json(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Json::object();
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error({.stage = kStageName, .file = file.string()}, "expected a JSON object; write the file again");
  return json;
}

// A number or a list of them.
TokenIds token_ids(const Json& json) {
  if (json.is_number_integer()) return {json.get<int64_t>()};
  TokenIds ids;
  if (json.is_array())
    for (const Json& id : json)
      if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  return ids;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Prompts as one batch, padded on the left, where new tokens follow them, or on the right. The mask hides what stands
// there: the prompt's first token, which is in the vocabulary for sure.
std::pair<at::Tensor, at::Tensor> padded(const std::vector<TokenIds>& prompts, bool left) {
  size_t longest = 0;
  for (const TokenIds& prompt : prompts) {
    if (prompt.empty()) throw Error(ErrorContext{.stage = kStageName}, "expected prompts of one token at least, got none");
    longest = std::max(longest, prompt.size());
  }
  if (longest == 0) throw Error(ErrorContext{.stage = kStageName}, "expected one prompt at least, got none");
  const auto rows = static_cast<int64_t>(prompts.size()), columns = static_cast<int64_t>(longest);
  at::Tensor ids = at::empty({rows, columns}, at::kLong);
  at::Tensor mask = at::zeros({rows, columns}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const TokenIds& prompt = prompts[static_cast<size_t>(row)];
    const auto count = static_cast<int64_t>(prompt.size());
    const int64_t first = left ? columns - count : 0;
    ids[row].fill_(prompt.front());
    ids[row].narrow(0, first, count).copy_(at::tensor(prompt, at::kLong));
    mask[row].narrow(0, first, count).fill_(1);
  }
  return {ids, mask};
}

}  // namespace

struct Generator::State {
  std::string folder;
  std::map<std::string, std::unique_ptr<Stage>> stages;
  CacheLayout layout;  // of all stages
  TokenIds eos;
  std::optional<int64_t> decoder_start;

  // Of the call that runs.
  Tensors cache;
  Tensors encoded;          // outputs of the encoder
  at::Tensor encoder_ids, encoder_mask;
  at::Tensor mask;          // of all tokens so far, [batch, tokens]
  at::Tensor ids;           // those to run next, [batch, count]
  int64_t past = 0;         // tokens in the cache

  [[noreturn]] void fail(const std::string& message) const {
    throw Error({.stage = kStageName, .file = folder}, message);
  }

  Stage* find(const std::string& name) const {
    const auto found = stages.find(name);
    return found == stages.end() ? nullptr : found->second.get();
  }

  bool has_encoder() const { return find("encoder") != nullptr; }

  // A cache entry that no stage has made yet: that of an empty cache.
  at::Tensor empty_entry(const StageInput& input) const {
    const CacheLayout::Layer* layer = layout.of_leaf(input.name);
    const std::string leaf = input.name.substr(input.name.rfind('.') + 1);
    if (leaf == "_sliding_window_tensor" && layer != nullptr)
      return at::scalar_tensor(layer->number("sliding_window"), input.dtype);
    std::vector<int64_t> sizes;
    for (size_t axis = 0; axis < input.sizes.size(); ++axis) {
      if (input.sizes[axis]) {
        sizes.push_back(*input.sizes[axis]);
      } else if (axis == 0) {
        sizes.push_back(ids.size(0));
      } else if (axis == 2 && layer != nullptr) {
        sizes.push_back(layer->number("max_cache_len"));  // none: a cache that grows
      } else {
        fail("'" + input.name + "' dim " + std::to_string(axis) +
             ": its size in an empty cache is not known; export it with that axis fixed");
      }
    }
    return at::zeros(sizes, input.dtype);
  }

  // [batch, 1, query, keys] for the new tokens: true or 0 where attention is allowed, false or the lowest number
  // elsewhere.
  at::Tensor ready_mask(const StageInput& input, bool sliding) const {
    const int64_t count = ids.size(1), total = past + count;
    const auto size = layout.buffer_size(sliding);
    if (!size) fail("'" + input.name + "' is a ready mask, but the cache has no layers of fixed size for it");
    int64_t keys = *size, offset = 0;
    if (sliding) {
      // As transformers' StaticSlidingWindowLayer counts.
      offset = std::max<int64_t>(past - *size + 1, 0);
      if (past >= *size)
        keys = *size + count - 1;
      else if (total > *size)
        keys = total;
    }
    const auto key = at::arange(offset, offset + keys, at::kLong).unsqueeze(0);
    const auto query = at::arange(past, total, at::kLong).unsqueeze(1);
    auto visible = key.le(query);
    if (sliding) visible = visible.logical_and(key.gt(query - *size));
    auto padding = mask.to(at::kBool);
    if (total < offset + keys) padding = at::constant_pad_nd(padding, {0, offset + keys - total}, 0);
    padding = padding.slice(1, offset, offset + keys).unsqueeze(1).unsqueeze(2);
    const auto ready = visible.unsqueeze(0).unsqueeze(0).logical_and(padding).contiguous();
    if (input.dtype == at::kBool) return ready;
    const double lowest = input.dtype == at::kHalf ? -65504.0 : std::numeric_limits<float>::lowest();
    return at::zeros(ready.sizes(), input.dtype).masked_fill_(ready.logical_not(), lowest);
  }

  at::Tensor attention_mask(const StageInput& input, const std::string& prefix) const {
    if (input.sizes.size() == 2) return mask;
    const std::string kind = input.name.size() > prefix.size() ? input.name.substr(prefix.size() + 1) : "";
    if (!kind.empty() && kind != "full_attention" && kind != "sliding_attention")
      fail("'" + input.name + "': masks of this kind are not known; known are full_attention and sliding_attention");
    return ready_mask(input, kind.empty() ? !layout.buffer_size(false) : kind == "sliding_attention");
  }

  at::Tensor position_ids() const {
    const auto positions = at::clamp_min(mask.cumsum(-1) - 1, 0);
    return positions.slice(1, past).contiguous();
  }

  at::Tensor fill(const StageInput& input) const {
    const std::string& name = input.name;
    const auto is_of = [&](const char* owner) { return name == owner || name.starts_with(owner + std::string(".")); };
    if (name.starts_with(kCache)) {
      const auto found = cache.find(name);
      return found == cache.end() ? empty_entry(input) : found->second;
    }
    if (name == "decoder_input_ids" || (name == "input_ids" && !has_encoder())) return ids;
    if (is_of("decoder_attention_mask")) return attention_mask(input, "decoder_attention_mask");
    if (name == "attention_mask" && has_encoder()) return encoder_mask;
    if (is_of("attention_mask")) return attention_mask(input, "attention_mask");
    if (name == "position_ids" || name == "decoder_position_ids") return position_ids();
    if (name == "cache_position") return at::arange(past, past + ids.size(1), at::kLong);
    if (is_of("encoder_outputs")) {
      const auto found = encoded.find(name.substr(std::string("encoder_outputs.").size()));
      if (found != encoded.end()) return found->second;
    }
    fail("the graph has an input '" + name + "', and generation from token ids does not know what to give it");
  }

  at::Tensor fill_encoder(const StageInput& input) const {
    if (input.name == "input_ids") return encoder_ids;
    if (input.name == "attention_mask") return encoder_mask;
    fail("the encoder has an input '" + input.name + "', and generation from token ids does not know what to give it");
  }

  // Runs a stage on `ids`, keeps its cache and returns the next token of each row, [batch].
  at::Tensor step(Stage& stage) {
    Tensors inputs;
    for (const StageInput& input : stage.inputs()) inputs.emplace(input.name, fill(input));
    Tensors outputs = stage.run(inputs);
    // What went in and does not come out was written in place.
    for (auto& [name, tensor] : inputs)
      if (name.starts_with(kCache)) cache[name] = tensor;
    for (auto& [name, tensor] : outputs)
      if (name.starts_with(kCache)) cache[name] = std::move(tensor);
    past += ids.size(1);
    const auto logits = outputs.find("logits");
    if (logits == outputs.end()) fail("the graph gives no 'logits'");
    return logits->second.select(1, -1).argmax(-1);
  }

  void add(const at::Tensor& tokens) {
    ids = tokens.unsqueeze(1);
    mask = at::cat({mask, at::ones({mask.size(0), 1}, at::kLong)}, 1);
  }

  void load(const fs::path& path, const GeneratorOptions& options) {
    folder = path.string();
    std::ifstream file(path / "export.json", std::ios::binary);
    if (!file) fail("this folder holds no export.json; give the --out of an export made with --generation");
    const auto [format, entries] = parse_manifest({std::istreambuf_iterator<char>(file), {}});
    for (const ManifestEntry& entry : entries) {
      const auto same_file = [&](const ManifestEntry& other) { return other.file == entry.file; };
      const bool is_shared = std::count_if(entries.begin(), entries.end(), same_file) > 1;
      if (entry.component != "prefill" && entry.component != "decode" && entry.component != "encoder")
        fail("component '" + entry.component + "' is not one of prefill, decode and encoder: only models that generate " +
             "from token ids can be run");
      if (format == ExportFormat::Dynamo)
        stages[entry.component] = open_pt2_stage(path / entry.file, is_shared ? entry.component : "");
      else if (format == ExportFormat::Onnx)
        stages[entry.component] = open_onnx_stage(path / entry.file, options.onnxruntime, options.threads);
      else
        fail("this build runs dynamo and onnx exports, not '" + std::string(to_string(format)) + "'");
      for (auto& [name, layer] : CacheLayout::read(entry.metadata.in_spec).layers)
        layout.layers.insert_or_assign(name, layer);
    }
    if (find("decode") == nullptr) fail("the export has no component 'decode'; export it with --generation");
    const Json config = read_json(path / "config.json"), generation = read_json(path / "generation_config.json");
    const auto setting = [&](const char* key) {
      const TokenIds ids = token_ids(generation.value(key, Json()));
      return ids.empty() ? token_ids(config.value(key, Json())) : ids;
    };
    eos = setting("eos_token_id");
    if (const TokenIds ids = setting("decoder_start_token_id"); !ids.empty()) decoder_start = ids.front();
  }

  // Whether a graph that reads the prompt can be told what of it is padding.
  bool takes_mask() const {
    const Stage* reader = has_encoder() ? find("encoder") : find("prefill");
    const auto& inputs = (reader != nullptr ? reader : find("decode"))->inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const StageInput& input) { return input.name.starts_with("attention_mask"); });
  }

  void start(const std::vector<TokenIds>& prompts) {
    const auto is_other = [&](const TokenIds& prompt) { return prompt.size() != prompts.front().size(); };
    if (std::any_of(prompts.begin(), prompts.end(), is_other) && !takes_mask())
      fail("the prompts have several lengths, and the graphs take no attention_mask to tell padding by; give prompts of one "
           "length, or export with an attention_mask among the inputs");
    cache.clear();
    encoded.clear();
    past = 0;
    std::tie(ids, mask) = padded(prompts, /*left=*/!has_encoder());
    if (has_encoder()) {
      encoder_ids = ids;
      encoder_mask = mask;
      if (!decoder_start) fail("generation_config.json names no decoder_start_token_id");
      ids = at::full({ids.size(0), 1}, *decoder_start, at::kLong);
      mask = at::ones_like(ids);
      Tensors inputs;
      for (const StageInput& input : find("encoder")->inputs()) inputs.emplace(input.name, fill_encoder(input));
      encoded = find("encoder")->run(inputs);
    }
    if (const auto room = layout.capacity(); room && ids.size(1) > *room)
      fail("the prompt has " + std::to_string(ids.size(1)) + " tokens, and the cache is made for " +
           std::to_string(*room) + "; export it with a longer --static-cache");
  }
};

Generator::Generator(const fs::path& folder, const GeneratorOptions& options) : state_(std::make_unique<State>()) {
  state_->load(folder, options);
}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

const std::map<std::string, at::Tensor>& Generator::cache() const { return state_->cache; }

GenerateResult Generator::generate(const std::vector<TokenIds>& prompts, const GenerateOptions& options) {
  const at::NoGradGuard no_grad;
  State& s = *state_;
  const TokenIds eos = options.eos_token_ids.value_or(s.eos);
  GenerateResult result;
  result.tokens.resize(prompts.size());
  const auto start = std::chrono::steady_clock::now();
  s.start(prompts);
  std::vector<bool> ended(prompts.size());
  const auto room = s.layout.capacity();
  const int64_t prompt_length = s.ids.size(1);
  Stage* prefill = s.find("prefill");
  Stage& decode = *s.find("decode");
  for (int64_t count = 0;; ++count) {
    if (std::find(ended.begin(), ended.end(), false) == ended.end()) {
      result.stopped = "eos";
      break;
    }
    if (count >= options.max_new_tokens) {
      result.stopped = "max_new_tokens";
      break;
    }
    if (room && prompt_length + count >= *room) {
      result.stopped = "cache_full";
      break;
    }
    at::Tensor next = s.step(count == 0 && prefill != nullptr ? *prefill : decode);
    if (count == 0) result.prefill_seconds = seconds_since(start);
    if (count > 0 || prefill == nullptr) ++result.steps;
    TokenIds tokens;
    for (size_t row = 0; row < prompts.size(); ++row) {
      const int64_t token = ended[row] ? result.tokens[row].back() : next[static_cast<int64_t>(row)].item<int64_t>();
      tokens.push_back(token);
      if (ended[row]) continue;
      result.tokens[row].push_back(token);
      ended[row] = std::find(eos.begin(), eos.end(), token) != eos.end();
    }
    if (options.on_tokens) options.on_tokens(tokens);
    s.add(at::tensor(tokens, at::kLong));
  }
  result.decode_seconds = seconds_since(start) - result.prefill_seconds;
  return result;
}

}  // namespace transporters
