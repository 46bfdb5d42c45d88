#include "onnx_arguments.h"

#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

onnx::Tensor to_tensor_attribute(py::handle object) {
  return onnx::Tensor::of(
      to_tensor_data(THPVariable_Unpack(object.ptr()).detach().clone(at::MemoryFormat::Contiguous)));
}

py::object to_text(const std::string& bytes) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

// The attribute's elements as T when all of them are of that kind.
template <typename T, typename F>
std::optional<std::vector<T>> elements(const py::sequence& list, F is_kind) {
  std::vector<T> values;
  for (py::handle element : list) {
    if (!is_kind(element)) return std::nullopt;
    values.push_back(element.cast<T>());
  }
  return values;
}

bool is_integer(py::handle object) { return py::isinstance<py::int_>(object); }
bool is_number(py::handle object) { return py::isinstance<py::float_>(object) || is_integer(object); }
bool is_text(py::handle object) { return py::isinstance<py::str>(object); }

}  // namespace

onnx::AttributeValue to_attribute(py::handle object, const std::string& name) {
  if (py::isinstance<py::bool_>(object)) return int64_t{object.cast<bool>()};
  if (is_integer(object)) return object.cast<int64_t>();
  if (py::isinstance<py::float_>(object)) return object.cast<float>();
  if (is_text(object)) return object.cast<std::string>();
  if (THPDtype_Check(object.ptr())) return static_cast<int64_t>(onnx::to_data_type(object.cast<ScalarType>()));
  if (THPVariable_Check(object.ptr())) return to_tensor_attribute(object);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    const auto list = py::reinterpret_borrow<py::sequence>(object);
    if (const auto integers = elements<int64_t>(list, is_integer)) return *integers;
    if (const auto reals = elements<float>(list, is_number)) return *reals;
    if (const auto texts = elements<std::string>(list, is_text)) return *texts;
  }
  throw Error({.stage = "onnx"},
              "attribute '" + name + "' is a " + std::string(py::str(py::type::of(object).attr("__name__"))) +
                  ", expected a number, a string, a torch.dtype, a torch.Tensor, or a list of numbers "
                  "or strings");
}

onnx::Attributes to_attributes(const py::kwargs& given) {
  onnx::Attributes attributes;
  for (const auto& [key, object] : given) {
    const auto name = key.cast<std::string>();
    if (!object.is_none()) attributes.push_back({name, to_attribute(object, name)});
  }
  return attributes;
}

py::object from_tensor(const onnx::Tensor& tensor) {
  if (!onnx::to_scalar_type(tensor.type)) return py::none();
  return py::cast(to_tensor(tensor.data).clone());
}

py::object from_attribute(const onnx::AttributeValue& value, Loans& loans) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return py::int_(*integer);
  if (const auto* real = std::get_if<float>(&value)) return py::float_(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return to_text(*text);
  if (const auto* tensor = std::get_if<onnx::Tensor>(&value)) return from_tensor(*tensor);
  if (const auto* graph = std::get_if<std::shared_ptr<onnx::Graph>>(&value)) return py::cast(loans.lend(graph->get()));
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) return py::cast(*integers);
  if (const auto* reals = std::get_if<std::vector<float>>(&value)) return py::cast(*reals);
  py::list list;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& text : *texts) list.append(to_text(text));
    return list;
  }
  if (const auto* tensors = std::get_if<std::vector<onnx::Tensor>>(&value)) {
    for (const onnx::Tensor& tensor : *tensors) list.append(from_tensor(tensor));
    return list;
  }
  if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<onnx::Graph>>>(&value)) {
    for (const auto& graph : *graphs) list.append(loans.lend(graph.get()));
    return list;
  }
  return py::none();
}

onnx::Value* to_value(py::handle object) {
  if (object.is_none()) return nullptr;
  if (py::isinstance<Loan<onnx::Value>>(object)) return &object.cast<Loan<onnx::Value>&>().get();
  throw Error({.stage = "onnx"},
              "expected an OnnxValue or None, got a " + std::string(py::str(py::type::of(object).attr("__name__"))) +
                  (py::isinstance<Loan<Value>>(object) ? "; lowering.value() gives the OnnxValue" : ""));
}

std::vector<onnx::Value*> to_values(const py::sequence& objects) {
  std::vector<onnx::Value*> values;
  for (py::handle object : objects) values.push_back(to_value(object));
  return values;
}

}  // namespace transporters::python
