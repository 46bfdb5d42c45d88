// The exporters' own behaviour: which exporter a config picks, what they refuse.
#include "transporters/export/exporters.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>

using namespace transporters;

namespace {

struct NormNet : torch::nn::Module {
  NormNet() { norm = register_module("norm", torch::nn::BatchNorm2d(3)); }
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x).relu(); }
  torch::nn::BatchNorm2d norm = nullptr;
};

struct DropoutNet : torch::nn::Module {
  DropoutNet() { dropout = register_module("dropout", torch::nn::Dropout(0.5)); }
  at::Tensor forward(const at::Tensor& x) { return dropout->forward(x) * 2; }
  torch::nn::Dropout dropout = nullptr;
};

template <typename Exporter, typename Net>
std::string refusal(Net& net, const at::Tensor& x) {
  try {
    Exporter().export_module(net, {x});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("modules in training mode are refused by every exporter, also when only a part of them is") {
  const auto image = at::rand({2, 3, 4, 4});
  NormNet norm;
  for (const auto& message : {refusal<OnnxExporter>(norm, image), refusal<DynamoExporter>(norm, image)})
    CHECK(has(message, "training mode"));
  norm.eval();
  norm.norm->train();
  CHECK(has(refusal<OnnxExporter>(norm, image), "call eval()"));
  norm.eval();
  CHECK(refusal<OnnxExporter>(norm, image).empty());

  DropoutNet dropout;
  for (const auto& message : {refusal<OnnxExporter>(dropout, image), refusal<DynamoExporter>(dropout, image)})
    CHECK(has(message, "training mode"));
  dropout.eval();
  CHECK(refusal<DynamoExporter>(dropout, image).empty());
}

TEST_CASE("training mode itself is no obstacle where nothing differs") {
  struct Plain : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) { return x * 2; }
  } plain;
  CHECK(plain.is_training());
  CHECK(refusal<OnnxExporter>(plain, at::ones({2})).empty());
}

TEST_CASE("a program in training mode that was read from a file") {
  Program program = parse_program(R"(
program Net
input %x: f32[2, 3] = user "x"
%dropout: f32[2, 3] = aten::dropout(input=%x, p=0.5, train=True)  @ net.drop
output %dropout = user "y"
)");
  CHECK_THROWS_WITH_AS(OnnxExporter().convert(program.clone()), doctest::Contains("call eval() before torch.export"),
                       Error);
  const auto converted = DynamoExporter().convert(program.clone());
  REQUIRE(converted.warnings.size() == 1);
  CHECK(has(converted.warnings[0], "aten::dropout"));
  // In eval mode the same ops are no obstacle, nor is dropout of nothing.
  Node* node = program.graph->front();
  node->set("p", 0.0);
  CHECK(DynamoExporter().convert(program.clone()).warnings.empty());
  node->set("p", 0.5);
  node->set("train", false);
  CHECK(DynamoExporter().convert(program.clone()).warnings.empty());
  CHECK_NOTHROW(OnnxExporter().convert(std::move(program)));
}

TEST_CASE("a Dim that is tied to axes of other inputs: what to write for them") {
  const auto sum = [](const std::vector<at::Tensor>& in) { return in[0] + in[1]; };
  const NamedInputs inputs = {{"img", at::ones({4, 3})}, {"bias", at::ones({4, 3})}};
  const auto message = [&](DynamicShapes shapes) -> std::string {
    try {
      DynamoExporter().export_function(sum, inputs, {.dynamic_shapes = std::move(shapes)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string remedy = R"(--dynamic-shapes '{"img": {"0": "n"}, "bias": {"0": "n"}}')";
  const std::string fixed = message({{"img", {{0, Dim("n")}}}});
  CHECK(has(fixed, "Dim 'n' (img dim 0"));
  CHECK(has(fixed, "In the samples img dim 0 (Dim 'n') is 4, and so is bias dim 0 (static)"));
  CHECK(has(fixed, remedy));
  CHECK(has(message({{"img", {{0, Dim("n")}}}, {"bias", {{0, Dim("m", 1, 8)}}}}), "bias dim 0 (Dim 'm')"));
  CHECK(message({{"img", {{0, Dim("n")}}}, {"bias", {{0, Dim("n")}}}}).empty());
}

TEST_CASE("a config picks its exporter") {
  const auto twice = [](const std::vector<at::Tensor>& in) { return in[0] * 2; };
  const NamedInputs inputs = {{"x", at::ones({2, 3})}};
  const auto onnx = AutoHfExporter::from_config(
      AutoExportConfig::from_json(R"({"export_format": "onnx", "dynamic": true, "opset_version": 22})"));
  const auto model = onnx.export_function(twice, inputs).components().at("model").onnx;
  REQUIRE(model != nullptr);
  CHECK(model->opsets.at("") == 22);
  CHECK(!model->graph->inputs()[0]->shape->at(0).is_known());

  const auto dynamo = AutoHfExporter::from_config(AutoExportConfig::for_format(ExportFormat::Dynamo));
  const auto exported = dynamo.export_function(twice, inputs);
  CHECK(exported.components().at("model").onnx == nullptr);
  // A traced program goes on to another format.
  const auto converted = onnx.convert(exported.components().at("model").program.clone());
  CHECK(converted.components().at("model").onnx != nullptr);
}

TEST_CASE("dims are given by the input's name or by its position, and too many are an error") {
  const auto sum = [](const std::vector<at::Tensor>& in) { return in[0] + in[1]; };
  const NamedInputs inputs = {{"img", at::ones({4, 3})}, {"bias", at::ones({4, 3})}};
  const auto batch = Dim("batch", 1, 64);
  const auto sizes = [&](DynamicShapes shapes) {
    const auto exported = DynamoExporter().export_function(sum, inputs, {.dynamic_shapes = std::move(shapes)});
    return exported.components().at("model").program.str();
  };
  CHECK(has(sizes({{"img", {{0, batch}}}, {"bias", {{0, batch}}}}), "f32[batch, 3]"));
  CHECK(has(sizes({{{0, batch}}, {{0, batch}}}), "f32[batch, 3]"));
  CHECK_THROWS_WITH_AS(sizes({{{0, batch}}, {{0, batch}}, {{0, batch}}}),
                       doctest::Contains("axes are given for 3 inputs, but there are 2"), Error);
  CHECK_THROWS_WITH_AS(sizes({{"image", {{0, batch}}}}), doctest::Contains("there is no input 'image'"), Error);
}

TEST_CASE("parameters that were never given values are named before anything is traced") {
  struct Net : torch::nn::Module {
    Net() {
      first = register_parameter("first", at::ones({3}));
      second = register_parameter("second", at::empty({3}, at::kMeta));
    }
    at::Tensor forward(const at::Tensor& x) {
      was_called = true;
      return x * first + second;
    }
    at::Tensor first, second;
    bool was_called = false;
  } net;
  net.eval();
  const std::string message = refusal<DynamoExporter>(net, at::ones({2, 3}));
  CHECK(has(message, "the meta device for 'second'; load the weights first"));
  CHECK(!net.was_called);
}
