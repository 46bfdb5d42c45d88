#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/index.h"
#include "transporters/checkpoint/rope_parameters.h"
#include "transporters/error.h"

namespace transporters::fuzz {
namespace {

constexpr std::array<uint64_t, 11> kHeaderSizes = {
    0, 1, 7, 8, 100'000'000, 100'000'001, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};

std::string with_length(const std::string& header, uint64_t length, const std::string& data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return bytes + header + data;
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  size_t nbytes;
};

std::string safetensors(const std::vector<Entry>& entries, bool metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (metadata) header["__metadata__"] = {{"format", "pt"}, {"ü", "模型"}};
  size_t offset = 0;
  for (const Entry& entry : entries) {
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {offset, offset + entry.nbytes}}};
    offset += entry.nbytes;
  }
  std::string data(offset, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i);
  const std::string text = header.dump();
  return with_length(text, text.size(), data);
}

std::vector<std::string> safetensors_seeds() {
  return {
      safetensors({{"w", "F32", {2, 3}, 24}, {"b", "BF16", {3}, 6}, {"mask", "BOOL", {1}, 1}}, true),
      safetensors({{"empty", "I64", {0, 4}, 0}, {"scalar", "F64", {}, 8}, {"odd", "U8", {5}, 5}, {"x", "I32", {2}, 8}},
                  false),
      safetensors({}, true)};
}

// The header is damaged as JSON, and its length follows; or anything is.
std::string mutate_safetensors(const std::string& bytes, Random& random) {
  if (random.one_in(4)) return mutate_bytes(bytes, bytes, random);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  std::string header = bytes.substr(8, length), data = bytes.substr(8 + length);
  if (!random.one_in(8)) header = mutate_json(header, random);
  if (random.one_in(8)) data = mutate_bytes(data, bytes, random);
  const uint64_t claimed = random.one_in(8) ? random.pick(kHeaderSizes) : header.size();
  return with_length(header, claimed, data);
}

void touch_all(const SafetensorsFile& file) {
  for (const std::string& name : file.names()) {
    const TensorData tensor = file.get(name);
    if (tensor.numel() < 0) throw InternalError("a tensor of " + std::to_string(tensor.numel()) + " elements");
    touch(tensor.data, tensor.nbytes());
  }
}

class Safetensors final : public Target {
 public:
  Safetensors() : Target("safetensors") {}
  std::vector<Files> seeds() override {
    std::vector<Files> seeds;
    for (std::string& bytes : safetensors_seeds()) seeds.push_back({{"x.safetensors", std::move(bytes)}});
    return seeds;
  }
  Files mutate(const Files& seed, Random& random) const override {
    return {{"x.safetensors", mutate_safetensors(seed.at("x.safetensors"), random)}};
  }
  void read(const Files&, const std::filesystem::path& folder) const override {
    touch_all(SafetensorsFile::open((folder / "x.safetensors").string()));
  }
};

// A checkpoint of two shards.
class Index final : public Target {
 public:
  Index() : Target("index") {}
  std::vector<Files> seeds() override {
    const nlohmann::ordered_json index = {{"metadata", {{"total_size", 40}}},
                                          {"weight_map",
                                           {{"a.weight", "model-00001-of-00002.safetensors"},
                                            {"a.bias", "model-00001-of-00002.safetensors"},
                                            {"b.weight", "model-00002-of-00002.safetensors"}}}};
    return {{{kIndex, index.dump(2)},
             {"model-00001-of-00002.safetensors",
              safetensors({{"a.weight", "F32", {2, 2}, 16}, {"a.bias", "F16", {2}, 4}}, true)},
             {"model-00002-of-00002.safetensors", safetensors({{"b.weight", "I64", {2}, 16}}, false)}}};
  }
  Files mutate(const Files& seed, Random& random) const override {
    Files files = seed;
    for (auto& [name, bytes] : files) {
      if (name == kIndex && !random.one_in(4)) bytes = mutate_json(bytes, random);
      if (name != kIndex && random.one_in(4)) bytes = mutate_safetensors(bytes, random);
    }
    return files;
  }
  void read(const Files&, const std::filesystem::path& folder) const override {
    const Checkpoint checkpoint = Checkpoint::open(folder.string());
    for (const std::string& name : checkpoint.names()) {
      const TensorData tensor = checkpoint.get(name);
      touch(tensor.data, tensor.nbytes());
    }
  }

 private:
  static constexpr const char* kIndex = "model.safetensors.index.json";
};

// config.json and generation_config.json: every getter on every key.
class ConfigFile final : public Target {
 public:
  ConfigFile() : Target("config") {}
  std::vector<Files> seeds() override {
    return {{{"", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16",
 "vocab_size": 99, "hidden_size": 32, "rms_norm_eps": 1e-06, "head_dim": null, "tie_word_embeddings": false,
 "max_position_embeddings": 64, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
 "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}})"}},
            {{"", R"({"model_type": "gemma3_text", "torch_dtype": "torch.float16", "id2label": {"0": "no", "1": "yes"},
 "layer_types": ["sliding_attention", "full_attention"], "image_size": [24, 16], "max_position_embeddings": 64,
 "rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "truncate": true},
 "sliding_attention": {"rope_type": "longrope", "short_factor": [1.0, 2], "long_factor": [1.5, 3], "rope_theta": 1e4}}})"}},
            {{"", R"({"_from_model_config": true, "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": null,
 "do_sample": true, "temperature": 0.6, "top_k": 50, "top_p": 0.95, "max_length": 4096, "stop_strings": ["</s>"],
 "transformers_version": "5.24.0"})"}}};
  }
  Files mutate(const Files& seed, Random& random) const override { return {{"", mutate_json(seed.at(""), random)}}; }
  void read(const Files& input, const std::filesystem::path&) const override {
    const Config config = Config::parse(input.at(""), "config.json");
    read_all(config, 0);
    for (const char* layer_type : {"full_attention", "sliding_attention"}) {
      try {
        rope_parameters(config, 10000.0, layer_type);
      } catch (const Error&) {
      }
    }
  }

 private:
  // Each getter refuses or gives a value, whatever is there.
  static void read_all(const Config& config, int depth) {
    const auto attempt = [](auto f) {
      try {
        f();
      } catch (const Error&) {
      }
    };
    attempt([&] { config.model_type(); });
    attempt([&] { config.architectures(); });
    attempt([&] { config.dtype(); });
    attempt([&] { config.num_labels(); });
    for (const std::string& key : config.keys()) {
      attempt([&] { config.integer(key); });
      attempt([&] { config.positive(key, 1); });
      attempt([&] { config.positive_pair(key, 1); });
      attempt([&] { config.real(key); });
      attempt([&] { config.boolean(key, true); });
      attempt([&] { config.string(key); });
      attempt([&] { config.strings(key); });
      attempt([&] { config.reals(key); });
      if (depth < 8) attempt([&] { read_all(config.object(key), depth + 1); });
    }
  }
};

}  // namespace

TensorData tensor(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  TensorData data;
  data.dtype = dtype;
  data.sizes = sizes;
  data.strides = contiguous_strides(sizes);
  const auto bytes = std::make_shared<std::vector<char>>(data.nbytes() + 1);
  std::iota(bytes->begin(), bytes->end(), '\0');
  data.data = bytes->data();
  data.owner = bytes;
  return data;
}

void touch(const void* data, size_t size) {
  const auto* bytes = static_cast<const volatile unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) (void)bytes[i];
}

std::vector<std::unique_ptr<Target>> checkpoint_targets() {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(std::make_unique<Safetensors>());
  targets.push_back(std::make_unique<Index>());
  targets.push_back(std::make_unique<ConfigFile>());
  return targets;
}

}  // namespace transporters::fuzz
