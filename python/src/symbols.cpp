// Symbolic numbers for Python: what torch's own class for C++ nodes leaves out.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include "bindings.h"
#include "transporters/symbolic/foreign_node.h"
#include "transporters/trace/recorder.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

// torch casts symbolic booleans and floats of Python nodes only; these are made from ours by hand.
py::object symbolic(py::handle cls, const c10::SymNode& node) { return cls(py::cast(node)); }

// Whether the tensor holds a real number that only the data tells.
bool is_unknown_real(const at::Tensor& tensor) {
  Recorder* recorder = Recorder::current();
  return recorder != nullptr && tensor.numel() == 1 && at::isFloatingType(tensor.scalar_type()) &&
         !tensor.key_set().has(c10::DispatchKey::FuncTorchBatched) && !recorder->known_value(tensor);
}

py::object item(const at::Tensor& tensor) {
  // Graphs have no real numbers of their own; a tensor without dims computes alike.
  if (is_unknown_real(tensor)) return py::cast(tensor.reshape(at::IntArrayRef{}));
  at::Scalar number;
  {
    const py::gil_scoped_release release;
    number = tensor.item();
  }
  if (number.isSymInt()) return py::cast(number.toSymInt());
  if (number.isSymFloat()) return symbolic(torch::get_symfloat_class(), number.toSymFloat().toSymNodeImpl());
  if (number.isSymBool()) return symbolic(torch::get_symbool_class(), number.toSymBool().toSymNodeImpl());
  if (number.isBoolean()) return py::bool_(number.toBool());
  if (number.isIntegral(false)) return py::int_(number.toLong());
  if (number.isComplex()) return py::cast(static_cast<std::complex<double>>(number.toComplexDouble()));
  return py::float_(number.toDouble());
}

// torch wraps the Python object of a number's node when the number goes to an op as a float or boolean.
c10::SymNode unwrap(c10::SymNodeImpl* node) {
  auto* python = dynamic_cast<torch::impl::PythonSymNodeImpl*>(node);
  if (python == nullptr) return nullptr;
  const py::gil_scoped_acquire acquire;
  const py::handle object = python->getPyObj();
  return py::isinstance<c10::SymNodeImpl>(object) ? object.cast<c10::SymNode>() : nullptr;
}

}  // namespace

void bind_symbols(py::module_& module) {
  symbolic::set_node_unwrapper(&unwrap);
  module.def(
      "item", &item,
      "Tensor.item for a traced tensor: a number, a symbolic one, or for a real number of the data the tensor itself.");
  module.def("maybe_as_int", [](const c10::SymNode& node) { return node->maybe_as_int(); });
  module.def("maybe_as_bool", [](const c10::SymNode& node) { return node->constant_bool(); });
  module.def("sym_ite", [](const c10::SymNode& condition, const c10::SymNode& if_true, const c10::SymNode& if_false) {
    return condition->sym_ite(if_true, if_false);
  });
  module.def("statically_known_true", [](const c10::SymNode& node) { return node->statically_known_true("", 0); });
}

}  // namespace transporters::python
