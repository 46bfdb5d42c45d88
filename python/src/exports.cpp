#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include "arguments.h"
#include "bindings.h"
#include "python_errors.h"
#include "source_line.h"
#include "transporters/export/exporters.h"
#include "transporters/onnx/writer.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

// A dim as the package passes it: None is static, "name" is automatic under that name, (name, min, max) must hold.
Dim to_dim(py::handle object) {
  if (object.is_none()) return Dim::fixed();
  if (py::isinstance<py::str>(object)) return Dim::automatic(object.cast<std::string>());
  const auto [name, min, max] = object.cast<std::tuple<std::string, int64_t, std::optional<int64_t>>>();
  return Dim(name, min, max.value_or(symbolic::Range::kInfinity));
}

using PythonInput = std::tuple<std::string, py::object, std::vector<py::object>>;  // path, sample or constant, dims
using PythonState = std::tuple<std::string, at::Tensor, bool, bool>;  // name, tensor, is a parameter, persistent
using PythonOutput = std::tuple<std::vector<std::pair<std::string, py::object>>, std::string>;  // leaves, spec

// torch passes a symbolic number where an op takes a tensor as a 0-dim tensor of no meaning, and leaves the number
// itself in an attribute of the Python object.
std::optional<c10::Scalar> wrapped_number(const at::Tensor& tensor) {
  const py::gil_scoped_acquire gil;
  const auto object = py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
  if (!py::hasattr(object, "_wrapped_number")) return std::nullopt;
  const py::object number = object.attr("_wrapped_number");
  if (torch::is_symint(number)) return c10::Scalar(number.cast<c10::SymInt>());
  if (torch::is_symfloat(number)) return c10::Scalar(number.cast<c10::SymFloat>());
  if (torch::is_symbool(number)) return c10::Scalar(number.cast<c10::SymBool>());
  return std::nullopt;
}

TraceResult to_result(const PythonOutput& output) {
  TraceResult result;
  for (const auto& [path, leaf] : std::get<0>(output)) {
    if (THPVariable_Check(leaf.ptr()))
      result.outputs.push_back({path, THPVariable_Unpack(leaf.ptr())});
    else
      result.outputs.push_back({path, {}, to_constant(leaf, path)});
  }
  result.spec = TreeSpec::loads(std::get<1>(output));
  return result;
}

std::pair<std::shared_ptr<Program>, std::vector<std::string>> trace_callable(
    const py::function& forward, const std::vector<PythonInput>& inputs, const std::vector<PythonState>& state,
    const std::string& in_spec, const std::string& architecture, const std::string& config,
    const std::vector<std::string>& backends, bool is_training) {
  ExportTarget target;
  target.forward = [&forward](const std::vector<at::Tensor>& tensors) {
    return to_result(forward(tensors).cast<PythonOutput>());
  };
  target.in_spec = TreeSpec::loads(in_spec);
  target.architecture = architecture;
  target.is_training = is_training;
  target.source = [] {
    const py::gil_scoped_acquire gil;  // ATen's Python functions give it up around each op
    return source_line();
  };
  target.answer_from_samples = true;
  target.wrapped_number = wrapped_number;
  DynamoConfig dynamo = DynamoConfig::from_json(config);
  for (const auto& [path, value, dims] : inputs) {
    if (!THPVariable_Check(value.ptr())) {
      target.inputs.push_back({path, {}, {}, to_constant(value, path)});
      continue;
    }
    target.inputs.push_back({path, THPVariable_Unpack(value.ptr()), {}});
    AxisDims axes;
    for (size_t axis = 0; axis < dims.size(); ++axis) axes[static_cast<int64_t>(axis)] = to_dim(dims[axis]);
    dynamo.dynamic_shapes.set(path, std::move(axes));
  }
  for (const auto& [name, tensor, is_parameter, persistent] : state)
    target.state.push_back({name, tensor, is_parameter ? InputKind::Parameter : InputKind::Buffer, persistent});
  std::vector<std::string> notes;
  auto program = std::make_shared<Program>(trace_program(target, dynamo, backends, Registry::global(), &notes));
  return {std::move(program), std::move(notes)};
}

ExportedComponent lower(const Program& program, ExportFormat format, const std::string& config) {
  if (format == ExportFormat::Dynamo)
    return lower_dynamo(program.clone(), DynamoConfig::from_json(config), Registry::global());
  return lower_onnx(program.clone(), OnnxConfig::from_json(config), Registry::global());
}

// The component's fields of ExportMetadata, free-form ones as JSON texts.
py::dict describe(const ExportMetadata& metadata) {
  using namespace py::literals;
  return py::dict("architecture"_a = metadata.architecture, "packages"_a = metadata.packages,
                  "export_config"_a = metadata.export_config, "export_dtype"_a = metadata.export_dtype,
                  "export_device"_a = metadata.export_device, "kwargs"_a = metadata.kwargs,
                  "in_spec"_a = metadata.in_spec, "out_spec"_a = metadata.out_spec,
                  "in_constants"_a = metadata.in_constants, "out_constants"_a = metadata.out_constants);
}

ExportConfig parse_config(ExportFormat format, const std::string& config) {
  if (format == ExportFormat::Dynamo) return DynamoConfig::from_json(config);
  return OnnxConfig::from_json(config);
}

}  // namespace

void bind_exports(py::module_& module) {
  module.def("trace", &trace_callable, py::arg("forward"), py::arg("inputs"), py::arg("state"), py::arg("in_spec"),
             py::arg("architecture"), py::arg("config"), py::arg("backends"), py::arg("is_training"));

  py::class_<ExportedComponent, std::shared_ptr<ExportedComponent>>(module, "Component")
      .def_property_readonly(
          "program",
          [](const ExportedComponent& component) { return std::make_shared<Program>(component.program.clone()); })
      .def_property_readonly("metadata",
                             [](const ExportedComponent& component) { return describe(component.metadata); })
      .def(
          "add_package",
          [](ExportedComponent& component, std::string name, std::string version) {
            component.metadata.packages.emplace_back(std::move(name), std::move(version));
          },
          "Notes the version of a package that took part.")
      .def_property_readonly("onnx_text", [](const ExportedComponent& component) {
        return component.onnx ? component.onnx->str() : std::string();
      });
  module.def("lower", [](const Program& program, const std::string& format, const std::string& config) {
    return raising_user_errors(
        [&] { return std::make_shared<ExportedComponent>(lower(program, parse_export_format(format), config)); });
  });

  py::class_<ExportedModel>(module, "ExportedModel")
      .def(py::init([](const std::string& format, const std::string& config) {
        const ExportFormat parsed = parse_export_format(format);
        return ExportedModel(parsed, parse_config(parsed, config));
      }))
      .def("add",
           [](ExportedModel& model, const std::string& name, const ExportedComponent& component) {
             model.add(name, {component.program.clone(), component.onnx, component.metadata});
           })
      .def("set_config_files", &ExportedModel::set_config_files)
      .def("save", &ExportedModel::save, py::call_guard<py::gil_scoped_release>())
      .def("save_pretrained", &ExportedModel::save_pretrained, py::arg("folder"), py::arg("single_file") = false,
           py::call_guard<py::gil_scoped_release>());
}

}  // namespace transporters::python
