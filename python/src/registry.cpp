#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "transporters/registry/registry.h"

namespace py = pybind11;

namespace transporters::python {

void bind_registry(py::module_& module) {
  module.def("check_backend", [](const std::string& backend) { check_backend(backend); });
}

}  // namespace transporters::python
