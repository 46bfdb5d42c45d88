// The text form of a program and of its pieces; see docs in print.cpp for the grammar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transporters/graph/graph.h"

namespace transporters {

// "f32", "bf16", "i64", "b8", "c64", ... as torch.export prints them; nullopt for an unknown name.
std::string_view dtype_text(ScalarType dtype);
std::optional<ScalarType> parse_dtype_text(std::string_view text);

// "f32[batch, 8]", "f32[2, 3] strides [1, 2]", "number(u0)".
std::string to_text(const ValueType& type);
// "%x", "[%x, None]", "2*batch", "1.0", "\"mean\"", "f32", ...
std::string to_text(const Argument& argument);
// "%add: f32[2] = aten::add.Tensor(self=%x, other=%y)  @ model.layers.0".
std::string to_text(const Node& node);

// A string in double quotes with JSON's escapes.
std::string quoted(std::string_view text);

}  // namespace transporters
