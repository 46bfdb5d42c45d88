// Lowers texts of programs to ONNX. Each line of standard input is a job, tab-separated:
//   PROGRAM.txt  STATE.safetensors|-  OUT.onnx  OPSET
// and is answered by a line: "ok", or "error: " and the message. STATE holds parameters, buffers and constants by target.
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "transporters/checkpoint/safetensors.h"
#include "transporters/error.h"
#include "transporters/onnx/lower.h"
#include "transporters/onnx/writer.h"

using namespace transporters;

namespace {

void lower(const std::string& job) {
  std::istringstream line(job);
  std::string text, state, out, opset;
  for (auto* field : {&text, &state, &out, &opset}) std::getline(line, *field, '\t');
  std::ifstream file(text);
  Program program = parse_program(std::string(std::istreambuf_iterator<char>(file), {}));
  if (state != "-") {
    const auto tensors = SafetensorsFile::open(state);
    for (const auto& name : tensors.names()) program.state[name] = tensors.get(name);
  }
  onnx::save(onnx::lower(program, {.opset = std::stoll(opset)}), out);
}

}  // namespace

int main() {
  for (std::string job; std::getline(std::cin, job);) {
    try {
      lower(job);
      std::cout << "ok" << std::endl;
    } catch (const std::exception& error) {
      std::string message = error.what();
      for (char& c : message) {
        if (c == '\n') c = ' ';
      }
      std::cout << "error: " << message << std::endl;
    }
  }
}
