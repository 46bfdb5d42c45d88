// onnx::Lowering for translations that are written in Python.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "graph_arguments.h"
#include "onnx_arguments.h"
#include "python_errors.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/onnx/lower.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

using LoweringLoan = Loan<onnx::Lowering>;
using AtenLoan = Loan<Node>;
using OnnxLoan = Loan<onnx::Value>;
using OnnxPtr = LoanPtr<onnx::Value>;
using Dtype = std::optional<ScalarType>;

std::vector<Expr> to_sizes(const py::sequence& objects) {
  std::vector<Expr> sizes;
  for (py::handle object : objects) sizes.push_back(to_expr(object, "a size"));
  return sizes;
}

py::object emit(const LoweringLoan& lowering, const std::string& op, const py::sequence& inputs, size_t outputs,
                const std::string& domain, int64_t version, Dtype dtype, const py::kwargs& attributes) {
  const auto values = lowering->emit_many(op, to_values(inputs), to_attributes(attributes), outputs);
  if (!domain.empty()) {
    values[0]->producer()->domain = domain;
    lowering->model().opsets.try_emplace(domain, version);
  }
  if (dtype)
    for (onnx::Value* value : values) value->type = onnx::to_data_type(*dtype);
  if (values.size() == 1) return py::cast(lowering.loans->lend(values[0]));
  py::tuple tuple(values.size());
  for (size_t i = 0; i < values.size(); ++i) tuple[i] = lowering.loans->lend(values[i]);
  return tuple;
}

}  // namespace

void bind_lowering(py::module_& module) {
  py::class_<LoweringLoan, LoanPtr<onnx::Lowering>>(
      module, "Lowering", "Where a translation reads its node's arguments as ONNX values and emits ONNX nodes.")
      .def_property_readonly(
          "opset", [](const LoweringLoan& l) { return l->opset(); }, "Of ONNX's own domain.")
      // Arguments
      .def(
          "input",
          [](const LoweringLoan& l, const AtenLoan& node, const std::string& name, Dtype dtype) -> OnnxPtr {
            return l.loans->lend(l->input_or_null(*node, name, dtype));
          },
          py::arg("node"), py::arg("argument"), py::arg("dtype") = py::none(),
          "A tensor argument, cast to `dtype` where given; a number becomes a constant. None for None.")
      .def(
          "inputs",
          [](const LoweringLoan& l, const AtenLoan& node, const std::string& name, Dtype dtype) {
            py::list values;
            for (onnx::Value* value : l->inputs(*node, name, dtype)) values.append(l.loans->lend(value));
            return values;
          },
          py::arg("node"), py::arg("argument"), py::arg("dtype") = py::none(), "A list of tensors.")
      .def(
          "value",
          [](const LoweringLoan& l, const Loan<Value>& value) { return l.loans->lend(l->value(&value.get())); },
          py::arg("value"), "What a value of the program became.")
      .def(
          "dim",
          [](const LoweringLoan& l, const AtenLoan& node, const std::string& name, const std::string& tensor) {
            return l->dim(*node, name, tensor);
          },
          py::arg("node"), py::arg("argument"), py::arg("tensor") = "self", "A dimension counted from the front.")
      .def(
          "dims",
          [](const LoweringLoan& l, const AtenLoan& node, const std::string& name, const std::string& tensor) {
            return l->dims(*node, name, tensor);
          },
          py::arg("node"), py::arg("argument"), py::arg("tensor") = "self",
          "Dimensions counted from the front; all of them for none.")
      // Nodes
      .def("emit", &emit, py::arg("op"), py::arg("inputs"), py::kw_only(), py::arg("outputs") = 1,
           py::arg("domain") = "", py::arg("version") = 1, py::arg("dtype") = py::none(),
           "An ONNX node at the end of the model: its output, or a tuple of `outputs` of them. Further keywords are "
           "attributes. `domain` and its `version` are for ops that are not ONNX's own; `dtype` is that of the outputs "
           "where it is not the first input's.")
      .def(
          "cast",
          [](const LoweringLoan& l, const OnnxLoan& value, ScalarType dtype) {
            return l.loans->lend(l->cast(&value.get(), dtype));
          },
          py::arg("value"), py::arg("dtype"), "The value itself where it has that type.")
      .def(
          "once",
          [](const LoweringLoan& l, const std::string& key, const py::function& make) {
            return l.loans->lend(l->once(key, [&] { return to_value(make()); }));
          },
          py::arg("key"), py::arg("make"),
          "What `make()` gave at the first call with this key: for values that many nodes read. The key names all that "
          "it "
          "depends on.")
      // Constants
      .def(
          "constant",
          [](const LoweringLoan& l, const at::Tensor& tensor) {
            return l.loans->lend(l->constant(to_tensor_data(tensor.detach().contiguous())));
          },
          py::arg("tensor"), "Equal ones are stored once.")
      .def(
          "scalar",
          [](const LoweringLoan& l, double value, ScalarType dtype) { return l.loans->lend(l->scalar(value, dtype)); },
          py::arg("value"), py::arg("dtype"))
      .def(
          "vector",
          [](const LoweringLoan& l, const std::vector<int64_t>& values) { return l.loans->lend(l->vector(values)); },
          py::arg("values"), "1-D int64: axes, constant shapes.")
      // Sizes
      .def(
          "shape",
          [](const LoweringLoan& l, const py::sequence& sizes) { return l.loans->lend(l->shape(to_sizes(sizes))); },
          py::arg("sizes"), "Sizes as a 1-D int64 tensor, computed where they are dynamic.")
      .def(
          "size",
          [](const LoweringLoan& l, py::handle size) { return l.loans->lend(l->size(to_expr(size, "a size"))); },
          py::arg("size"), "One size as an int64 scalar.")
      .def(
          "number",
          [](const LoweringLoan& l, py::handle number, ScalarType dtype) {
            return l.loans->lend(l->number(to_expr(number, "a number"), dtype));
          },
          py::arg("number"), py::arg("dtype"), "A number or an Expr as a scalar of that type.")
      .def(
          "is_at_least",
          [](const LoweringLoan& l, py::handle size, int64_t bound) {
            return l->is_at_least(to_expr(size, "a size"), bound);
          },
          py::arg("size"), py::arg("bound"), "Whether the ranges of the dynamic sizes make it so.")
      // Layout
      .def(
          "unsqueeze",
          [](const LoweringLoan& l, const OnnxLoan& value, const std::vector<int64_t>& dims) {
            return l.loans->lend(l->unsqueeze(&value.get(), dims));
          },
          py::arg("value"), py::arg("dims"))
      .def(
          "squeeze",
          [](const LoweringLoan& l, const OnnxLoan& value, const std::vector<int64_t>& dims) {
            return l.loans->lend(l->squeeze(&value.get(), dims));
          },
          py::arg("value"), py::arg("dims"))
      .def(
          "transpose",
          [](const LoweringLoan& l, const OnnxLoan& value, const std::vector<int64_t>& order) {
            return l.loans->lend(l->transpose(&value.get(), order));
          },
          py::arg("value"), py::arg("order"))
      .def(
          "error",
          [](const LoweringLoan& l, const AtenLoan& node, const std::string& message) {
            return to_export_error(l->error(*node, message));
          },
          py::arg("node"), py::arg("message"), "An ExportError that names the op and its module, to raise.");
}

}  // namespace transporters::python
