// What an export takes for granted of the sizes that a model's dims name: metadata "range.batch" = "[1, 8]", "[1,
// inf]".
#pragma once

#include <map>
#include <string>

#include "transporters/onnx/model.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters::onnx {

inline constexpr const char* kRangePrefix = "range.";

std::string range_text(const symbolic::Range& range);
// The recorded ranges by name; empty for models of other exporters. Texts that are no range are passed over.
std::map<std::string, symbolic::Range> size_ranges(const Model& model);

}  // namespace transporters::onnx
