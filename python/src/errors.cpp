#include "bindings.h"
#include "python_errors.h"
#include "transporters/error.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

PyObject* export_error = nullptr;
PyObject* internal_error = nullptr;

struct Kept {
  py::error_already_set exception;
  std::string line;
};
thread_local std::unique_ptr<Kept> kept;

}  // namespace

py::object to_export_error(const Error& error) {
  py::object instance = py::reinterpret_borrow<py::object>(export_error)(error.what());
  instance.attr("message") = error.message();
  instance.attr("stage") = error.context().stage;
  instance.attr("op") = error.context().op;
  instance.attr("module") = error.context().module;
  instance.attr("file") = error.context().file;
  return instance;
}

std::string keep_exception(const py::error_already_set& exception) {
  std::string line = std::string(py::str(exception.type().attr("__name__")));
  const std::string message = py::str(exception.value());
  if (!message.empty()) line += ": " + message;
  kept = std::make_unique<Kept>(Kept{exception, line});
  return line;
}

void forget_exception() { kept.reset(); }

void raise_kept_exception(const std::string& what) {
  if (kept == nullptr) return;
  const auto held = std::move(kept);
  if (what.find(held->line) == std::string::npos) return;  // another failure came after it
  held->exception.value().attr("add_note")("while exporting: " + what);
  throw py::error_already_set(held->exception);
}

// Error becomes transporters.ExportError with its context as attributes; InternalError an exception of its own.
void bind_errors(py::module_& module) {
  export_error = PyErr_NewExceptionWithDoc(
      "transporters.ExportError", "What an export can't do or was given wrong: stage, op and module say where.",
      PyExc_RuntimeError, nullptr);
  internal_error =
      PyErr_NewExceptionWithDoc("transporters.InternalError", "A broken invariant of transporters: please report it.",
                                PyExc_RuntimeError, nullptr);
  module.attr("ExportError") = py::handle(export_error);
  module.attr("InternalError") = py::handle(internal_error);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      PyErr_SetObject(export_error, to_export_error(error).ptr());
    } catch (const InternalError& error) {
      PyErr_SetString(internal_error, error.what());
    }
  });
}

}  // namespace transporters::python
