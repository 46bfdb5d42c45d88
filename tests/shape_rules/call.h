// A call of an op, written as text, for tests:
//
//     aten::add.Tensor(f32[a=2, b=3], f32[b], alpha=2)
//
// Tensors are written dtype[sizes]; `a=2` names a symbolic size with its example value (3 where none is given), `a` or
// `2*a` uses it, a number is a constant. `{1, 2}` behind gives strides, `:(0, 1)` values. Other values are None, true,
// false, numbers, 'strings', dtypes (f32), memory formats (channels_last), expressions over the names, and lists in
// brackets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "transporters/graph/graph.h"

namespace transporters::testing {

struct TensorText {
  TensorType type;
  std::vector<double> values;
};
struct ValueText;
using ListText = std::vector<ValueText>;
struct ValueText {
  // TensorText, a list, or a constant.
  std::variant<TensorText, ListText, Argument> value;
};

struct Call {
  std::string op;
  // Names are empty for positional arguments.
  std::vector<std::pair<std::string, ValueText>> arguments;
  std::map<std::string, int64_t> examples;  // of the named sizes
};

// Throws Error that shows where reading stopped.
Call parse_call(std::string_view text);
std::string dtype_text(ScalarType dtype);

}  // namespace transporters::testing
