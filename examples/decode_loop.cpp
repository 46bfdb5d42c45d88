// Generates with the exported stages of a model, .pt2 or ONNX: the prompt and then token by token.
//
//     transporters export CHECKPOINT --to onnx --dynamic --generation --multi-token-decode --static-cache 64 --out DIR
//     build/examples/example_decode_loop DIR 20 1 2 3
#include <cstdlib>
#include <iostream>

#include "transporters/transporters.h"

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " FOLDER MAX_NEW_TOKENS ID [ID ...]\n";
    return 2;
  }
  transporters::Generator generator(argv[1]);
  transporters::TokenIds prompt;
  for (int i = 3; i < argc; ++i) prompt.push_back(std::atoll(argv[i]));
  transporters::GenerateOptions options{.max_new_tokens = std::atoll(argv[2])};
  options.on_tokens = [](const transporters::TokenIds& tokens) { std::cout << tokens.front() << std::endl; };
  const auto result = generator.generate({.ids = {prompt}}, options);
  std::cerr << "stopped: " << result.stopped << "\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
