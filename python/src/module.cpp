#include "bindings.h"
#include "transporters/version.h"

PYBIND11_MODULE(_C, module) {
  module.attr("__version__") = TRANSPORTERS_VERSION;
  transporters::python::bind_errors(module);
  transporters::python::bind_modules(module);
  transporters::python::bind_symbols(module);
  transporters::python::bind_programs(module);
  transporters::python::bind_graph(module);
  transporters::python::bind_onnx_graph(module);
  transporters::python::bind_lowering(module);
  transporters::python::bind_registry(module);
  transporters::python::bind_exports(module);
}
