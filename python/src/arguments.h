// Constants of a signature between Python and Argument.
#pragma once

#include <pybind11/pybind11.h>

#include "transporters/graph/argument.h"

namespace transporters::python {

// None, bool, int, float, str and symbolic numbers; throws Error that names `path` for anything else.
Argument to_constant(pybind11::handle object, const std::string& path);
// The Python value of a constant; an expression over symbols is an Expr.
pybind11::object from_constant(const Argument& constant);

}  // namespace transporters::python
