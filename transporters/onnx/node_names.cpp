#include "transporters/onnx/node_names.h"

namespace transporters::onnx {

std::string module_path(const Node& node) {
  const std::string output = node.outputs().empty() ? "" : node.output()->name();
  if (node.name == output) return "";
  if (node.name.ends_with("/" + output)) return node.name.substr(0, node.name.size() - output.size() - 1);
  const size_t slash = node.name.find('/');
  return slash == std::string::npos ? "" : node.name.substr(0, slash);
}

std::string full_op(const Node& node) { return node.domain.empty() ? node.op : node.domain + "." + node.op; }

}  // namespace transporters::onnx
