#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#include "transporters/error.h"
#include "transporters/export/metadata.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/writer.h"

namespace transporters::fuzz {
namespace {

using onnx::DataType;
using onnx::Dim;
using onnx::Model;
using onnx::Shape;
using onnx::Tensor;

// A linear layer, a branch with two subgraphs, attributes of every kind.
Model model() {
  Model model;
  model.ir_version = 9;
  model.opsets[""] = 20;
  model.metadata["range.batch"] = "[1, 8]";
  auto& graph = *model.graph;
  auto* x = graph.add_input("x", DataType::FLOAT, Shape{Dim::named("batch"), Dim::of(3)});
  auto* weight = graph.add_initializer("weight", Tensor::of(tensor({4, 3})));
  auto* large = graph.add_initializer("large", Tensor::of(tensor({32, 16})));
  auto* flag = graph.add_initializer("flag", Tensor::of(tensor({1}, ScalarType::Bool)));
  auto* gemm = graph.insert(nullptr, "Gemm", {x, weight}, {{"transB", int64_t{1}}, {"alpha", 0.5F}}, {"gemm"});
  gemm->output()->type = DataType::FLOAT;
  gemm->output()->shape = Shape{Dim::named("batch"), Dim::of(4)};
  auto* constant =
      graph.insert(nullptr, "Constant", {}, {{"value", Tensor::of(tensor({2}, ScalarType::Long))}}, {"axes"});
  const auto branch = [&](const char* op, const char* name) {
    auto inner = std::make_shared<onnx::Graph>(&graph);
    auto* node = inner->insert(nullptr, op, {gemm->output()}, {}, {name});
    node->output()->type = DataType::FLOAT;
    inner->add_output(node->output());
    return inner;
  };
  auto* choice =
      graph.insert(nullptr, "If", {flag},
                   {{"then_branch", branch("Relu", "then")}, {"else_branch", branch("Abs", "otherwise")}}, {"choice"});
  auto* custom = graph.insert(nullptr, "Custom", {choice->output(), constant->output(), nullptr, large},
                              {{"ints", std::vector<int64_t>{1, -1, INT64_MAX}},
                               {"floats", std::vector<float>{0.0F, -1.5F}},
                               {"mode", std::string("linear")},
                               {"names", std::vector<std::string>{"a", "b"}}},
                              {"y", "", "z"});
  custom->domain = "my.domain";
  model.opsets["my.domain"] = 1;
  for (size_t i : {size_t{0}, size_t{2}}) {
    custom->output(i)->type = DataType::FLOAT;
    custom->output(i)->shape = Shape{Dim::named("batch"), Dim{}};
    graph.add_output(custom->output(i));
  }
  choice->output()->type = DataType::FLOAT;
  constant->output()->type = DataType::INT64;
  return model;
}

void touch_tensor(const Tensor& tensor) {
  if (tensor.numel() < 0) throw InternalError("a tensor of " + std::to_string(tensor.numel()) + " elements");
  touch(tensor.data.data, tensor.data.data == nullptr ? 0 : tensor.data.nbytes());
}

class Onnx final : public Target {
 public:
  Onnx() : Target("onnx") {}

  std::vector<Files> seeds() override {
    const auto folder = std::filesystem::temp_directory_path() / ("fuzz_seed." + std::to_string(getpid()));
    const Model original = model();
    onnx::save(original, folder / "x.onnx", {.external_threshold = 64});
    const auto bytes = [&](const char* name) {
      std::ifstream stream(folder / name, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    std::vector<Files> seeds{{{"x.onnx", bytes("x.onnx")}, {"x.onnx.data", bytes("x.onnx.data")}},
                             {{"x.onnx", onnx::serialize(original)}}};
    std::filesystem::remove_all(folder);
    return seeds;
  }

  Files mutate(const Files& seed, Random& random) const override {
    Files files = seed;
    for (auto& [name, bytes] : files) {
      if (name.ends_with(".onnx"))
        bytes = mutate_protobuf(bytes, random);
      else if (random.one_in(4))
        bytes = mutate_bytes(bytes, bytes, random);
    }
    return files;
  }

  // What was read can be printed, and is the same when it is written and read again.
  void read(const Files&, const std::filesystem::path& folder) const override {
    const Model model = onnx::load(folder / "x.onnx");
    model.graph->for_each_graph([](onnx::Graph& graph) {
      for (const auto& value : graph.initializers()) touch_tensor(*value->initializer);
      for (const auto& node : graph.nodes())
        for (const auto& [name, value] : node->attributes)
          if (const auto* held = std::get_if<Tensor>(&value)) touch_tensor(*held);
    });
    const std::string text = model.str();
    const std::string again = onnx::parse(onnx::serialize(model)).str();
    if (again != text) throw InternalError("written and read again, the model differs:\n" + text + "\n" + again);
  }
};

class Manifest final : public Target {
 public:
  Manifest() : Target("manifest") {}
  std::vector<Files> seeds() override {
    ExportMetadata metadata;
    metadata.architecture = "LlamaForCausalLM";
    metadata.packages = {{"torch", "2.13.0"}};
    metadata.export_config =
        R"({"dynamic": true, "dynamic_shapes": {"input_ids": {"0": {"name": "batch", "min": 1}}}})";
    metadata.export_dtype = "float32";
    metadata.kwargs = R"({"input_ids": {"rank": 2, "shape": [2, 5], "dtype": "int64"}})";
    metadata.out_constants = "[[1, null]]";
    return {{{"", manifest_json(ExportFormat::Onnx,
                                {{"model", "model.onnx", metadata}, {"decode", "decode.onnx", metadata}})}}};
  }
  Files mutate(const Files& seed, Random& random) const override { return {{"", mutate_json(seed.at(""), random)}}; }
  void read(const Files& input, const std::filesystem::path&) const override {
    const auto [format, entries] = parse_manifest(input.at(""));
    parse_manifest(manifest_json(format, entries));
  }
};

}  // namespace

std::vector<std::unique_ptr<Target>> export_targets() {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(std::make_unique<Onnx>());
  targets.push_back(std::make_unique<Manifest>());
  return targets;
}

}  // namespace transporters::fuzz
