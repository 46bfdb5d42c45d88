// A net of the C++ front end as its tutorial writes it, trained for a few steps here and exported after.
//
//     example_front_end_net OUT_FOLDER
#include <torch/torch.h>

#include <iostream>

#include "transporters/transporters.h"

namespace tp = transporters;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 20, 5)))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(20, 40, 5)))),
        dropout(register_module("dropout", torch::nn::Dropout2d())),
        fc1(register_module("fc1", torch::nn::Linear(640, 120))),
        fc2(register_module("fc2", torch::nn::Linear(120, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(dropout(conv2(x)), 2));
    x = x.view({-1, 640});
    x = fc2(torch::relu(fc1(x)));
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout2d dropout;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: example_front_end_net OUT_FOLDER\n", 2;
  const std::string folder = argv[1];

  torch::manual_seed(0);
  Net net;
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.01);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    torch::nll_loss(net(torch::randn({16, 1, 28, 28})), torch::randint(10, {16}, torch::kLong)).backward();
    optimizer.step();
  }
  net->eval();

  const tp::DynamicShapes shapes = {{"image", {{0, tp::Dim("batch", 1, 1024)}}}};
  const auto sample = torch::randn({2, 1, 28, 28});
  tp::OnnxExporter()
      .export_module(net, {sample}, {.dynamic_shapes = shapes}, {"image"})
      .save(folder + "/front_end_net.onnx");
  tp::DynamoExporter()
      .export_module(net, {sample}, {.dynamic_shapes = shapes}, {"image"})
      .save(folder + "/front_end_net.pt2");

  const torch::NoGradGuard no_grad;
  std::vector<std::pair<std::string, at::Tensor>> reference;
  for (const int batch : {1, 3, 64}) {
    const auto image = torch::randn({batch, 1, 28, 28});
    const std::string run = std::to_string(reference.size() / 2);
    reference.emplace_back(run + ".image", image);
    reference.emplace_back(run + ".output", net->forward(image));
  }
  tp::save_tensors(reference, folder + "/front_end_net.safetensors");
}
