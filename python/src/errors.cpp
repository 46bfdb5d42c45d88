#include "transporters/error.h"

#include "bindings.h"

namespace py = pybind11;

namespace transporters::python {

// Error becomes transporters.ExportError with its context as attributes; InternalError an exception of its own.
void bind_errors(py::module_& module) {
  static PyObject* export_error = nullptr;
  static PyObject* internal_error = nullptr;
  export_error = PyErr_NewExceptionWithDoc("transporters.ExportError",
                                           "What an export can't do or was given wrong: stage, op and module say where.",
                                           PyExc_RuntimeError, nullptr);
  internal_error = PyErr_NewExceptionWithDoc("transporters.InternalError",
                                             "A broken invariant of transporters: please report it.",
                                             PyExc_RuntimeError, nullptr);
  module.attr("ExportError") = py::handle(export_error);
  module.attr("InternalError") = py::handle(internal_error);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      py::object instance = py::reinterpret_borrow<py::object>(export_error)(error.what());
      instance.attr("message") = error.message();
      instance.attr("stage") = error.context().stage;
      instance.attr("op") = error.context().op;
      instance.attr("module") = error.context().module;
      instance.attr("file") = error.context().file;
      PyErr_SetObject(export_error, instance.ptr());
    } catch (const InternalError& error) {
      PyErr_SetString(internal_error, error.what());
    }
  });
}

}  // namespace transporters::python
