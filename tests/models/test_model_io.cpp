#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/layers/recurrence.h"
#include "transporters/layers/state_cache.h"
#include "transporters/models/model_io.h"

namespace tp = transporters;

namespace {

tp::Cache cache_with(const std::vector<std::optional<int64_t>>& windows, int64_t length) {
  auto cache = tp::Cache::dynamic(windows);
  for (const auto& layer : cache.layers) layer->update(at::zeros({2, 1, length, 4}), at::ones({2, 1, length, 4}));
  return cache;
}

std::vector<std::string> paths(const tp::NamedValues& values) {
  std::vector<std::string> result;
  for (const auto& [path, tensor] : values.leaves()) result.push_back(path);
  return result;
}

}  // namespace

TEST_CASE("leaves of inputs, through a cache, and back") {
  tp::ModelInputs inputs{{"input_ids", at::zeros({2, 1}, at::kLong)}};
  inputs.set("cache", cache_with({std::nullopt, 4}, 3));
  CHECK(paths(inputs) == std::vector<std::string>{"input_ids", "cache.layers.0.keys", "cache.layers.0.values",
                                                  "cache.layers.1.keys", "cache.layers.1.values",
                                                  "cache.layers.1._sliding_window_tensor"});
  CHECK(inputs.spec().leaf_paths().size() == 6);
  CHECK(inputs.spec().num_leaves() == 6);
  std::vector<at::Tensor> replaced;
  for (int i = 0; i < 6; ++i) replaced.push_back(at::full({1, 1, 1, 1}, i));
  const auto before = inputs;
  inputs.set_leaves(replaced);
  for (size_t i = 0; i < 6; ++i) CHECK(inputs.leaves()[i].second.is_same(replaced[i]));
  // Copies are independent.
  CHECK(!before.leaves()[1].second.is_same(replaced[1]));
  replaced.pop_back();
  CHECK_THROWS_AS(inputs.set_leaves(replaced), tp::InternalError);
}

TEST_CASE("an update changes the cache it is made on, not the one it was copied from") {
  const auto cache = cache_with({std::nullopt}, 3);
  auto copy = cache;
  copy.layers[0]->update(at::zeros({2, 1, 2, 4}), at::zeros({2, 1, 2, 4}));
  CHECK(copy.layers[0]->length() == 5);
  CHECK(cache.layers[0]->length() == 3);
  const auto [keys, first] = copy.layers[0]->mask_sizes(2);
  CHECK(keys == 7);
  CHECK(first == 0);
}

namespace {

// A layer for tokens and one for an encoder's states.
tp::Cache with_cross_layer(bool fixed) {
  auto cache = fixed ? tp::Cache::fixed({std::nullopt}, 2, 1, 6, 4, at::kFloat) : tp::Cache::dynamic({std::nullopt});
  cache.add_cross_layers(1, 2, 1, 0, 4);
  return cache;
}

std::vector<std::string> names(const tp::Cache& cache) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : cache.tensors()) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE("an encoder's states are a layer as long as they are") {
  auto cache = with_cross_layer(/*fixed=*/true);
  tp::CacheLayer& layer = *cache.layers[1];
  CHECK(cache.first(false) == cache.layers[0].get());
  CHECK(!layer.is_filled());
  CHECK(layer.length() == 0);
  CHECK(layer.state_json(0).find(R"("is_initialized": false)") != std::string::npos);
  const at::Tensor keys = at::ones({2, 1, 5, 4}), values = at::zeros({2, 1, 5, 4});
  const auto [read_keys, read_values] = layer.update(keys, values);
  CHECK(read_keys.is_same(keys));
  CHECK(read_values.is_same(values));
  CHECK(layer.length() == 5);
  CHECK(layer.mask_sizes(1) == std::pair<c10::SymInt, c10::SymInt>(5, 0));
  CHECK(layer.tensors().back().second.item<int64_t>() == 5);
  CHECK(layer.state_json(0).find(R"("max_cache_len": 5)") != std::string::npos);
  CHECK_THROWS_AS(layer.update(keys, values), tp::InternalError);
  layer.clear();
  CHECK(!layer.is_filled());
}

TEST_CASE("a step gives back no encoder's states that it was given") {
  for (const bool fixed : {false, true}) {
    auto given = with_cross_layer(fixed);
    given.layers[0]->update(at::zeros({2, 1, 3, 4}), at::zeros({2, 1, 3, 4}));
    auto first = given;  // where they come
    first.layers[1]->update(at::ones({2, 1, 5, 4}), at::ones({2, 1, 5, 4}));
    auto result = first;
    result.drop_cross_layers_of(given);
    CHECK(result.layers[1]->is_filled());

    result = first;
    result.layers[0]->update(at::zeros({2, 1, 1, 4}), at::zeros({2, 1, 1, 4}));
    result.drop_cross_layers_of(first);
    CHECK(!result.layers[1]->is_filled());
    CHECK(first.layers[1]->is_filled());
    CHECK(names(result).front() == "self_attention_cache.layers.0.keys");

    auto others = first;
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : others.tensors()) tensors.push_back(tensor.clone());
    others.set_tensors(tensors);
    others.drop_cross_layers_of(first);
    CHECK(others.layers[1]->is_filled());
  }
}

TEST_CASE("outputs that are a tensor or have a tuple") {
  const auto alone = tp::ModelOutput::of_tensor(at::zeros({2}));
  CHECK(paths(alone) == std::vector<std::string>{"output"});
  CHECK(alone.spec().is_leaf());
  tp::ModelOutput output("BaseModelOutput");
  output.set("hidden_states", tp::TensorDict{{{"0", at::zeros({1})}, {"1", at::ones({1})}}, tp::kTuple});
  CHECK(paths(output) == std::vector<std::string>{"hidden_states.0", "hidden_states.1"});
  CHECK(output.spec().children.at(0).type == "builtins.tuple");
  CHECK(output.spec().leaf_paths() == paths(output));
}

TEST_CASE("copied inputs have memory of their own") {
  tp::ModelInputs inputs{{"input_ids", at::zeros({2, 1}, at::kLong)}};
  inputs.use_cache = true;
  const auto copy = inputs.copied();
  inputs.tensor("input_ids").fill_(1);
  CHECK(copy.tensor("input_ids").sum().item<int64_t>() == 0);
  CHECK(copy.use_cache == true);
}

TEST_CASE("a layer of states keeps the last inputs of a convolution, zeros before the first") {
  tp::Cache cache;
  cache.layers.push_back(std::make_unique<tp::StateLayer>(3));
  auto& layer = static_cast<tp::StateLayer&>(*cache.layers[0]);
  CHECK(cache.tensors().empty());
  CHECK(cache.spec().leaf_paths().empty());
  const auto row = [](std::vector<float> values) {
    return at::tensor(values).view({1, 1, static_cast<int64_t>(values.size())});
  };
  CHECK(layer.update_convolution(row({1, 2})).equal(row({0, 0, 0, 1, 2})));
  layer.set_recurrence(at::ones({1, 1, 4}));
  CHECK(cache.tensors()[0].second.equal(row({0, 1, 2})));
  const auto before = cache;
  CHECK(layer.update_convolution(row({3})).equal(row({0, 1, 2, 3})));
  CHECK(cache.tensors()[0].second.equal(row({1, 2, 3})));
  CHECK(before.tensors()[0].second.equal(row({0, 1, 2})));
  CHECK(cache.spec().leaf_paths() == std::vector<std::string>{"layers.0.conv_states.0", "layers.0.recurrent_states.0"});
  CHECK_THROWS_AS(layer.length(), tp::InternalError);
  CHECK_THROWS_AS(layer.update(row({1}), row({1})), tp::InternalError);
}

TEST_CASE("a recurrence is that of a loop, at every length") {
  at::manual_seed(0);
  for (const int64_t length : {1, 2, 3, 8, 13}) {
    const auto factors = at::rand({2, length, 3}), additions = at::randn({2, length, 3}), start = at::randn({2, 3});
    const auto [products, states] = tp::linear_recurrence(factors, additions, 1);
    auto state = start;
    for (int64_t i = 0; i < length; ++i) {
      state = factors.select(1, i) * state + additions.select(1, i);
      CHECK(at::allclose((states + products * start.unsqueeze(1)).select(1, i), state, 1e-4, 1e-5));
    }
  }
}

TEST_CASE("the spec of an output with a cache is transformers'") {
  tp::ModelOutput output("CausalLMOutputWithPast");
  output.set("logits", at::zeros({1}));
  output.set("hidden_states", at::Tensor());
  output.set("cache", cache_with({std::nullopt, 4}, 3));
  const auto spec = output.spec();
  CHECK(spec.type == "transformers.modeling_outputs.CausalLMOutputWithPast");
  CHECK(spec.context == R"(["logits", "cache"])");
  REQUIRE(spec.children.size() == 2);
  CHECK(spec.children[1].type == "transformers.cache_utils:DynamicCache");
  CHECK(spec.children[1].children.size() == 5);
  CHECK(
      spec.children[1].context ==
      R"({"_t": "obj", "p": "transformers.cache_utils:DynamicCache", "s": {"layers": [)"
      R"({"_t": "obj", "p": "transformers.cache_utils:DynamicLayer", "s": {"keys": {"_t": "tensor", "i": 0}, )"
      R"("values": {"_t": "tensor", "i": 1}, "is_initialized": true, "device": {"_t": "device", "s": "cpu"}}}, )"
      R"({"_t": "obj", "p": "transformers.cache_utils:DynamicSlidingWindowLayer", "s": {"keys": {"_t": "tensor", "i": 2}, )"
      R"("values": {"_t": "tensor", "i": 3}, "is_initialized": true, "sliding_window": 4, "cumulative_length": 3, )"
      R"("_sliding_window_tensor": {"_t": "tensor", "i": 4}, "record_past": false, )"
      R"("device": {"_t": "device", "s": "cpu"}}}], "layer_class_to_replicate": null, "offloading": false}})");
}

TEST_CASE("an empty cache as input") {
  tp::ModelInputs inputs;
  inputs.set("cache", tp::Cache::dynamic({std::nullopt, 4}));
  CHECK(paths(inputs) == std::vector<std::string>{"cache.layers.1._sliding_window_tensor"});
  CHECK(inputs.spec().children[1].children[0].context ==
        R"({"_t": "obj", "p": "transformers.cache_utils:DynamicCache", "s": {"layers": [)"
        R"({"_t": "obj", "p": "transformers.cache_utils:DynamicLayer", "s": {"keys": null, "values": null, )"
        R"("is_initialized": false}}, {"_t": "obj", "p": "transformers.cache_utils:DynamicSlidingWindowLayer", )"
        R"("s": {"keys": null, "values": null, "is_initialized": false, "sliding_window": 4, "cumulative_length": 0, )"
        R"("_sliding_window_tensor": {"_t": "tensor", "i": 0}, "record_past": false}}], )"
        R"("layer_class_to_replicate": null, "offloading": false}})");
}
