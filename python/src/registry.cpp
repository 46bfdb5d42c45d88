// Python functions in the engine's registry.
#include "transporters/registry/registry.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "loans.h"
#include "onnx_arguments.h"
#include "python_errors.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

// Copied and dropped by the engine with and without the GIL.
class Function {
 public:
  explicit Function(py::function function)
      : function_(new py::function(std::move(function)), [](py::function* held) {
          const py::gil_scoped_acquire gil;
          delete held;
        }) {}

  template <typename... Arguments>
  py::object operator()(Arguments&&... arguments) const {
    return (*function_)(std::forward<Arguments>(arguments)...);
  }

 private:
  std::shared_ptr<py::function> function_;
};

// Whether the function changed anything: what it did counts as well as what it says.
bool has_changed(const py::object& answer, const Loans& loans) {
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw py::error_already_set();
  return truth == 1 || loans.has_changed();
}

NodeFix node_fix(Function fix) {
  return [fix](Program& program, Node& node) {
    return call_user([&] {
      Loans loans(&program);
      return has_changed(fix(loans.lend(&program), loans.lend(&node)), loans);
    });
  };
}

ProgramFix program_fix(Function fix) {
  return [fix](Program& program) {
    return call_user([&] {
      Loans loans(&program);
      return has_changed(fix(loans.lend(&program)), loans);
    });
  };
}

onnx::OnnxTranslation translation(Function translate) {
  return [translate](onnx::Lowering& lowering, const Node& node) {
    return call_user([&]() -> onnx::Outputs {
      // Only reads are allowed, which needs no const of its own on the Python side.
      Loans loans(const_cast<Program*>(&lowering.program()), false);
      const py::object result = translate(loans.lend(&lowering), loans.lend(const_cast<Node*>(&node)));
      if (py::isinstance<Loan<onnx::Value>>(result)) return {&result.cast<Loan<onnx::Value>&>().get()};
      if (py::isinstance<py::list>(result) || py::isinstance<py::tuple>(result)) {
        auto values = to_values(result);
        if (values.size() == node.outputs().size()) return values;
        throw lowering.error(node, "its translation gives " + std::to_string(values.size()) + " values for " +
                                       std::to_string(node.outputs().size()) + " outputs");
      }
      throw lowering.error(node, "its translation gives a " +
                                     std::string(py::str(py::type::of(result).attr("__name__"))) +
                                     ", expected an OnnxValue, or a list with one for each output");
    });
  };
}

std::function<bool(onnx::Model&)> ir_fix(Function fix) {
  return [fix](onnx::Model& model) {
    return call_user([&] {
      Loans loans(nullptr);
      return has_changed(fix(loans.lend(&model)), loans);
    });
  };
}

}  // namespace

void bind_registry(py::module_& module) {
  module.def("check_backend", [](const std::string& backend) { check_backend(backend); });
  Registry& registry = Registry::global();
  const auto id = [](RegistrationId made) { return static_cast<uint64_t>(made); };
  module.def("register_node_fix", [&registry, id](const std::string& backend, std::string name, py::function fix) {
    return id(registry.register_fx_node_fix(backend, std::move(name), node_fix(Function(std::move(fix)))));
  });
  module.def("register_program_fix", [&registry, id](const std::string& backend, std::string name, py::function fix) {
    return id(registry.register_fx_program_fix(backend, std::move(name), program_fix(Function(std::move(fix)))));
  });
  module.def("register_translation", [&registry, id](const std::vector<std::string>& ops, py::function translate) {
    return id(registry.register_onnx_translation(ops, translation(Function(std::move(translate)))));
  });
  module.def("register_ir_fix", [&registry, id](std::string name, py::function fix) {
    return id(registry.register_onnx_ir_fix(std::move(name), ir_fix(Function(std::move(fix)))));
  });
  module.def("unregister", [&registry](uint64_t made) { registry.unregister(static_cast<RegistrationId>(made)); });
}

}  // namespace transporters::python
