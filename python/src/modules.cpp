// Which module and which line of the user's code run now.
#include <ATen/FunctionalTensorWrapper.h>
#include <Python.h>
#include <frameobject.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings.h"
#include "source_line.h"
#include "transporters/trace/fake_tensor.h"
#include "transporters/trace/module_scope.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

struct Entry {
  explicit Entry(std::string name) : path(std::move(name)), scope(path) {}
  std::string path;
  ModuleScope scope;
};

// Whether the tensor stands for a value of the graph, alone or behind torch.vmap.
bool is_traced(const at::Tensor& tensor) {
  return at::functionalization::impl::isFunctionalTensor(tensor) || as_fake(tensor) != nullptr ||
         tensor.key_set().has(c10::DispatchKey::FuncTorchBatched);
}

// Scopes must end in reverse order, which vectors of pointers popped from the back guarantee.
thread_local std::vector<std::unique_ptr<Entry>> entries;

std::vector<std::string>& hidden_folders() {
  static std::vector<std::string> folders;
  return folders;
}

// "modeling_llama.py" for a user's file, "" for files of torch and of this package; told once per code object.
const std::string& user_file(PyCodeObject* code) {
  static std::unordered_map<std::string, std::string> known;
  const char* text = PyUnicode_AsUTF8(code->co_filename);
  const std::string path = text ? text : "";
  const auto [it, is_new] = known.try_emplace(path);
  if (is_new) {
    bool hidden = path.empty() || path[0] == '<';
    for (const std::string& folder : hidden_folders()) hidden = hidden || path.starts_with(folder);
    if (!hidden) it->second = path.substr(path.find_last_of('/') + 1);
  }
  return it->second;
}

}  // namespace

std::string source_line() {
  std::string line;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr && line.empty()) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const std::string& file = user_file(code);
    if (!file.empty()) line = file + ":" + std::to_string(PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return line;
}

void bind_modules(py::module_& module) {
  module.def("enter_module", [](std::string path) { entries.push_back(std::make_unique<Entry>(std::move(path))); });
  module.def("leave_module", [] { entries.pop_back(); });
  module.def(
      "hide_source", [](std::string folder) { hidden_folders().push_back(std::move(folder)); },
      "Frames of files under `folder` are not the user's: their callers are named in their place.");
  module.def("source_line", &source_line);
  module.def("is_traced", &is_traced);
}

}  // namespace transporters::python
