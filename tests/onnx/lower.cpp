#include "transporters/onnx/lower.h"

#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/onnx/writer.h"

using namespace transporters;
using onnx::Model;

namespace {

TensorData zeros(std::vector<int64_t> sizes) {
  TensorData data;
  data.sizes = std::move(sizes);
  data.strides = contiguous_strides(data.sizes);
  const auto numbers = std::make_shared<std::vector<float>>(static_cast<size_t>(data.numel()) + 1);
  data.data = numbers->data();
  data.owner = numbers;
  return data;
}

Program program_of(const std::string& text, const std::map<std::string, std::vector<int64_t>>& state = {}) {
  Program program = parse_program("program Test\n" + text);
  for (const auto& [target, sizes] : state) program.state[target] = zeros(sizes);
  return program;
}

std::string lowered(const std::string& text, const std::map<std::string, std::vector<int64_t>>& state = {},
                    const onnx::LowerOptions& options = {}) {
  const Program program = program_of(text, state);
  return onnx::lower(program, options).str();
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::string kX = "symbol batch in [1, inf]\ninput %x: f32[batch, 4] = user \"x\"\n";

}  // namespace

TEST_CASE("inputs, outputs and inner values keep their names and sizes") {
  CHECK(lowered(kX + "%relu: f32[batch, 4] = aten::relu(self=%x)\n"
                     "%neg: f32[batch, 4] = aten::neg(self=%relu)\n"
                     "output %neg = user \"logits\"\n") ==
        "opset 20\n"
        "graph(x: float[batch, 4]) {\n"
        "  relu = Relu(x)\n"
        "  logits = Neg(relu)\n"
        "  return logits: float[batch, 4]\n"
        "}\n");
}

TEST_CASE("an input that is returned keeps both names") {
  CHECK(has(lowered(kX + "output %x = user \"y\"\n"), "y = Identity(x)\n  return y: float[batch, 4]"));
  CHECK(has(lowered(kX + "output %x = user \"y\"\noutput %x = user \"z\"\n"), "return y: float[batch, 4], z: "));
}

TEST_CASE("inner values make way for the names of inputs and outputs") {
  const auto text = lowered(
      "input %x: f32[2, 4] = user \"relu\"\n"
      "%relu: f32[2, 4] = aten::relu(self=%x)\n"
      "%softmax: f32[2, 4] = aten::softmax.int(self=%relu, dim=-1)\n"
      "%flip: f32[2, 4] = aten::flip(self=%softmax, dims=[1])\n"
      "output %flip = user \"softmax\"\n");
  CHECK(has(text, "relu_1 = Relu(relu)"));
  CHECK(has(text, "softmax_1 = Softmax(relu_1"));
  CHECK(has(text, "softmax = Slice(softmax_1"));
}

TEST_CASE("a name on both sides becomes a pair") {
  const auto text =
      lowered(kX + "%add: f32[batch, 4] = aten::add.Tensor(self=%x, other=1.0)\noutput %add = user \"x\"\n");
  CHECK(has(text, "graph(input.x: float[batch, 4])"));
  CHECK(has(text, "output.x = Add(input.x"));
}

TEST_CASE("a mutated buffer is an input with a default and an output") {
  const auto text = lowered(
      "input %c: f32[] = buffer \"state.c\"\n"
      "input %x: f32[2] = user \"x\"\n"
      "%add: f32[] = aten::add.Tensor(self=%c, other=1)\n"
      "%y: f32[2] = aten::add.Tensor(self=%x, other=%add)\n"
      "output %add = buffer_mutation \"state.c\"\n"
      "output %y = user \"y\"\n",
      {{"state.c", {}}});
  CHECK(has(text, "graph(input.state.c: float[] = 0, x: float[2])"));
  CHECK(has(text, "return y: float[2], output.state.c: float[]"));
}

TEST_CASE("a cache that is mutated and returned comes out once") {
  const auto text = lowered(
      "input %c: f32[2] = user \"cache.keys\"\n"
      "%add: f32[2] = aten::add.Tensor(self=%c, other=1)\n"
      "output %add = input_mutation \"cache.keys\"\n"
      "output %add = user \"cache.keys\"\n");
  CHECK(has(text, "return output.cache.keys: float[2]\n"));
}

TEST_CASE("sizes are read from the inputs that have them, once") {
  const auto text = lowered(
      "symbol batch in [1, inf]\nsymbol sequence in [1, inf]\n"
      "input %x: f32[batch, sequence, 8] = user \"x\"\n"
      "%arange: i64[sequence] = aten::arange(end=sequence)\n"
      "%zeros: f32[batch, 2*sequence + 1] = aten::zeros(size=[batch, 2*sequence + 1])\n"
      "%full: f32[sequence, batch] = aten::full(size=[sequence, batch], fill_value=1.0)\n"
      "output %arange = user \"a\"\noutput %zeros = user \"b\"\noutput %full = user \"c\"\n");
  CHECK(count(text, " = Shape(") == 2);
  CHECK(has(text, "size/batch = Shape(x, start=0, end=1)"));
  CHECK(has(text, "b: float[batch, 2*sequence + 1]"));
}

TEST_CASE("reshapes that keep or merge sizes need no arithmetic") {
  const auto text = lowered(
      "symbol batch in [1, inf]\nsymbol sequence in [1, inf]\n"
      "input %x: f32[batch, sequence, 32] = user \"x\"\n"
      "%view: f32[batch, sequence, 4, 8] = aten::view(self=%x, size=[batch, sequence, 4, 8])\n"
      "%flat: f32[batch*sequence, 4, 8] = aten::view(self=%view, size=[batch*sequence, 4, 8])\n"
      "output %flat = user \"y\"\n");
  CHECK(count(text, " = Shape(") == 0);
  CHECK(has(text, "int64[4] = [0, 0, 4, 8]"));
  CHECK(has(text, "int64[3] = [-1, 4, 8]"));
}

TEST_CASE("a size that may be 0 is not inferred beside another") {
  const auto text = lowered(
      "symbol batch in [0, inf]\nsymbol past in [0, inf]\n"
      "input %x: f32[batch, 2, past, 8] = user \"x\"\n"
      "%view: f32[batch, past, 16] = aten::view(self=%x, size=[batch, past, 16])\n"
      "output %view = user \"y\"\n");
  CHECK(has(text, "allowzero=1"));
  CHECK(has(text, "Concat"));
}

TEST_CASE("linear layers: Gemm on matrices, MatMul with a transposed weight elsewhere") {
  const std::string head = "input %w: f32[5, 4] = parameter \"fc.weight\"\ninput %b: f32[5] = parameter \"fc.bias\"\n";
  const std::map<std::string, std::vector<int64_t>> state = {{"fc.weight", {5, 4}}, {"fc.bias", {5}}};
  CHECK(has(lowered(head + "input %x: f32[2, 4] = user \"x\"\n"
                           "%y: f32[2, 5] = aten::linear(input=%x, weight=%w, bias=%b)\noutput %y = user \"y\"\n",
                    state),
            "y = Gemm(x, fc.weight, fc.bias, transB=1)"));
  const Program program =
      program_of(head +
                     "input %x: f32[3, 2, 4] = user \"x\"\n"
                     "%y: f32[3, 2, 5] = aten::linear(input=%x, weight=%w, bias=%b)\noutput %y = user \"y\"\n",
                 state);
  const Model model = onnx::lower(program);
  CHECK(has(model.str(), "MatMul(x, fc.weight.transposed)"));
  for (const auto& value : model.graph->initializers()) {
    if (value->name() != "fc.weight.transposed") continue;
    CHECK(value->initializer->dims == std::vector<int64_t>{4, 5});
    CHECK(value->initializer->data.strides == std::vector<int64_t>{1, 4});
    CHECK(value->initializer->data.data == program.state.at("fc.weight").data);
  }
}

TEST_CASE("a weight tied to the embedding is stored once, as it lies") {
  Program program = program_of(
      "symbol batch in [1, inf]\n"
      "input %w: f32[9, 4] = parameter \"embed.weight\"\n"
      "input %head: f32[9, 4] = parameter \"lm_head.weight\"\n"
      "input %ids: i64[batch, 3] = user \"ids\"\n"
      "%e: f32[batch, 3, 4] = aten::embedding(weight=%w, indices=%ids)\n"
      "%y: f32[batch, 3, 9] = aten::linear(input=%e, weight=%head)\n"
      "output %y = user \"logits\"\n",
      {{"embed.weight", {9, 4}}});
  program.state["lm_head.weight"] = program.state["embed.weight"];
  const Model model = onnx::lower(program);
  const auto text = model.str();
  CHECK(count(text, ": float[9, 4]") == 1);
  CHECK(has(text, "Gemm("));
  CHECK(count(text, "transposed") == 0);
}

TEST_CASE("all missing translations are told at once, with near names") {
  const auto attempt = [&] {
    lowered(kX +
            "%a: f32[batch, 4] = aten::igamma(self=%x, other=%x)  @ \"model.layers.0\"\n"
            "%b: f32[batch, 4] = aten::igamma(self=%a, other=%x)  @ \"model.layers.1\"\n"
            "%c: f32[batch, 4] = aten::lgamma(self=%b)\noutput %c = user \"y\"\n");
  };
  CHECK_THROWS_WITH_AS(attempt(), doctest::Contains("'aten::igamma' at model.layers.0 and 1 more"), Error);
  CHECK_THROWS_WITH_AS(attempt(), doctest::Contains("'aten::lgamma'"), Error);
}

TEST_CASE("translations of the user's own win, and may be for ops without one") {
  onnx::TranslationTable own;
  own["aten::relu"] = [](onnx::Lowering& l, const onnx::AtenNode& n) {
    return onnx::Outputs{l.emit("LeakyRelu", {l.input(n, "self")}, {{"alpha", 0.5f}})};
  };
  own["aten::lgamma"] = own["aten::relu"];
  onnx::LowerOptions options;
  options.translations = own;
  const auto text = lowered(kX + "%a: f32[batch, 4] = aten::relu(self=%x)\n%b: f32[batch, 4] = "
                                 "aten::lgamma(self=%a)\noutput %b = user \"y\"\n",
                            {}, options);
  CHECK(count(text, "LeakyRelu") == 2);
}

TEST_CASE("errors name the op and its module") {
  CHECK_THROWS_WITH_AS(lowered(kX + "%a: f32[batch, 4] = aten::dropout(input=%x, p=0.5, train=True)  @ "
                                    "\"encoder.drop\"\noutput %a = user \"y\"\n"),
                       doctest::Contains("[onnx] op 'aten::dropout' at encoder.drop: drops elements at random"), Error);
  CHECK_THROWS_WITH_AS(lowered(kX + "output %x = user \"y\"\n", {}, {.opset = 12}),
                       doctest::Contains("opset 12 is not supported; choose one from 18 to 24"), Error);
  CHECK_THROWS_WITH_AS(
      lowered(
          "input %w: f32[2] = parameter \"layer.weight\"\n%a: f32[2] = aten::relu(self=%w)\noutput %a = user \"y\"\n"),
      doctest::Contains("no data for 'layer.weight'"), Error);
  CHECK_THROWS_WITH_AS(
      lowered("input %x: c64[2] = user \"x\"\n%a: c64[2] = aten::neg(self=%x)\noutput %a = user \"y\"\n"),
      doctest::Contains("complex"), Error);
}

TEST_CASE("the same program gives the same bytes") {
  const Program program =
      program_of(kX +
                 "%a: f32[batch, 4] = aten::add.Tensor(self=%x, other=2.5)\n"
                 "%s: f32[batch] = aten::sum.dim_IntList(self=%a, dim=[1])\noutput %s = user \"y\"\n");
  CHECK(onnx::serialize(onnx::lower(program)) == onnx::serialize(onnx::lower(program)));
}
