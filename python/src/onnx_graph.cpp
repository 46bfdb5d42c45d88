// ONNX models for Python's fixes.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "onnx_arguments.h"
#include "transporters/graph/tensor_torch.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

using ModelLoan = Loan<onnx::Model>;
using GraphLoan = Loan<onnx::Graph>;
using NodeLoan = Loan<onnx::Node>;
using ValueLoan = Loan<onnx::Value>;

template <typename Range>
py::list lend_all(Loans& loans, const Range& objects) {
  py::list list;
  for (const auto& object : objects) list.append(loans.lend(&*object));
  return list;
}

py::list lend_values(Loans& loans, std::span<onnx::Value* const> values) {
  py::list list;
  for (onnx::Value* value : values) list.append(loans.lend(value));
  return list;
}

py::object shape_of(const ValueLoan& value) {
  if (!value->shape) return py::none();
  py::list shape;
  for (const onnx::Dim& dim : *value->shape) {
    if (dim.is_known())
      shape.append(dim.value);
    else
      shape.append(dim.param.empty() ? py::object(py::none()) : py::object(py::str(dim.param)));
  }
  return shape;
}

void bind_values(py::module_& module) {
  py::class_<ValueLoan, LoanPtr<onnx::Value>>(module, "OnnxValue",
                                              "What an ONNX node makes, an input or an initializer.")
      .def_property_readonly("name", [](const ValueLoan& value) { return value->name(); })
      .def_property_readonly(
          "dtype", [](const ValueLoan& value) { return onnx::to_scalar_type(value->type); },
          "None where the type is not known or torch has none like it.")
      .def_property_readonly("shape", &shape_of,
                             "Numbers, names of dynamic sizes, None for unknown; None without a rank.")
      .def_property_readonly("producer", [](const ValueLoan& value) { return value.loans->lend(value->producer()); })
      .def_property_readonly(
          "users",
          [](const ValueLoan& value) {
            std::vector<onnx::Node*> users;
            for (const onnx::Use& use : value->uses())
              if (std::ranges::find(users, use.node) == users.end()) users.push_back(use.node);
            return lend_all(*value.loans, users);
          },
          "Nodes that read it, each once. Outputs of the graph are not among them.")
      .def_property_readonly(
          "tensor",
          [](const ValueLoan& value) -> py::object {
            return value->initializer ? from_tensor(*value->initializer) : py::none();
          },
          "A copy of an initializer's tensor; None for other values.")
      .def("__repr__",
           [](const ValueLoan& value) { return "%" + value->name() + ": " + std::string(onnx::name_of(value->type)); });

  py::class_<NodeLoan, LoanPtr<onnx::Node>>(module, "OnnxNode")
      .def_property(
          "op", [](const NodeLoan& node) { return node->op; },
          [](const NodeLoan& node, std::string op) {
            node.loans->set_changed();
            node->op = std::move(op);
          })
      .def_property(
          "domain", [](const NodeLoan& node) { return node->domain; },
          [](const NodeLoan& node, std::string domain) {
            node.loans->set_changed();
            node->domain = std::move(domain);
          },
          "\"\" is ONNX's own; others need their version in the model's opsets.")
      .def_property_readonly("name", [](const NodeLoan& node) { return node->name; })
      .def_property_readonly(
          "inputs", [](const NodeLoan& node) { return lend_values(*node.loans, node->inputs()); },
          "None where an optional input is left out.")
      .def_property_readonly("outputs", [](const NodeLoan& node) { return lend_values(*node.loans, node->outputs()); })
      .def_property_readonly("attributes",
                             [](const NodeLoan& node) {
                               py::dict attributes;
                               for (const auto& [name, value] : node->attributes)
                                 attributes[py::str(name)] = from_attribute(value, *node.loans);
                               return attributes;
                             })
      .def(
          "set",
          [](const NodeLoan& node, const std::string& name, py::handle value) {
            node.loans->set_changed();
            node->set(name, to_attribute(value, name));
          },
          py::arg("attribute"), py::arg("value"), "Sets or replaces an attribute.")
      .def(
          "set_input",
          [](const NodeLoan& node, size_t index, const ValueLoan* value) {
            node.loans->set_changed();
            node->set_input(index, value ? &value->get() : nullptr);
          },
          py::arg("index"), py::arg("value").none(true))
      .def_property_readonly("next", [](const NodeLoan& node) { return node.loans->lend(node->next()); })
      .def_property_readonly("prev", [](const NodeLoan& node) { return node.loans->lend(node->prev()); })
      .def("__repr__", [](const NodeLoan& node) { return node->op + " '" + node->name + "'"; });
}

LoanPtr<onnx::Node> insert(const GraphLoan& graph, const NodeLoan* before, const std::string& op,
                           const py::sequence& inputs, size_t outputs, const std::string& domain,
                           std::optional<ScalarType> dtype, const py::kwargs& attributes) {
  graph.loans->set_changed();
  onnx::Node* node = graph->insert(before ? &before->get() : nullptr, op, to_values(inputs), to_attributes(attributes),
                                   std::vector<std::string>(outputs, op));
  node->domain = domain;
  node->name = node->output()->name();
  if (dtype)
    for (onnx::Value* output : node->outputs()) output->type = onnx::to_data_type(*dtype);
  return graph.loans->lend(node);
}

void bind_model(py::module_& module) {
  py::class_<GraphLoan, LoanPtr<onnx::Graph>>(module, "OnnxGraph")
      .def_property_readonly(
          "nodes", [](const GraphLoan& graph) { return lend_all(*graph.loans, graph->nodes()); },
          "The nodes as they stand now, in order.")
      .def_property_readonly("inputs",
                             [](const GraphLoan& graph) { return lend_values(*graph.loans, graph->inputs()); })
      .def_property_readonly("outputs",
                             [](const GraphLoan& graph) { return lend_values(*graph.loans, graph->outputs()); })
      .def_property_readonly("initializers",
                             [](const GraphLoan& graph) { return lend_all(*graph.loans, graph->initializers()); })
      .def("insert", &insert, py::arg("before").none(true), py::arg("op"), py::arg("inputs"), py::kw_only(),
           py::arg("outputs") = 1, py::arg("domain") = "", py::arg("dtype") = py::none(),
           "A new node before another (None: at the end). Further keywords are attributes; `dtype` is that of its "
           "outputs.")
      .def(
          "add_initializer",
          [](const GraphLoan& graph, const std::string& name, const at::Tensor& tensor) {
            graph.loans->set_changed();
            const at::Tensor owned = tensor.detach().clone(at::MemoryFormat::Contiguous);
            return graph.loans->lend(graph->add_initializer(name, onnx::Tensor::of(to_tensor_data(owned))));
          },
          py::arg("name"), py::arg("tensor"))
      .def(
          "replace_all_uses",
          [](const GraphLoan& graph, const ValueLoan& from, const ValueLoan& to) {
            if (graph->is_output(&from.get()))
              throw Error({.stage = "onnx"}, "'" + from->name() +
                                                 "' is an output of the model, whose name it carries; let its "
                                                 "node compute something else");
            graph.loans->set_changed();
            graph->replace_all_uses(&from.get(), &to.get());
          },
          py::arg("old"), py::arg("new"), "All nodes that read `old` read `new`. Throws for an output of the model.")
      .def(
          "erase",
          [](const GraphLoan& graph, const NodeLoan& loan) {
            onnx::Node* node = &loan.get();
            for (const onnx::Value* output : node->outputs())
              if (!output->uses().empty() || graph->is_output(output))
                throw Error(
                    {.stage = "onnx", .op = node->op},
                    "its output '" + output->name() + "' is still used; replace its uses before erasing the node");
            graph.loans->set_changed();
            for (const onnx::Value* output : node->outputs()) graph.loans->end(output);
            graph.loans->end(node);
            graph->erase(node);
          },
          py::arg("node"), "Removes a node, whose outputs must have no uses left.");

  py::class_<ModelLoan, LoanPtr<onnx::Model>>(module, "OnnxModel", "An ONNX model in the hands of a fix.")
      .def_property_readonly("graph", [](const ModelLoan& model) { return model.loans->lend(model->graph.get()); })
      .def_property_readonly(
          "opsets", [](const ModelLoan& model) { return model->opsets; }, "Versions by domain.")
      .def(
          "set_opset",
          [](const ModelLoan& model, const std::string& domain, int64_t version) {
            model.loans->set_changed();
            model->opsets[domain] = version;
          },
          py::arg("domain"), py::arg("version"))
      .def_property_readonly("metadata", [](const ModelLoan& model) { return model->metadata; })
      .def(
          "set_metadata",
          [](const ModelLoan& model, const std::string& key, const std::string& value) {
            model.loans->set_changed();
            model->metadata[key] = value;
          },
          py::arg("key"), py::arg("value"))
      .def("__str__", [](const ModelLoan& model) { return model->str(); });
}

}  // namespace

void bind_onnx_graph(py::module_& module) {
  bind_values(module);
  bind_model(module);
}

}  // namespace transporters::python
