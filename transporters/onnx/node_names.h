// Names that lower() gives to nodes: "<module path>/<first output>", and just the output outside of modules.
#pragma once

#include <string>

#include "transporters/onnx/model.h"

namespace transporters::onnx {

// The module path in a node's name; empty when there is none. An output that was renamed afterwards does not matter.
std::string module_path(const Node& node);

// "MatMul"; with its domain when that is not ONNX's own: "com.microsoft.Gelu".
std::string full_op(const Node& node);

}  // namespace transporters::onnx
