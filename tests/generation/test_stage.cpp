// Stages write caches of fixed size in place, and layouts of caches are read from manifests.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"
#include "transporters/export/exporters.h"
#include "transporters/generation/cache_layout.h"
#include "transporters/generation/stage.h"
#include "transporters/layers/static_cache.h"

using namespace transporters;
using tests::TemporaryFolder;

namespace {

constexpr int64_t kLength = 8, kHeads = 2, kHeadDim = 4;

// One layer of fixed size: writes `states` into the cache and reads a sum over all keys, along with the cache.
ExportTarget layer_target(const std::shared_ptr<StaticLayer>& layer) {
  ExportTarget target;
  std::vector<std::string> names{"states"};
  std::vector<TreeSpec> leaves{TreeSpec::leaf()};
  target.inputs.push_back({"states", at::ones({1, kHeads, 2, kHeadDim}), {}});
  for (const auto& [name, tensor] : layer->tensors()) {
    target.inputs.push_back({"cache_" + name, tensor, {}});
    names.push_back("cache_" + name);
    leaves.push_back(TreeSpec::leaf());
  }
  target.forward = [layer](const std::vector<at::Tensor>& inputs) {
    auto copy = layer->clone();
    copy->set_tensors(std::span(inputs).subspan(1));
    const auto [keys, values] = copy->update(inputs[0], inputs[0] * 2);
    TraceResult result;
    result.outputs.push_back({"sum", (keys + values).sum(2)});
    for (const auto& [name, tensor] : copy->tensors()) result.outputs.push_back({"cache_" + name, tensor});
    std::vector<std::string> names;
    for (const auto& output : result.outputs) names.push_back(output.path);
    result.spec = TreeSpec::dict(names, std::vector<TreeSpec>(names.size(), TreeSpec::leaf()));
    return result;
  };
  target.in_spec = TreeSpec::tuple({TreeSpec::tuple({}), TreeSpec::dict(names, std::move(leaves))});
  return target;
}

using Tensors = std::map<std::string, at::Tensor>;

Tensors empty_inputs(const StaticLayer& layer) {
  Tensors inputs;
  for (const auto& [name, tensor] : layer.tensors()) inputs.emplace("cache_" + name, tensor.clone());
  return inputs;
}

// Runs ten tokens through a stage, two at a time, and compares with the layer itself.
void check_steps(Stage& stage, const StaticLayer& layer, bool in_place) {
  Tensors cache = empty_inputs(layer);
  const auto expected = layer.clone();
  {
    std::vector<at::Tensor> own;
    for (const auto& [name, tensor] : layer.tensors()) own.push_back(tensor.clone());
    expected->set_tensors(own);
  }
  const void* keys = cache.at("cache_keys").data_ptr();
  const void* values = cache.at("cache_values").data_ptr();
  for (int64_t step = 0; step < 4; ++step) {
    const auto states = at::full({1, kHeads, 2, kHeadDim}, static_cast<double>(step + 1));
    Tensors inputs = cache;
    inputs["states"] = states;
    Tensors outputs = stage.run(inputs);
    const auto [all_keys, all_values] = expected->update(states, states * 2);
    CHECK(at::allclose(outputs.at("sum"), (all_keys + all_values).sum(2)));
    for (auto& [name, tensor] : outputs)
      if (cache.contains(name)) cache[name] = tensor;
    for (const auto& [name, tensor] : expected->tensors()) CHECK(at::equal(cache.at("cache_" + name), tensor));
    if (!in_place) continue;
    CHECK(cache.at("cache_keys").data_ptr() == keys);
    CHECK(cache.at("cache_values").data_ptr() == values);
  }
}

}  // namespace

TEST_CASE("a cache of fixed size is written in place, in .pt2 and in ONNX") {
  const TemporaryFolder folder;
  const auto layer = std::make_shared<StaticLayer>(1, kHeads, kLength, kHeadDim, at::kFloat);
  const ExportTarget target = layer_target(layer);
  DynamoExporter().run(target, {.dynamic = true}).save(folder / "layer.pt2");
  OnnxExporter().run(target, {.dynamic = true}).save(folder / "layer.onnx");
  check_steps(*open_pt2_stage(folder / "layer.pt2"), *layer, true);
  check_steps(*open_onnx_stage(folder / "layer.onnx"), *layer, true);
}

TEST_CASE("a sliding cache of fixed size moves on when it is full") {
  const TemporaryFolder folder;
  const auto layer = std::make_shared<StaticSlidingWindowLayer>(1, kHeads, kLength, 3, kHeadDim, at::kFloat);
  const ExportTarget target = layer_target(layer);
  DynamoExporter().run(target, {}).save(folder / "layer.pt2");
  OnnxExporter().run(target, {}).save(folder / "layer.onnx");
  check_steps(*open_pt2_stage(folder / "layer.pt2"), *layer, false);
  check_steps(*open_onnx_stage(folder / "layer.onnx"), *layer, false);
}

TEST_CASE("a sliding layer keeps the last tokens, whatever the chunks") {
  const auto states = at::arange(7, at::kFloat).view({1, 1, 7, 1});
  for (const std::vector<int64_t>& chunks :
       {std::vector<int64_t>{7}, {1, 1, 1, 1, 1, 1, 1}, {2, 5}, {4, 3}, {3, 1, 3}}) {
    StaticSlidingWindowLayer layer(1, 1, 16, 4, 1, at::kFloat);
    int64_t seen = 0;
    for (const int64_t count : chunks) {
      const auto [length, offset] = layer.mask_sizes(count);
      const auto [keys, values] = layer.update(states.narrow(2, seen, count), states.narrow(2, seen, count), length);
      REQUIRE(keys.size(2) == length.expect_int());
      seen += count;
      // Every key that a query of this chunk may look at stands at its place.
      for (int64_t position = offset.expect_int(); position < seen; ++position)
        CHECK(keys[0][0][position - offset.expect_int()][0].item<int64_t>() == position);
    }
    const auto kept = layer.tensors()[0].second.flatten();
    CHECK(at::equal(kept, at::arange(3, 7, at::kFloat)));
    CHECK(layer.tensors()[2].second.item<int64_t>() == 7);
  }
}

TEST_CASE("updates past the end of a cache are refused") {
  StaticLayer layer(1, 1, 4, 1, at::kFloat);
  layer.update(at::ones({1, 1, 3, 1}), at::ones({1, 1, 3, 1}), std::nullopt);
  CHECK_THROWS(layer.update(at::ones({1, 1, 2, 1}), at::ones({1, 1, 2, 1}), std::nullopt));
}

TEST_CASE("a layout is read from the structure of a graph's inputs") {
  const Cache cache = Cache::fixed({std::nullopt, 4}, 2, kHeads, 16, kHeadDim, at::kFloat);
  ModelInputs inputs{{"input_ids", at::ones({2, 1}, at::kLong)}};
  inputs.set("cache", cache);
  const CacheLayout layout = CacheLayout::read(inputs.spec().dumps());
  CHECK(layout.capacity() == 16);
  CHECK(layout.buffer_size(false) == 16);
  CHECK(layout.buffer_size(true) == 4);
  REQUIRE(layout.of_leaf("cache.layers.1.keys") != nullptr);
  CHECK(layout.of_leaf("cache.layers.1.keys")->python_class == "StaticSlidingWindowLayer");
  CHECK(layout.of_leaf("cache.layers.2.keys") == nullptr);
  CHECK(!CacheLayout::read(ModelInputs{{"input_ids", at::ones({1, 1}, at::kLong)}}.spec().dumps()).capacity());
}
