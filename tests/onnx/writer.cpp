#include "transporters/onnx/writer.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <numeric>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"
#include "transporters/onnx/reader.h"

using namespace transporters;
using onnx::Dim;
using onnx::Model;
using onnx::Tensor;
namespace fs = std::filesystem;

namespace {

TensorData floats(std::vector<int64_t> sizes, float start = 0) {
  TensorData data;
  data.sizes = std::move(sizes);
  data.strides = contiguous_strides(data.sizes);
  auto numbers = std::make_shared<std::vector<float>>(static_cast<size_t>(data.numel()));
  std::iota(numbers->begin(), numbers->end(), start);
  data.data = numbers->data();
  data.owner = numbers;
  return data;
}

// y = x * weight^T + bias, with `weight` given once more under another name.
Model linear_model(const TensorData& weight) {
  Model model;
  model.ir_version = 9;
  model.opsets[""] = 20;
  model.metadata["key"] = "value ü";
  auto& graph = *model.graph;
  auto* x = graph.add_input("x", onnx::DataType::FLOAT, onnx::Shape{Dim::named("batch"), Dim::of(weight.sizes[1])});
  auto* w = graph.add_initializer("weight", Tensor::of(weight));
  auto* tied = graph.add_initializer("tied.weight", Tensor::of(weight));
  auto* bias = graph.add_initializer("bias", Tensor::of(floats({weight.sizes[0]})));
  auto* gemm = graph.insert(nullptr, "Gemm", {x, w, bias}, {{"transB", int64_t{1}}, {"alpha", 0.5f}}, {"h"});
  gemm->name = "net.0/Gemm";
  gemm->output()->type = onnx::DataType::FLOAT;
  gemm->output()->shape = {Dim::named("batch"), Dim::of(weight.sizes[0])};
  auto* product = graph.insert(nullptr, "MatMul", {gemm->output(), tied}, {}, {"y"});
  product->output()->type = onnx::DataType::FLOAT;
  product->output()->shape = onnx::Shape{Dim::named("2*batch"), Dim{}};
  graph.add_output(product->output());
  return model;
}

}  // namespace

TEST_CASE("a model read back is the model written") {
  const Model model = linear_model(floats({4, 4}));
  const Model again = onnx::parse(onnx::serialize(model));
  CHECK(again.str() == model.str());
  CHECK(again.metadata == model.metadata);
  CHECK(again.ir_version == 9);
  CHECK(again.graph->front()->name == "net.0/Gemm");
  CHECK(again.graph->front()->output()->shape == model.graph->front()->output()->shape);
  CHECK(onnx::serialize(again) == onnx::serialize(model));
}

TEST_CASE("every kind of attribute, subgraphs and omitted names survive") {
  Model model;
  model.opsets = {{"", 20}, {"com.example", 2}};
  auto& graph = *model.graph;
  auto* x = graph.add_input("x", onnx::DataType::BOOL, onnx::Shape{});
  auto inner = std::make_shared<onnx::Graph>(&graph);
  auto* identity = inner->insert(nullptr, "Identity", {x}, {}, {"inside"});
  inner->add_output(identity->output());
  inner->outputs()[0]->type = onnx::DataType::BOOL;
  auto* node = graph.insert(nullptr, "Thing", {x, nullptr, x},
                            {{"i", int64_t{-3}},
                             {"f", 0.25f},
                             {"s", std::string("te\0xt", 5)},
                             {"t", Tensor::of(floats({2, 0}))},
                             {"g", inner},
                             {"is", std::vector<int64_t>{1, -1, int64_t{1} << 62}},
                             {"fs", std::vector<float>{1.5f}},
                             {"ss", std::vector<std::string>{"a", ""}},
                             {"ts", std::vector<Tensor>{Tensor::of(floats({3}))}},
                             {"gs", std::vector<std::shared_ptr<onnx::Graph>>{}},
                             {"none", std::vector<int64_t>{}}},
                            {"y", "", "z"});
  node->domain = "com.example";
  node->metadata["module"] = "a.b";
  graph.add_output(node->output(2));
  node->output(2)->type = onnx::DataType::INT8;
  const Model again = onnx::parse(onnx::serialize(model));
  CHECK(again.str() == model.str());
  const auto* read = again.graph->front();
  CHECK(read->string("s", "") == std::string("te\0xt", 5));
  CHECK(read->input(1) == nullptr);
  CHECK(read->output(1)->name().empty());
  CHECK(read->metadata == node->metadata);
  // The subgraph reads the outer input.
  CHECK(read->input(0)->uses().size() == 3);
}

TEST_CASE("weights go to a data file once, aligned, and come back mapped") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  const auto weight = floats({600, 600});
  onnx::save(linear_model(weight), folder / "m.onnx");
  const auto size = fs::file_size(folder / "m.onnx.data");
  CHECK(size >= weight.nbytes() + 2400);
  CHECK(size < weight.nbytes() + 2400 + 4096);
  CHECK(fs::file_size(folder / "m.onnx") < 1000);
  const Model again = onnx::load(folder / "m.onnx");
  const auto& initializers = again.graph->initializers();
  const TensorData& first = initializers[0]->initializer->data;
  CHECK(std::memcmp(first.data, weight.data, weight.nbytes()) == 0);
  CHECK(first.is_same_as(initializers[1]->initializer->data));
  CHECK(first.file == (folder / "m.onnx.data").string());
  CHECK(first.file_offset % 4096 == 0);
  CHECK(initializers[2]->initializer->data.file_offset % 64 == 0);

  SUBCASE("saving again neither appends nor leaves anything behind") {
    onnx::save(linear_model(weight), folder / "m.onnx");
    CHECK(fs::file_size(folder / "m.onnx.data") == size);
    onnx::save(linear_model(floats({16, 16})), folder / "m.onnx");
    CHECK(fs::file_size(folder / "m.onnx.data") == 16 * 16 * 4);
    onnx::save(linear_model(floats({2, 2})), folder / "m.onnx");
    CHECK_FALSE(fs::exists(folder / "m.onnx.data"));
    CHECK(std::distance(fs::directory_iterator(folder), {}) == 1);
  }
}

TEST_CASE("weights inside the model, unless it would grow past the limit") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  const Model model = linear_model(floats({600, 600}));
  onnx::SaveOptions options{.external_data = false};
  onnx::save(model, folder / "m.onnx", options);
  CHECK_FALSE(fs::exists(folder / "m.onnx.data"));
  CHECK(onnx::load(folder / "m.onnx").str() == model.str());

  options.max_model_size = 1 << 20;
  onnx::save(model, folder / "m.onnx", options);
  CHECK(fs::exists(folder / "m.onnx.data"));
  CHECK(onnx::load(folder / "m.onnx").str() == model.str());

  options.max_model_size = 100;
  CHECK_THROWS_WITH_AS(onnx::save(model, folder / "none" / "m.onnx", options), doctest::Contains("limit of 100"),
                       Error);
  CHECK_FALSE(fs::exists(folder / "none"));
}

TEST_CASE("a transposed view is stored transposed") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  auto weight = floats({3, 400});
  auto transposed = weight;
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  const Model model = linear_model(transposed);
  for (const bool external : {true, false}) {
    onnx::save(model, folder / "m.onnx", {.external_data = external});
    const Model again = onnx::load(folder / "m.onnx");
    const auto& data = again.graph->initializers()[0]->initializer->data;
    REQUIRE(data.sizes == std::vector<int64_t>{400, 3});
    const auto* numbers = static_cast<const float*>(data.data);
    CHECK(numbers[0] == 0);
    CHECK(numbers[1] == 400);
    CHECK(numbers[3] == 1);
    CHECK(numbers[3 * 399 + 2] == 1199);
  }
}

TEST_CASE("models saved together share one data file") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  const auto weight = floats({64, 64});
  const Model prefill = linear_model(weight), decode = linear_model(weight);
  AtomicFiles files(folder);
  onnx::save({{"prefill.onnx", &prefill}, {"decode.onnx", &decode}}, files, {.data_file = "weights.data"});
  files.commit();
  CHECK(fs::file_size(folder / "weights.data") == weight.nbytes());
  CHECK(onnx::load(folder / "decode.onnx").str() == decode.str());
}
