// Arguments of a graph's nodes between Python and Argument.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "loans.h"
#include "transporters/graph/schema.h"

namespace transporters::python {

// A number where the expression is constant, else the Expr.
pybind11::object from_expr(const Expr& expr);
// int, float, bool, Expr, and a value of the graph that is a number. Throws Error naming `what`.
Expr to_expr(pybind11::handle object, const std::string& what);

pybind11::object from_argument(const Argument& argument, Loans& loans);
// What the schema's argument takes. Throws Error naming op and argument for another type, and for values of another
// graph.
Argument to_argument(pybind11::handle object, const SchemaArgument& schema, const std::string& op, Loans& loans);
// All keyword arguments of an op by its schema. Throws Error for unknown names and for required ones that are missing.
std::vector<NamedArgument> to_arguments(const pybind11::kwargs& given, const std::string& op, Loans& loans);

}  // namespace transporters::python
