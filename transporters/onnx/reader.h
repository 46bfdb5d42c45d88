// ONNX files into the in-memory model, without copying weights.
#pragma once

#include <filesystem>
#include <string_view>

#include "transporters/onnx/model.h"

namespace transporters::onnx {

// Reads a model. Weights stay in the mapped file, or in the mapped data files beside it. Bytes from strangers are safe
// to read: whatever does not hold together (truncated or overlong fields, sizes that do not match, names used before
// they are defined or defined twice, data files outside the model's folder) is an Error that says where.
Model load(const std::filesystem::path& file);

// Reads a model from memory; tensors are copied. Data files are looked for in `folder`, and refused when it is empty.
Model parse(std::string_view bytes, const std::filesystem::path& folder = {});

}  // namespace transporters::onnx
