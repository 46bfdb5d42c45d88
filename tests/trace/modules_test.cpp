// torch::nn modules of the C++ front end, whose code reads sizes as plain integers.
#include "tests/trace/trace_check.h"

namespace transporters::test {
namespace {

namespace nn = torch::nn;

const Dim kBatch("batch"), kLength("length");

struct MnistNetImpl : nn::Module {
  MnistNetImpl()
      : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 20, 5)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(20, 40, 5)))),
        dropout(register_module("dropout", nn::Dropout2d())),
        fc1(register_module("fc1", nn::Linear(640, 120))),
        fc2(register_module("fc2", nn::Linear(120, 10))) {}

  at::Tensor forward(at::Tensor x) {
    x = at::relu(at::max_pool2d(conv1(x), 2));
    x = at::relu(at::max_pool2d(dropout(conv2(x)), 2));
    x = x.view({-1, 640});
    return at::log_softmax(fc2(at::relu(fc1(x))), 1);
  }

  nn::Conv2d conv1, conv2;
  nn::Dropout2d dropout;
  nn::Linear fc1, fc2;
};

Tensors one(at::IntArrayRef sizes) { return {at::randn(sizes)}; }

size_t count(const Program& program, std::string_view op) {
  size_t n = 0;
  for (const Node& node : *program.graph) n += node.is(op);
  return n;
}

}  // namespace

TEST_CASE("a net of the C++ front end (pytorch#17869)") {
  auto net = std::make_shared<MnistNetImpl>();
  net->eval();
  const Program program = trace_module(*net, one({2, 1, 28, 28}), {{kBatch}});
  CHECK(program.find_input("conv1.weight") != nullptr);
  for (const Node& node : *program.graph) CHECK(node.op().find("dropout") == std::string::npos);
  check_against_eager(program, *net, {one({5, 1, 28, 28}), one({1, 1, 28, 28})});
}

TEST_CASE("convolution with batch norm and a strided branch (pytorch#166797)") {
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)), nn::BatchNorm2d(8), nn::ReLU(),
                     nn::Conv2d(nn::Conv2dOptions(8, 4, 1).stride(2)));
  net->train();
  for (int i = 0; i < 3; ++i) net->forward(at::randn({4, 3, 9, 9}) * 2 + 1);  // running statistics that matter
  net->eval();
  const Program program =
      trace_module(*net, one({2, 3, 9, 9}), {{kBatch, Dim::fixed(), Dim("height", 2), Dim("width", 2)}});
  check_against_eager(program, *net, {one({4, 3, 9, 9}), one({1, 3, 12, 7})});
}

TEST_CASE("an LSTM keeps its length symbolic") {
  nn::LSTM lstm(nn::LSTMOptions(6, 5).num_layers(2).bidirectional(true).batch_first(true));
  lstm->eval();
  struct Wrapper : nn::Module {
    explicit Wrapper(nn::LSTM inner) : inner(register_module("inner", inner)) {}
    at::Tensor forward(const at::Tensor& x) { return std::get<0>(inner->forward(x)); }
    nn::LSTM inner;
  } module(lstm);
  const Program program = trace_module(module, one({2, 7, 6}), {{kBatch, kLength}});
  CHECK(count(program, "aten::lstm.input") == 1);
  check_against_eager(program, module, {one({3, 4, 6}), one({1, 1, 6}), one({2, 11, 6})});
}

TEST_CASE("a transformer encoder at other sizes (pytorch#122321)") {
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(48).activation(torch::kGELU), 2));
  encoder->eval();
  const Program program = trace_module(*encoder, one({7, 2, 32}), {{kLength, kBatch}});
  CHECK(!program.graph->outputs()[0]->sizes()[0].is_constant());
  CHECK(!program.graph->outputs()[0]->sizes()[1].is_constant());
  check_against_eager(program, *encoder, {one({11, 3, 32}), one({1, 1, 32})});
}

TEST_CASE("a buffer that forward updates is a buffer mutation (pytorch#114406)") {
  struct Counter : nn::Module {
    Counter() : count(register_buffer("count", at::full({1}, 4.0))) {}
    at::Tensor forward(const at::Tensor& x) {
      count.add_(1);
      return x + count;
    }
    at::Tensor count;
  } module;
  const Program program = trace_module(module, {at::zeros({2})}, {{kBatch}});
  CHECK(module.count.item<float>() == 4);  // tracing computes nothing
  Interpreter interpreter(program);
  CHECK(interpreter.run({at::zeros({3})})[0].toTensor()[0].item<float>() == 5);
  CHECK(interpreter.run({at::zeros({3})})[0].toTensor()[0].item<float>() == 6);
}

TEST_CASE("pixel shuffle and unshuffle (pytorch#186080), and module paths from parameters") {
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 4, 1)), nn::PixelShuffle(nn::PixelShuffleOptions(2)),
                     nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2)));
  const Program program = trace_module(*net, one({2, 1, 4, 4}), {{kBatch}});
  CHECK(program.graph->front()->module_path == "0");
  check_against_eager(program, *net, {one({3, 1, 4, 4}), one({1, 1, 4, 4})});
}

TEST_CASE("tracing allocates no activations") {
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 64, 3)), nn::ReLU(), nn::Conv2d(nn::Conv2dOptions(64, 64, 3)));
  // The activations of one run would take 2000 * 64 * 638^2 * 4 bytes = 208 GB.
  const at::Tensor sample = at::empty({1}).expand({2000, 3, 640, 640});
  const Program program = trace_module(*net, {sample}, {{kBatch}});
  CHECK(program.graph->outputs()[0]->sizes()[2].is(636));
}

}  // namespace transporters::test
