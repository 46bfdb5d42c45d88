// A bidirectional two-layer LSTM with a classifier, exported with dynamic batch and length.
//
//     example_lstm OUT_FOLDER
#include <torch/torch.h>

#include <iostream>

#include "transporters/transporters.h"

namespace tp = transporters;

struct TaggerImpl : torch::nn::Module {
  TaggerImpl()
      : embed(register_module("embed", torch::nn::Embedding(100, 12))),
        lstm(register_module(
            "lstm",
            torch::nn::LSTM(torch::nn::LSTMOptions(12, 10).num_layers(2).bidirectional(true).batch_first(true)))),
        classifier(register_module("classifier", torch::nn::Linear(20, 5))) {}

  torch::Tensor forward(const torch::Tensor& tokens) { return classifier(std::get<0>(lstm->forward(embed(tokens)))); }

  torch::nn::Embedding embed;
  torch::nn::LSTM lstm;
  torch::nn::Linear classifier;
};
TORCH_MODULE(Tagger);

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: example_lstm OUT_FOLDER\n", 2;
  const std::string folder = argv[1];

  torch::manual_seed(0);
  Tagger tagger;
  tagger->eval();
  const tp::DynamicShapes shapes = {{"tokens", {{0, tp::Dim("batch")}, {1, tp::Dim("length", 1)}}}};
  const auto sample = torch::randint(100, {2, 7}, torch::kLong);
  tp::OnnxExporter()
      .export_module(tagger, {sample}, {.dynamic_shapes = shapes}, {"tokens"})
      .save(folder + "/lstm.onnx");
  tp::DynamoExporter()
      .export_module(tagger, {sample}, {.dynamic_shapes = shapes}, {"tokens"})
      .save(folder + "/lstm.pt2");

  const torch::NoGradGuard no_grad;
  std::vector<std::pair<std::string, at::Tensor>> reference;
  for (const auto& [batch, length] : {std::pair{1, 1}, {4, 3}, {3, 19}}) {
    const auto tokens = torch::randint(100, {batch, length}, torch::kLong);
    const std::string run = std::to_string(reference.size() / 2);
    reference.emplace_back(run + ".tokens", tokens);
    reference.emplace_back(run + ".output", tagger->forward(tokens));
  }
  tp::save_tensors(reference, folder + "/lstm.safetensors");
}
