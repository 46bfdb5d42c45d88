#include <doctest/doctest.h>

#include "transporters/error.h"
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
