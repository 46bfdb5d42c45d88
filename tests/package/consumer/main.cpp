// A program of somebody else: finds transporters with find_package, and exports its own module to both formats.
#include <torch/nn.h>
#include <transporters/transporters.h>

#include <iostream>

namespace tp = transporters;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: consumer OUTPUT_FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  net->eval();
  const auto x = torch::randn({2, 8});
  const auto batch = tp::Dim("batch", 1, 64);
  tp::OnnxExporter().export_module(net, {x}, {.dynamic_shapes = {{{0, batch}}}}, {"x"}).save(folder + "/net.onnx");
  const auto exported = tp::DynamoExporter().export_module(net, {x}, {.dynamic_shapes = {{{0, batch}}}}, {"x"});
  exported.save(folder + "/net.pt2");

  // What the exports must give at another size.
  const auto input = torch::randn({5, 8});
  tp::save_tensors({{"x", input}, {"y", net->forward(input).detach()}}, folder + "/expected.safetensors");
  return 0;
}
