// torch::nn::TransformerEncoder with dynamic length and batch. Its code reads sizes as plain integers; the tracer tells
// them back into symbols.
//
//     example_transformer_encoder OUT_FOLDER
#include <torch/torch.h>

#include <iostream>

#include "transporters/transporters.h"

namespace tp = transporters;

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: example_transformer_encoder OUT_FOLDER\n", 2;
  const std::string folder = argv[1];

  torch::manual_seed(0);
  const auto layer = torch::nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(48).activation(torch::kGELU);
  torch::nn::TransformerEncoder encoder(torch::nn::TransformerEncoderOptions(layer, 2));
  encoder->eval();
  const tp::DynamicShapes shapes = {{"source", {{0, tp::Dim("length", 1)}, {1, tp::Dim("batch", 1)}}}};
  const auto sample = torch::randn({7, 2, 32});
  const std::string path = folder + "/transformer_encoder";
  tp::OnnxExporter().export_module(encoder, {sample}, {.dynamic_shapes = shapes}, {"source"}).save(path + ".onnx");
  tp::DynamoExporter().export_module(encoder, {sample}, {.dynamic_shapes = shapes}, {"source"}).save(path + ".pt2");

  const torch::NoGradGuard no_grad;
  std::vector<std::pair<std::string, at::Tensor>> reference;
  for (const auto& [length, batch] : {std::pair{11, 3}, {1, 1}, {4, 2}}) {
    const auto source = torch::randn({length, batch, 32});
    const std::string run = std::to_string(reference.size() / 2);
    reference.emplace_back(run + ".source", source);
    reference.emplace_back(run + ".output", encoder->forward(source));
  }
  tp::save_tensors(reference, path + ".safetensors");
}
