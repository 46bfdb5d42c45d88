// Operator schemas, read from libtorch's dispatcher once and kept in a form that needs none of its headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/argument.h"

namespace transporters {

enum class ArgumentKind : uint8_t {
  Tensor,
  TensorList,
  OptionalTensorList,
  Int,  // int or SymInt
  IntList,
  Float,
  FloatList,
  Bool,
  BoolList,
  Scalar,
  String,
  StringList,
  ScalarType,
  Layout,
  MemoryFormat,
  Device,
  Other,  // Generator, Stream, ...: only None can be given
};

struct SchemaArgument {
  std::string name;
  ArgumentKind kind;
  bool optional = false;  // T?
  bool keyword_only = false;
  bool is_write = false;  // Tensor(a!)
  std::string alias_set;  // "a" for Tensor(a) and Tensor(a!), else empty
  std::optional<Argument> default_value;
};

struct SchemaReturn {
  ArgumentKind kind;
  std::string alias_set;
  bool is_write = false;
};

struct OpSchema {
  std::string name;  // "aten::add.Tensor"; the default overload has no suffix: "aten::relu"
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;
  bool is_random = false;  // draws from a generator (tag nondeterministic_seeded)

  // "aten::add" and "Tensor" ("" for the default overload).
  std::string_view base_name() const;
  std::string_view overload() const;
  // Position of an argument; nullopt when the schema has none of that name.
  std::optional<size_t> find(std::string_view argument) const;
  bool is_mutable() const;  // writes to an argument
  bool is_view() const;     // an output aliases an argument without writing it
  // Does more than compute its outputs: asserts, prints, writes. Never dropped, merged or reordered.
  bool has_side_effects() const;
};

// The schema of an op by its full name. The reference is valid for the process's life.
// find_schema returns null and get_schema throws Error (with near names) for an unknown op.
const OpSchema* find_schema(std::string_view op);
const OpSchema& get_schema(std::string_view op);

}  // namespace transporters
