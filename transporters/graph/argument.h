// What a node's input can be: values of the graph, or constants with symbolic sizes among them.
#pragma once

#include <c10/core/ScalarType.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "transporters/graph/value.h"

namespace transporters {

struct None {
  bool operator==(const None&) const = default;
};
// torch.layout / torch.memory_format / torch.device by their Python names: "strided", "contiguous_format", "cpu".
struct Layout {
  std::string name;
  bool operator==(const Layout&) const = default;
};
struct MemoryFormat {
  std::string name;
  bool operator==(const MemoryFormat&) const = default;
};
struct Device {
  std::string name;
  bool operator==(const Device&) const = default;
};

// An element of a Tensor?[] is null where the list has None.
using Values = std::vector<Value*>;

// Integers, symbolic sizes and symbolic booleans are Exprs, alone and in lists; so a constant int is Expr(3).
// Numbers in a Scalar or Tensor position keep their own type (int -> Expr, float -> double, bool -> bool).
using Argument =
    std::variant<None, Value*, Values, Expr, std::vector<Expr>, double, std::vector<double>, bool, std::vector<bool>,
                 std::string, std::vector<std::string>, ScalarType, Layout, MemoryFormat, Device>;

struct NamedArgument {
  std::string name;  // the schema's name for it
  Argument value;
};

// Same type and same value; unlike ==, floats compare by their bits (NaN is itself, -0.0 is not 0.0).
bool identical(const Argument& a, const Argument& b);
size_t hash_argument(const Argument& argument);
// Calls f with each value in the argument (null list elements skipped), or with each expression.
void for_each_value(const Argument& argument, const std::function<void(Value*)>& f);
void for_each_expr(const Argument& argument, const std::function<void(const Expr&)>& f);

}  // namespace transporters
