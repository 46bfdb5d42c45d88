// Which element types ONNX Runtime's CPU provider has kernels for.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "transporters/onnx/model.h"

namespace transporters::onnx {

// The type an op has to be computed in because the runtime (or ONNX itself) does not take `type` there; nullopt when it
// does. The type given holds every value of `type`, but for 64-bit integers where only reals are left.
std::optional<DataType> computed_type(std::string_view op, DataType type);

// The inputs, and the outputs, that share the type which computed_type looks at.
struct TypedPlaces {
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};
TypedPlaces typed_places(const Node& node);

// Casts around every op that the runtime has no kernel for in the type it stands in (bfloat16 arithmetic, most ops on
// small integers, Where on bools). A chain of such ops on reals is computed in the wider type throughout.
bool convert_types(Model& model);

}  // namespace transporters::onnx
