// Constant arguments <-> c10::IValue, guided by the schema's argument kinds.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include "transporters/graph/schema.h"

namespace transporters {

// A constant as an Argument. Symbolic sizes are not constants: throws Error for them, for tensors, and for types that
// no Argument has (generators, streams).
Argument to_argument(const c10::IValue& value, ArgumentKind kind);
// The IValue that a schema argument of that kind takes. Values of the graph and symbolic sizes are not constants:
// throws Error for them, and for an argument that does not fit the kind.
c10::IValue to_ivalue(const Argument& argument, ArgumentKind kind);

// "contiguous_format" and "strided", as Python names them; the readers throw Error naming the known ones.
std::string memory_format_name(c10::MemoryFormat format);
c10::MemoryFormat parse_memory_format(const std::string& name);
std::string layout_name(c10::Layout layout);
c10::Layout parse_layout(const std::string& name);

}  // namespace transporters
