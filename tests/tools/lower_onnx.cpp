// Converts `.pt2` files to ONNX. Each line of standard input is a job, tab-separated:
//   PROGRAM.pt2  OUT.onnx  OPSET
// and is answered by a line: "ok", or "error: " and the message.
#include <iostream>
#include <sstream>

#include "transporters/dynamo/pt2.h"
#include "transporters/export/exporters.h"

using namespace transporters;

namespace {

void convert(const std::string& job) {
  std::istringstream line(job);
  std::string program, out, opset;
  for (auto* field : {&program, &out, &opset}) std::getline(line, *field, '\t');
  OnnxExporter().convert(dynamo::load(program), {.opset_version = std::stoll(opset)}).save(out);
}

}  // namespace

int main() {
  for (std::string job; std::getline(std::cin, job);) {
    try {
      convert(job);
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
