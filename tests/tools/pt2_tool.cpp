// Writes, rewrites, shows and runs .pt2 files:
//   pt2_tool write PROGRAM.txt STATE.safetensors OUT.pt2 [TWIN=NAME]...
//       tensors named "input:PATH" are example inputs; TWIN is tied to NAME
//   pt2_tool rewrite IN.pt2 OUT.pt2
//   pt2_tool show IN.pt2
//   pt2_tool run IN.pt2 (INPUTS.safetensors OUTPUTS.safetensors)...
// Runs go one after another in one interpreter. Outputs are written by leaf path, numbers as scalars, None not at all;
// with them buffers as "buffer:NAME" and the inputs, which the program may have written to, as "input:NAME".
#include <ATen/ops/scalar_tensor.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include "transporters/checkpoint/safetensors.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/runners/interpreter.h"

namespace tp = transporters;

namespace {

const std::string kInputPrefix = "input:";

tp::Program read_program(const std::string& text_path, const std::string& state_path) {
  std::ifstream stream(text_path);
  std::stringstream text;
  text << stream.rdbuf();
  tp::Program program = tp::parse_program(text.str());
  const auto state = tp::SafetensorsFile::open(state_path);
  for (const auto& name : state.names()) {
    if (name.starts_with(kInputPrefix)) {
      program.example_inputs.push_back({name.substr(kInputPrefix.size()), state.get(name)});
    } else {
      program.state[name] = state.get(name);
    }
  }
  return program;
}

void run_program(const tp::Program& program, const std::vector<std::string>& files) {
  tp::Interpreter interpreter(program);
  for (size_t i = 0; i + 1 < files.size(); i += 2) {
    const auto file = tp::SafetensorsFile::open(files[i]);
    std::map<std::string, at::Tensor> inputs;
    for (const auto& name : file.names()) inputs[name] = tp::to_tensor(file.get(name)).clone();
    std::vector<tp::NamedTensorData> tensors;
    const auto keep = [&](const std::string& name, const at::Tensor& tensor) {
      tensors.emplace_back(name, tp::to_tensor_data(tensor.contiguous()));
    };
    for (const auto& [name, value] : interpreter.run_named(inputs)) {
      if (value.isTensor()) keep(name, value.toTensor());
      if (value.isScalar()) keep(name, at::scalar_tensor(value.toScalar(), at::kDouble));
    }
    for (const auto& [name, tensor] : inputs) keep(kInputPrefix + name, tensor);
    for (const auto& input : program.inputs)
      if (input.kind == tp::InputKind::Buffer) keep("buffer:" + input.target, interpreter.buffer(input.target));
    tp::write_safetensors(files[i + 1], tensors);
  }
}

int run(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  if (command == "write" && arguments.size() >= 4) {
    tp::Program program = read_program(arguments[1], arguments[2]);
    for (size_t i = 4; i < arguments.size(); ++i) {
      const auto equals = arguments[i].find('=');
      program.state[arguments[i].substr(0, equals)] = program.state.at(arguments[i].substr(equals + 1));
    }
    tp::dynamo::save(program, arguments[3]);
  } else if (command == "rewrite" && arguments.size() == 3) {
    tp::dynamo::save(tp::dynamo::load(arguments[1]), arguments[2]);
  } else if (command == "show" && arguments.size() == 2) {
    std::cout << tp::dynamo::load(arguments[1]).str();
  } else if (command == "run" && arguments.size() >= 4) {
    run_program(tp::dynamo::load(arguments[1]), {arguments.begin() + 2, arguments.end()});
  } else {
    std::cerr << "usage: pt2_tool write|rewrite|show|run FILES\n";
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const tp::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n";
    return 3;
  }
}
