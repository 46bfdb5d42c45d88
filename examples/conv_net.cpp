// A small convolutional net with batch norm, exported to ONNX and .pt2 with dynamic batch and image size.
//
//     example_conv_net OUT_FOLDER
#include <torch/torch.h>

#include <iostream>

#include "transporters/transporters.h"

namespace tp = transporters;

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: example_conv_net OUT_FOLDER\n", 2;
  const std::string folder = argv[1];

  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1).bias(false)),
                            torch::nn::BatchNorm2d(16), torch::nn::ReLU(),
                            torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2)),
                            torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 8, 1).stride(2)));
  for (int step = 0; step < 4; ++step) net->forward(torch::randn({8, 3, 32, 32}) * 2 + 1);  // moves the statistics
  net->eval();

  const auto batch = tp::Dim("batch", 1, 64), height = tp::Dim("height", 8, 512), width = tp::Dim("width", 8, 512);
  const tp::DynamicShapes shapes = {{"image", {{0, batch}, {2, height}, {3, width}}}};
  const auto sample = torch::randn({2, 3, 32, 32});
  tp::OnnxExporter()
      .export_module(net, {sample}, {.dynamic_shapes = shapes}, {"image"})
      .save(folder + "/conv_net.onnx");
  tp::DynamoExporter()
      .export_module(net, {sample}, {.dynamic_shapes = shapes}, {"image"})
      .save(folder + "/conv_net.pt2");

  // What eager gives at other sizes, to compare with.
  const torch::NoGradGuard no_grad;
  std::vector<std::pair<std::string, at::Tensor>> reference;
  for (const auto& [b, h, w] : {std::tuple{1, 32, 32}, {5, 20, 48}, {3, 9, 11}}) {
    const auto image = torch::randn({b, 3, h, w});
    const std::string run = std::to_string(reference.size() / 2);
    reference.emplace_back(run + ".image", image);
    reference.emplace_back(run + ".output", net->forward(image));
  }
  tp::save_tensors(reference, folder + "/conv_net.safetensors");
}
