// Caches that are updated in place: pairs "input.<name>" and "output.<name>" that may be bound to one buffer, recorded
// as metadata "shared_buffers" = the names, one a line.
#pragma once

#include <string>
#include <vector>

#include "transporters/onnx/model.h"

namespace transporters::onnx {

inline constexpr const char* kSharedBuffers = "shared_buffers";

// The names of the pairs whose new value is the old one with some elements written (ScatterElements, ScatterND), and
// whose old value nothing reads afterwards, in whatever order a runtime runs the nodes.
std::vector<std::string> shared_buffers(const Model& model);
// Writes them to the model's metadata, or nothing when there are none.
void record_shared_buffers(Model& model);

}  // namespace transporters::onnx
