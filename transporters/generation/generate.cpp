#include "transporters/generation/generate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "transporters/error.h"
#include "transporters/export/metadata.h"
#include "transporters/generation/cache_layout.h"
#include "transporters/generation/positions.h"
#include "transporters/generation/stage.h"
#include "transporters/models/grids.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
namespace fs = std::filesystem;

constexpr const char* kStageName = "generation";
const std::string kCache = "cache.";

}  // namespace

struct Generator::State : DecodingSession {
  std::string folder;
  std::map<std::string, std::unique_ptr<Stage>> stages;
  CacheLayout layout;  // of all stages
  GenerationSettings settings;
  std::optional<Config> config;

  // Of the call that runs.
  Tensors given;  // what the prompt has besides ids
  Tensors cache;
  Tensors encoded;  // outputs of the encoder
  at::Tensor encoder_ids, encoder_mask;
  at::Tensor first_ids, first_mask;  // of the first call
  at::Tensor prompt_rows;            // the prompt's row that each row goes on from; undefined: as they are
  at::Tensor mask;                   // of all tokens so far, [batch, tokens]
  at::Tensor ids;                    // those to run next, [batch, count]
  int64_t past = 0;                  // tokens in the cache

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

  // What images and videos of the prompt say of its tokens.
  GridTokens grid_tokens() const {
    if (!config) fail("expected a config.json here, which says what the tokens of images are; export the model again");
    return GridTokens(*config);
  }

  // Positions in time, height and width follow from the grids of the prompt's images.
  at::Tensor grid_position_ids() const {
    const at::Tensor positions =
        grid_tokens().positions_of_call(extended_mask(first_mask, mask.size(1)), ids.size(1), first_inputs());
    return prompt_rows.defined() ? positions.index_select(-2, prompt_rows) : positions;
  }

  // Only the prompt has tokens of images.
  at::Tensor token_types() const {
    if (past > 0) return at::zeros_like(ids);
    const auto found = given.find("mm_token_type_ids");
    return found == given.end() ? grid_tokens().types(ids) : found->second;
  }

  at::Tensor position_ids(const StageInput& input) const {
    if (input.sizes.size() == 3) return grid_position_ids();
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
    if (name == "position_ids" || name == "decoder_position_ids") return position_ids(input);
    if (name == "mm_token_type_ids") return token_types();
    if (name == "cache_position") return at::arange(past, past + ids.size(1), at::kLong);
    if (is_of("encoder_outputs")) {
      const auto found = encoded.find(name.substr(std::string("encoder_outputs.").size()));
      if (found != encoded.end()) return found->second;
    }
    if (const auto found = given.find(name); found != given.end()) return found->second;
    fail("the graph has an input '" + name + "', which the prompt has not; give it besides the token ids");
  }

  at::Tensor fill_encoder(const StageInput& input) const {
    if (const auto found = given.find(input.name); found != given.end()) return found->second;
    if (input.name == "input_ids" && encoder_ids.defined()) return encoder_ids;
    if (input.name == "attention_mask" && encoder_mask.defined()) return encoder_mask;
    fail("the encoder has an input '" + input.name + "', which the prompt has not; give it besides the token ids");
  }

  // The tensor in the type that the graph takes. Throws Error for another kind of type and for sizes that are fixed.
  at::Tensor fitting(const StageInput& input, const at::Tensor& tensor) const {
    std::string expected;
    bool fits = static_cast<size_t>(tensor.dim()) == input.sizes.size();
    for (size_t axis = 0; axis < input.sizes.size(); ++axis) {
      const auto size = input.sizes[axis];
      expected += (axis > 0 ? ", " : "") + (size ? std::to_string(*size) : "any");
      fits = fits && (!size || *size == tensor.size(static_cast<int64_t>(axis)));
    }
    const bool casts = tensor.is_floating_point() && c10::isFloatingType(input.dtype);
    fits = fits && (casts || tensor.scalar_type() == input.dtype);
    if (fits) return tensor.to(input.dtype);
    std::string got;
    for (const int64_t size : tensor.sizes()) got += (got.empty() ? "" : ", ") + std::to_string(size);
    fail("'" + input.name + "': the graph takes " + dtype_name(input.dtype) + " [" + expected + "], got " +
         dtype_name(tensor.scalar_type()) + " [" + got + "]" +
         (has_fixed_sizes() ? "; export it with --dynamic for other sizes" : ""));
  }

  // Whether the export is for prompts of one length.
  bool has_fixed_sizes() const {
    for (const auto& [name, stage] : stages)
      for (const StageInput& input : stage->inputs())
        if (!input.name.starts_with(kCache) &&
            std::find(input.sizes.begin(), input.sizes.end(), std::nullopt) != input.sizes.end())
          return false;
    return true;
  }

  // Runs the next stage, keeps its cache and returns the last logits, [rows, vocabulary].
  at::Tensor step(const at::Tensor& tokens) override {
    Stage* prefill = find("prefill");
    Stage& stage = past == 0 && prefill != nullptr ? *prefill : *find("decode");
    ids = tokens;
    mask = extended_mask(mask, past + ids.size(1));
    Tensors inputs;
    for (const StageInput& input : stage.inputs()) inputs.emplace(input.name, fitting(input, fill(input)));
    Tensors outputs = stage.run(inputs);
    // What went in and does not come out was written in place.
    for (auto& [name, tensor] : inputs)
      if (name.starts_with(kCache)) cache[name] = tensor;
    for (auto& [name, tensor] : outputs)
      if (name.starts_with(kCache)) cache[name] = std::move(tensor);
    past += ids.size(1);
    const auto logits = outputs.find("logits");
    if (logits == outputs.end()) fail("the graph gives no 'logits'");
    return logits->second.select(1, -1);
  }

  void reorder(const at::Tensor& rows) override {
    const int64_t before = mask.size(0);
    prompt_rows = prompt_rows.defined() ? prompt_rows.index_select(0, rows) : rows;
    const auto reordered = [&](at::Tensor& tensor) {
      if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == before) tensor = tensor.index_select(0, rows);
    };
    for (auto& [name, tensor] : cache) reordered(tensor);
    for (auto& [name, tensor] : encoded) reordered(tensor);
    reordered(encoder_mask);
    reordered(mask);
  }

  void load(const fs::path& path, const GeneratorOptions& options) {
    folder = path.string();
    std::ifstream file(path / "export.json", std::ios::binary);
    if (!file)
      fail(std::string(fs::is_directory(path) ? "this folder holds no export.json" : "there is no such folder") +
           "; give the --out of an export made with --generation, or a checkpoint folder");
    const auto [format, entries] = parse_manifest({std::istreambuf_iterator<char>(file), {}});
    const bool has_prefill = std::any_of(entries.begin(), entries.end(),
                                         [](const ManifestEntry& entry) { return entry.component == "prefill"; });
    for (const ManifestEntry& entry : entries) {
      const bool is_known = entry.component == "prefill" || entry.component == "decode" || entry.component == "encoder";
      if (!is_known && has_prefill) continue;  // a part of the model that is in "prefill" too
      if (!is_known)
        fail("component '" + entry.component +
             "' is not one of prefill, decode and encoder: only exports whose prompt one " + "graph reads can be run");
      if (format == ExportFormat::Dynamo)
        stages[entry.component] = open_pt2_stage(path / entry.file, model_in_file(entries, entry));
      else if (format == ExportFormat::Onnx)
        stages[entry.component] = open_onnx_stage(path / entry.file, options.onnxruntime, options.threads);
      else
        fail("this build runs dynamo and onnx exports, not '" + std::string(to_string(format)) + "'");
      for (auto& [name, layer] : CacheLayout::read(entry.metadata.in_spec).layers)
        layout.layers.insert_or_assign(name, layer);
    }
    if (find("decode") == nullptr) fail("the export has no component 'decode'; export it with --generation");
    settings = GenerationSettings::from_folder(path);
    if (fs::exists(path / "config.json")) config = Config::from_folder(folder);
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    // The encoder first: where it reads no ids, the prompt has a mask of its own.
    for (const char* stage : {"encoder", "prefill", "decode"})
      if (const Stage* found = find(stage); found != nullptr)
        for (const StageInput& input : found->inputs()) names.push_back(input.name);
    return names;
  }

  // Whether a graph that reads the prompt can be told what of it is padding.
  bool takes_mask() const {
    const Stage* reader = has_encoder() ? find("encoder") : find("prefill");
    const auto& inputs = (reader != nullptr ? reader : find("decode"))->inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const StageInput& input) { return input.name.starts_with("attention_mask"); });
  }

  bool encoder_reads_ids() const {
    const auto& inputs = find("encoder")->inputs();
    return std::any_of(inputs.begin(), inputs.end(), [](const StageInput& input) { return input.name == "input_ids"; });
  }

  void start(const Prompt& prompt) {
    check_vocabulary(prompt, settings.vocab_size);
    check_prompt_inputs(prompt, input_names());
    const auto is_other = [&](const TokenIds& row) { return row.size() != prompt.ids.front().size(); };
    const bool has_padding = std::any_of(prompt.ids.begin(), prompt.ids.end(), is_other);
    given = prompt.inputs;
    cache.clear();
    encoded.clear();
    encoder_ids = encoder_mask = at::Tensor();
    past = 0;
    const bool is_decoder_prompt = has_encoder() && !encoder_reads_ids();
    if (has_padding && is_decoder_prompt)
      fail("the decoder's prompts have several lengths; give prompts of one length");
    if (has_padding && !takes_mask())
      fail(
          "the prompts have several lengths, and the graphs take no attention_mask to tell padding by; give prompts of "
          "one "
          "length, or export with an attention_mask among the inputs");
    const bool reads_ids = has_encoder() && encoder_reads_ids();
    if (!has_encoder() || reads_ids || !prompt.ids.empty()) std::tie(ids, mask) = padded_batch(prompt.ids, !reads_ids);
    if (has_encoder()) encode(reads_ids, prompt.ids.empty());
    first_ids = ids;
    first_mask = mask;
    prompt_rows = at::Tensor();
    if (config) check_images(*config, first_inputs());
  }

  // What the prompt has besides its mask.
  ModelInputs first_inputs() const {
    ModelInputs first{{"input_ids", first_ids}};
    for (const auto& [name, tensor] : given) first.set(name, tensor);
    return first;
  }

  // Runs the encoder and sets what the decoder begins with: ids where the encoder reads something else, or its first
  // token.
  void encode(bool reads_ids, bool has_no_ids) {
    if (reads_ids) {
      encoder_ids = ids;
      encoder_mask = mask;
    }
    Tensors inputs;
    for (const StageInput& input : find("encoder")->inputs())
      inputs.emplace(input.name, fitting(input, fill_encoder(input)));
    encoded = find("encoder")->run(inputs);
    if (encoded.empty()) fail("the encoder gives nothing");
    const int64_t rows = encoded.begin()->second.size(0);
    if (!reads_ids && !has_no_ids) {
      if (ids.size(0) != rows)
        fail("expected ids of " + std::to_string(rows) + " rows, as what the encoder reads has, got " +
             std::to_string(ids.size(0)));
      return;
    }
    if (!settings.decoder_start_token_id) fail("generation_config.json names no decoder_start_token_id");
    ids = at::full({rows, 1}, *settings.decoder_start_token_id, at::kLong);
    mask = at::ones_like(ids);
  }
};

Generator::Generator(const fs::path& folder, const GeneratorOptions& options) : state_(std::make_unique<State>()) {
  state_->load(folder, options);
}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

const std::map<std::string, at::Tensor>& Generator::cache() const { return state_->cache; }

SearchStart Generator::start(const Prompt& prompt) {
  const at::NoGradGuard no_grad;
  State& s = *state_;
  const auto clock = std::chrono::steady_clock::now();
  s.start(prompt);
  SearchStart start{.ids = s.ids, .mask = s.mask, .has_prefill = s.find("prefill") != nullptr, .clock = clock};
  if (const auto table = s.config ? decoder_positions(*s.config) : std::nullopt) limit_to_positions(start, *table);
  if (const auto capacity = s.layout.capacity())
    start.limit(*capacity, /*with_last=*/true, "cache_full", "export it with a longer --static-cache");
  return start;
}

DecodingSession& Generator::session() { return *state_; }
bool Generator::takes_padding() const { return state_->takes_mask(); }

GenerateResult Generator::generate(const Prompt& prompt, const GenerateOptions& options) {
  const at::NoGradGuard no_grad;
  const GenerationSettings settings = overridden(state_->settings, options);
  return search(*state_, start(prompt), settings, options);
}

}  // namespace transporters
