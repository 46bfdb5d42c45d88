// Exceptions of the user's Python functions on their way through the engine.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>

#include "transporters/error.h"

namespace transporters::python {

// transporters.ExportError for an Error, not raised.
pybind11::object to_export_error(const Error& error);

// Keeps the exception and returns one line about it.
std::string keep_exception(const pybind11::error_already_set& exception);
void forget_exception();
// Raises the kept exception, if `what` is about it, with `what` as its note.
void raise_kept_exception(const std::string& what);

// Calls a Python function inside the engine. An exception goes on as Error, which tells its place.
template <typename F>
auto call_user(F&& call) {
  const pybind11::gil_scoped_acquire gil;
  try {
    return call();
  } catch (const pybind11::error_already_set& exception) {
    throw Error(keep_exception(exception));
  }
}

// Runs the engine for Python; what a Python function raised inside comes out as it was raised, traceback included.
template <typename F>
auto raising_user_errors(F&& run) {
  forget_exception();
  try {
    return run();
  } catch (const std::exception& error) {
    raise_kept_exception(error.what());
    throw;
  }
}

}  // namespace transporters::python
