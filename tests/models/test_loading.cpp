// What can be wrong between config.json, the weights and the class that is asked for.
#include <doctest/doctest.h>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/models/auto.h"

namespace tp = transporters;
using tests::TemporaryFolder;

namespace {

using Tensors = std::map<std::string, at::Tensor>;

// A llama with one layer of 2 heads of 2, and 5 words.
Tensors llama_tensors(bool with_head = true) {
  Tensors tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef sizes) {
    tensors[name] = at::arange(c10::multiply_integers(sizes), at::kFloat).view(sizes) / 10;
  };
  add("model.embed_tokens.weight", {5, 4});
  const std::string layer = "model.layers.0.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(layer + "self_attn." + name + ".weight", {4, 4});
  add(layer + "mlp.gate_proj.weight", {6, 4});
  add(layer + "mlp.up_proj.weight", {6, 4});
  add(layer + "mlp.down_proj.weight", {4, 6});
  add(layer + "input_layernorm.weight", {4});
  add(layer + "post_attention_layernorm.weight", {4});
  add("model.norm.weight", {4});
  if (with_head) add("lm_head.weight", {5, 4});
  return tensors;
}

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 5,
    "hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2)";

void save(const TemporaryFolder& folder, const Tensors& tensors, const std::string& more = "") {
  folder.write("config.json", kConfig + more + "}");
  std::vector<tp::NamedTensorData> data;
  for (const auto& [name, tensor] : tensors) data.emplace_back(name, tp::to_tensor_data(tensor));
  tp::write_safetensors(folder / "model.safetensors", data);
}

std::string load_error(const TemporaryFolder& folder, const tp::LoadOptions& options = {},
                       const std::string& architecture = "") {
  try {
    tp::load_model(folder.path(), options, architecture);
  } catch (const tp::Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

std::string config_error(const std::string& more) {
  const TemporaryFolder folder;
  save(folder, llama_tensors(), more);
  return load_error(folder);
}

}  // namespace

TEST_CASE("weights are the mapped file's bytes, and tied ones are one tensor") {
  const TemporaryFolder folder;
  save(folder, llama_tensors(/*with_head=*/false), R"(, "tie_word_embeddings": true)");
  const auto model = tp::load_model(folder.path());
  const auto parameters = model->named_parameters();
  CHECK(parameters["lm_head.weight"].unsafeGetTensorImpl() ==
        parameters["model.embed_tokens.weight"].unsafeGetTensorImpl());
  const auto file = tp::SafetensorsFile::open(folder / "model.safetensors");
  for (const auto& parameter : parameters) {
    CHECK(!parameter.value().requires_grad());
    const auto data = tp::to_tensor_data(parameter.value());
    CHECK(data.file == folder / "model.safetensors");
    if (parameter.key() != "lm_head.weight") CHECK(data.file_offset == file.get(parameter.key()).file_offset);
  }
}

TEST_CASE("conversion to another type gives new memory") {
  const TemporaryFolder folder;
  save(folder, llama_tensors());
  tp::LoadOptions options;
  options.dtype = at::kBFloat16;
  const auto model = tp::load_model(folder.path(), options);
  CHECK((model->dtype() == at::kBFloat16));
  for (const auto& parameter : model->parameters()) {
    CHECK((parameter.scalar_type() == at::kBFloat16));
    CHECK(tp::to_tensor_data(parameter).file.empty());
  }
  options.dtype = at::kChar;
  CHECK(contains(load_error(folder, options), "models run in float32, float16, bfloat16 or float64, not in int8"));
}

TEST_CASE("missing, unexpected and misshapen tensors are all named") {
  const TemporaryFolder folder;
  auto tensors = llama_tensors();
  tensors["model.norm.wieght"] = tensors["model.norm.weight"];
  tensors.erase("model.norm.weight");
  tensors["model.layers.0.self_attn.q_proj.bias"] = at::zeros({4});
  tensors["lm_head.weight"] = at::zeros({7, 4});
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::zeros({1});
  save(folder, tensors);
  CHECK(
      load_error(folder) ==
      "[checkpoint] " + folder.path() +
          ": config.json and the weights disagree\n"
          "1 tensors are missing (weights are never filled at random; pick the class the checkpoint was saved from, or "
          "fine-tune the head first):\n"
          "  model.norm.weight; did you mean 'model.norm.wieght'?\n"
          "sizes or types differ from what config.json says:\n"
          "  lm_head.weight: expected [5, 4], the checkpoint has [7, 4]\n"
          "2 tensors belong to no part of the model that config.json describes:\n"
          "  model.layers.0.self_attn.q_proj.bias\n"
          "  model.norm.wieght");
}

TEST_CASE("another head's tensors are no error, and are listed") {
  const TemporaryFolder folder;
  auto tensors = llama_tensors();
  tensors["score.weight"] = at::zeros({2, 4});
  save(folder, tensors);
  CHECK(tp::load_model(folder.path())->unused_tensors() == std::vector<std::string>{"score.weight"});
  CHECK(tp::AutoModel::from_pretrained(folder.path())->unused_tensors() ==
        std::vector<std::string>{"lm_head.weight", "score.weight"});
  CHECK(tp::AutoModelForSequenceClassification::from_pretrained(folder.path())->architecture() ==
        "LlamaForSequenceClassification");
}

TEST_CASE("an untied head that is not there is not made up") {
  const TemporaryFolder folder;
  save(folder, llama_tensors(/*with_head=*/false));
  CHECK(contains(load_error(folder), "1 tensors are missing"));
  CHECK(contains(load_error(folder), "\n  lm_head.weight"));
}

TEST_CASE("classes and model types that are not here point to other ways") {
  CHECK(contains(config_error(R"(, "model_type": "lama")"),
                 "'model_type' is 'lama', which has no native model; did you mean 'llama'"));
  CHECK(contains(config_error(R"(, "model_type": "mamba2")"), "export it to .pt2 with Python's torch.export"));
  CHECK(contains(
      config_error(R"(, "architectures": ["LlamaForCausalML"])"),
      "'architectures' names 'LlamaForCausalML', which has no native model; did you mean 'LlamaForCausalLM'?"));
  const TemporaryFolder folder;
  save(folder, llama_tensors());
  // config.json is not to blame for a name that it does not have.
  CHECK(load_error(folder, {}, "LlamaForCausalML").find("'architectures'") == std::string::npos);
  CHECK(contains(load_error(folder, {}, "LlamaForCausalML"),
                 "the caller names 'LlamaForCausalML', which is no native model of the type 'llama'; did you mean "
                 "'LlamaForCausalLM'?"));
  CHECK_THROWS_WITH_AS(tp::AutoModelForMaskedLM::from_pretrained(folder.path()),
                       doctest::Contains("'model_type' is 'llama', which AutoModelForMaskedLM has no class for; it has "
                                         "LlamaModel, LlamaForCausalLM"),
                       tp::Error);
  CHECK(contains(config_error(R"(, "quantization_config": {"bits": 4})"), "quantised checkpoints can't be read"));
}

TEST_CASE("configs that make no sense") {
  CHECK(contains(config_error(R"(, "num_attention_heads": 3)"),
                 "'hidden_size' expected a multiple of num_attention_heads (3), got 4"));
  CHECK(contains(config_error(R"(, "num_attention_heads": 4, "num_key_value_heads": 3)"),
                 "'num_key_value_heads' expected a divisor of num_attention_heads (4), got 3"));
  CHECK(contains(config_error(R"(, "num_hidden_layers": 0)"),
                 "'num_hidden_layers' expected a whole number from 1 to 2147483647, got 0"));
  CHECK(contains(config_error(R"(, "vocab_size": "5")"), "'vocab_size' expected a whole number, got \"5\""));
  CHECK(contains(config_error(R"(, "hidden_act": "silo")"),
                 "'hidden_act' names an unknown activation 'silo'; did you mean 'silu'?"));
  CHECK(
      contains(config_error(R"(, "head_dim": 3)"), "'head_dim' expected an even number for rotary embeddings, got 3"));
  CHECK(contains(config_error(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [1]})"),
                 "'short_factor' expected 1 numbers (half of the rotary size), got 2"));
}

TEST_CASE("attention implementations") {
  const TemporaryFolder folder;
  save(folder, llama_tensors());
  CHECK(contains(load_error(folder, {.attention = "flash_attention_2"}),
                 "attention implementation 'flash_attention_2' needs kernels that no export target has; use 'sdpa' or "
                 "'eager'"));
  CHECK(contains(load_error(folder, {.attention = "spda"}),
                 "unknown attention implementation 'spda'; did you mean 'sdpa'?"));
}

TEST_CASE("inputs that a model can't use") {
  const TemporaryFolder folder;
  save(folder, llama_tensors());
  const auto model = tp::load_model(folder.path());
  const auto ids = tp::example_ids(2, 3, 5, std::nullopt);
  const auto error = [&](const tp::ModelInputs& inputs) -> std::string {
    try {
      model->forward(inputs);
    } catch (const tp::Error& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error({{"input_ids", ids}}) == "no error");
  CHECK(error({{"input_id", ids}}) ==
        "LlamaForCausalLM has no input 'input_id'; did you mean 'input_ids'?; it takes "
        "input_ids, attention_mask, position_ids, inputs_embeds, cache");
  CHECK(error({}) == "expected exactly one of input_ids and inputs_embeds, got neither");
  CHECK(error({{"input_ids", ids}, {"inputs_embeds", at::zeros({2, 3, 4})}}) ==
        "expected exactly one of input_ids and inputs_embeds, got both");
  CHECK(error({{"input_ids", ids}, {"attention_mask", at::ones({2, 4}, at::kLong)}}) ==
        "attention_mask: expected 3 keys (past and new tokens), got 4");
  CHECK(error({{"input_ids", ids}, {"attention_mask", at::ones({2}, at::kLong)}}) ==
        "attention_mask: expected [batch, keys] or [batch, 1, query, keys], got 1 axes");
}

TEST_CASE("inputs longer than the table of positions, also with what a cache holds") {
  const TemporaryFolder folder;
  Tensors tensors;
  for (const auto& [name, sizes] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{{"wte.weight", {5, 4}},
                                                                 {"wpe.weight", {6, 4}},
                                                                 {"h.0.ln_1.weight", {4}},
                                                                 {"h.0.ln_1.bias", {4}},
                                                                 {"h.0.attn.c_attn.weight", {4, 12}},
                                                                 {"h.0.attn.c_attn.bias", {12}},
                                                                 {"h.0.attn.c_proj.weight", {4, 4}},
                                                                 {"h.0.attn.c_proj.bias", {4}},
                                                                 {"h.0.ln_2.weight", {4}},
                                                                 {"h.0.ln_2.bias", {4}},
                                                                 {"h.0.mlp.c_fc.weight", {4, 16}},
                                                                 {"h.0.mlp.c_fc.bias", {16}},
                                                                 {"h.0.mlp.c_proj.weight", {16, 4}},
                                                                 {"h.0.mlp.c_proj.bias", {4}},
                                                                 {"ln_f.weight", {4}},
                                                                 {"ln_f.bias", {4}}})
    tensors[name] = at::ones(sizes);
  save(folder, tensors);
  folder.write("config.json", R"({"model_type": "gpt2", "vocab_size": 5, "n_embd": 4, "n_layer": 1, "n_head": 2,
                                  "n_positions": 6})");
  const auto model = tp::load_model(folder.path());
  REQUIRE(model->position_table());
  CHECK(model->position_table()->longest == 6);
  const auto ids = [](int64_t length) { return tp::example_ids(2, length, 5, std::nullopt); };
  const auto output = model->forward({{"input_ids", ids(6)}});
  CHECK_THROWS_WITH_AS(
      model->forward({{"input_ids", ids(7)}}),
      doctest::Contains("'input_ids' has 7 tokens, but 'n_positions' is 6: GPT2Model has positions for at "
                        "most 6; take shorter samples"),
      tp::Error);
  CHECK_THROWS_WITH_AS(model->forward({{"inputs_embeds", at::ones({2, 7, 4})}}),
                       doctest::Contains("'inputs_embeds' has 7 tokens"), tp::Error);
  tp::ModelInputs more{{"input_ids", ids(1)}};
  more.set("cache", *output.cache());
  CHECK_THROWS_WITH_AS(model->forward(more), doctest::Contains("'input_ids' has 1 tokens after 6 in the cache"),
                       tp::Error);
  // Positions of the caller's own are the caller's to answer for.
  CHECK_NOTHROW(model->forward({{"input_ids", ids(7)}, {"position_ids", at::zeros({1, 7}, at::kLong)}}));
}

TEST_CASE("a cache with another number of layers") {
  const TemporaryFolder folder;
  save(folder, llama_tensors());
  const auto model = tp::load_model(folder.path());
  tp::ModelInputs inputs{{"input_ids", tp::example_ids(2, 3, 5, std::nullopt)}};
  inputs.set("cache", tp::Cache::dynamic({std::nullopt, std::nullopt}));
  CHECK_THROWS_WITH_AS(model->forward(inputs), "'cache': expected 1 layers, got 2", tp::Error);
}

TEST_CASE("example inputs repeat, and avoid padding") {
  const auto ids = tp::example_ids(3, 7, 5, 3);
  CHECK(at::equal(ids, tp::example_ids(3, 7, 5, 3)));
  CHECK(ids.ne(3).all().item<bool>());
  CHECK(ids.lt(5).all().item<bool>());
}
