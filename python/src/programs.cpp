#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/utils/pybind.h>

#include "arguments.h"
#include "bindings.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/graph/verify.h"
#include "transporters/runners/interpreter.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

// What an interpreter gives: tensors, numbers, strings and None.
py::object to_python(const c10::IValue& value) {
  if (value.isTensor()) return py::cast(value.toTensor());
  if (value.isBool()) return py::bool_(value.toBool());
  if (value.isInt()) return py::int_(value.toInt());
  if (value.isDouble()) return py::float_(value.toDouble());
  if (value.isString()) return py::str(value.toStringRef());
  if (value.isNone()) return py::none();
  throw InternalError("an output is a " + value.tagKind());
}

std::vector<py::object> run(Interpreter& interpreter, const std::vector<at::Tensor>& inputs) {
  std::vector<c10::IValue> outputs;
  {
    const py::gil_scoped_release release;
    outputs = interpreter.run(inputs);
  }
  std::vector<py::object> objects;
  for (const c10::IValue& value : outputs) objects.push_back(to_python(value));
  return objects;
}

// ("parameter", "name", value name or None, constant, whether the value is a number) of each entry of the signature.
std::vector<py::tuple> inputs_of(const Program& program) {
  constexpr const char* kKinds[] = {"parameter", "buffer", "constant", "user_input"};
  std::vector<py::tuple> entries;
  for (const InputSpec& input : program.inputs)
    entries.push_back(py::make_tuple(kKinds[static_cast<size_t>(input.kind)], input.target,
                                     input.value ? py::object(py::str(input.value->name())) : py::none(),
                                     from_constant(input.constant), input.value && !input.value->is_tensor()));
  return entries;
}

// The same of the results; a number can be an expression without a value.
std::vector<py::tuple> outputs_of(const Program& program) {
  constexpr const char* kKinds[] = {"user_output", "buffer_mutation", "user_input_mutation"};
  std::vector<py::tuple> entries;
  for (const OutputSpec& output : program.outputs) {
    const auto* expr = std::get_if<Expr>(&output.constant);
    const bool is_number = output.value ? !output.value->is_tensor() : expr && !expr->is_constant();
    entries.push_back(py::make_tuple(kKinds[static_cast<size_t>(output.kind)], output.target,
                                     output.value ? py::object(py::str(output.value->name())) : py::none(),
                                     from_constant(output.constant), is_number));
  }
  return entries;
}

}  // namespace

void bind_programs(py::module_& module) {
  module.def(
      "leaf_paths", [](const std::string& spec) { return TreeSpec::loads(spec).leaf_paths(); },
      "Dotted paths of the leaves of a tree that treespec_dumps wrote.");

  py::class_<Program, std::shared_ptr<Program>>(module, "Program")
      .def("__str__", &Program::str)
      .def("clone", [](const Program& program) { return std::make_shared<Program>(program.clone()); })
      .def("verify", [](const Program& program) { verify(program); })
      .def("save", [](const Program& program, const std::filesystem::path& path) { dynamo::save(program, path); })
      .def_property_readonly("inputs", &inputs_of)
      .def_property_readonly("outputs", &outputs_of)
      .def_readwrite("architecture", &Program::architecture)
      .def_property_readonly("in_spec", [](const Program& program) { return program.in_spec.dumps(); })
      .def_property_readonly("out_spec", [](const Program& program) { return program.out_spec.dumps(); })
      .def_property_readonly("ops",
                             [](const Program& program) {
                               std::map<std::string, int> counts;
                               for (const Node& node : *program.graph) ++counts[node.op()];
                               return counts;
                             })
      .def_property_readonly("example_inputs", [](const Program& program) {
        std::map<std::string, at::Tensor> tensors;
        for (const ExampleInput& example : program.example_inputs) tensors[example.path] = to_tensor(example.data);
        return tensors;
      });
  module.def("load_program",
             [](const std::filesystem::path& path) { return std::make_shared<Program>(dynamo::load(path)); });

  py::class_<Interpreter>(module, "Interpreter")
      .def(py::init<const Program&>())
      .def_property_readonly("input_names", &Interpreter::input_names)
      .def_property_readonly("output_names", &Interpreter::output_names)
      .def("buffer", &Interpreter::buffer)
      .def("run", &run);
}

}  // namespace transporters::python
