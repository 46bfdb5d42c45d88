#include "arguments.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include "transporters/error.h"
#include "transporters/symbolic/sym_node.h"

namespace py = pybind11;

namespace transporters::python {

Argument to_constant(py::handle object, const std::string& path) {
  if (object.is_none()) return None{};
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (torch::is_symint(object)) return symbolic::to_expr(object.cast<c10::SymInt>());
  if (torch::is_symfloat(object)) return symbolic::to_expr(object.cast<c10::SymFloat>());
  if (torch::is_symbool(object)) return symbolic::to_expr(object.cast<c10::SymBool>());
  if (py::isinstance<py::int_>(object)) return Expr(object.cast<int64_t>());
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  throw Error({.stage = "signature", .op = "", .module = "", .file = ""},
              "'" + path + "' is a " + std::string(py::str(py::type::of(object).attr("__name__"))) +
                  ", which an export can't hold; give tensors, numbers, strings, None, or containers of them that "
                  "torch.utils._pytree knows");
}

py::object from_constant(const Argument& constant) {
  if (const auto* value = std::get_if<bool>(&constant)) return py::bool_(*value);
  if (const auto* value = std::get_if<double>(&constant)) return py::float_(*value);
  if (const auto* value = std::get_if<std::string>(&constant)) return py::str(*value);
  if (const auto* value = std::get_if<Expr>(&constant)) {
    if (const auto integer = value->as_integer()) return py::int_(*integer);
    return py::cast(*value);
  }
  return py::none();
}

}  // namespace transporters::python
