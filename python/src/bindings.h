// The extension module transporters._C: what the Python package needs of the engine. Everything here is private to the
// package; users see its Python classes.
#pragma once

#include <pybind11/pybind11.h>

namespace transporters::python {

void bind_errors(pybind11::module_& module);
void bind_modules(pybind11::module_& module);
void bind_programs(pybind11::module_& module);
void bind_graph(pybind11::module_& module);
void bind_onnx_graph(pybind11::module_& module);
void bind_lowering(pybind11::module_& module);
void bind_exports(pybind11::module_& module);
void bind_symbols(pybind11::module_& module);
void bind_registry(pybind11::module_& module);

}  // namespace transporters::python
