// The graph for Python's fixes and translations: expressions, values, nodes, programs.
#include <pybind11/operators.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "arguments.h"
#include "bindings.h"
#include "graph_arguments.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/graph/text.h"
#include "transporters/passes/decompose.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

using NodeLoan = Loan<Node>;
using ValueLoan = Loan<Value>;
using ProgramLoan = Loan<Program>;

// ── Expressions ──

template <typename F>
auto binary(F compute) {
  return [compute](const Expr& a, py::handle b) { return from_expr(compute(a, to_expr(b, "the operand"))); };
}
template <typename F>
auto reflected(F compute) {
  return [compute](const Expr& a, py::handle b) { return from_expr(compute(to_expr(b, "the operand"), a)); };
}

void bind_expr(py::module_& module) {
  const auto add = [](const Expr& a, const Expr& b) { return a + b; };
  const auto subtract = [](const Expr& a, const Expr& b) { return a - b; };
  const auto multiply = [](const Expr& a, const Expr& b) { return a * b; };
  py::class_<Expr>(module, "Expr", "A size that depends on the inputs' sizes: arithmetic over named symbols.")
      .def("__add__", binary(add))
      .def("__radd__", reflected(add))
      .def("__sub__", binary(subtract))
      .def("__rsub__", reflected(subtract))
      .def("__mul__", binary(multiply))
      .def("__rmul__", reflected(multiply))
      .def("__floordiv__", binary([](const Expr& a, const Expr& b) { return symbolic::floor_div(a, b); }))
      .def("__rfloordiv__", reflected([](const Expr& a, const Expr& b) { return symbolic::floor_div(a, b); }))
      .def("__mod__", binary([](const Expr& a, const Expr& b) { return symbolic::mod(a, b); }))
      .def("__rmod__", reflected([](const Expr& a, const Expr& b) { return symbolic::mod(a, b); }))
      .def("__neg__", [](const Expr& a) { return from_expr(-a); })
      .def("__eq__", [](const Expr& a, py::handle b) { return py::isinstance<Expr>(b) && a == b.cast<Expr>(); })
      .def("__hash__", &Expr::hash)
      .def("__str__", &Expr::str)
      .def("__repr__", &Expr::str)
      .def_property_readonly("symbols", &Expr::symbols, "Names of the symbols inside, sorted.");
}

// ── Making nodes ──

// Output types of a node by its op's shape rule. Throws Error when they hold for some sizes only.
std::vector<ValueType> types_of(const Program& program, const Node& node) {
  ShapeEnv env = make_shape_env(program);
  auto types = infer_types(node, env);
  if (env.specializations().empty() && env.equalities().empty() && env.narrowings().empty()) return types;
  throw Error({.op = node.op(), .module = node.module_path}, "its arguments fit each other for some sizes only");
}

Node* insert(Loans& loans, Node* before, const std::string& op, const py::kwargs& given, const Node* place,
             const std::vector<ValueType>* types_without_rule) {
  Program& program = loans.changed();
  Node* node = program.graph->insert(before, op, to_arguments(given, op, loans), {});
  if (place != nullptr) {
    node->module_path = place->module_path;
    node->source = place->source;
  }
  try {
    const bool has_rule = find_shape_rule(op) != nullptr;
    program.graph->add_outputs(
        node, has_rule || types_without_rule == nullptr ? types_of(program, *node) : *types_without_rule);
  } catch (...) {
    program.graph->erase(node);
    throw;
  }
  return node;
}

void erase(Loans& loans, Node* node) {
  Program& program = loans.changed();
  for (const Value* output : node->outputs())
    if (!output->uses().empty() || program.graph->is_output(output))
      throw Error({.op = node->op(), .module = node->module_path},
                  "its output '%" + output->name() + "' is still used; replace its uses before erasing the node");
  for (const Value* output : node->outputs()) loans.end(output);
  loans.end(node);
  program.graph->erase(node);
}

bool are_same_kind(const Program& program, const Value* was, const Value* is) {
  if (!was->is_tensor() || !is->is_tensor()) return was->is_tensor() == is->is_tensor();
  if (was->dtype() != is->dtype() || was->rank() != is->rank()) return false;
  const ShapeEnv env = make_shape_env(program);
  for (size_t i = 0; i < was->rank(); ++i)
    if (!(env.simplify(was->sizes()[i]) == env.simplify(is->sizes()[i]))) return false;
  return true;
}

LoanPtr<Node> replace_with(const NodeLoan& loan, const std::string& op, const py::kwargs& given) {
  Node* node = &loan.get();
  Loans& loans = *loan.loans;
  std::vector<ValueType> types;
  for (const Value* output : node->outputs()) types.push_back(output->type());
  Node* made = insert(loans, node, op, given, node, &types);
  Program& program = loans.program();
  const auto refuse = [&](const std::string& message) {
    program.graph->erase(made);
    return Error({.op = node->op(), .module = node->module_path}, "can't be replaced by '" + op + "': " + message);
  };
  if (made->outputs().size() != types.size())
    throw refuse("it has " + std::to_string(made->outputs().size()) + " outputs in place of " +
                 std::to_string(types.size()));
  for (size_t i = 0; i < types.size(); ++i)
    if (!are_same_kind(program, node->outputs()[i], made->outputs()[i]))
      throw refuse("it gives " + to_text(made->outputs()[i]->type()) + " in place of " + to_text(types[i]));
  std::vector<std::string> names;
  for (size_t i = 0; i < types.size(); ++i) {
    names.push_back(node->outputs()[i]->name());
    program.replace_all_uses(node->outputs()[i], made->outputs()[i]);
  }
  erase(loans, node);
  for (size_t i = 0; i < types.size(); ++i) program.graph->rename(made->outputs()[i], names[i]);
  return loans.lend(made);
}

// ── Nodes and values ──

py::dict arguments_of(const NodeLoan& loan) {
  py::dict arguments;
  for (const SchemaArgument& argument : loan->schema().arguments)
    if (const Argument* value = loan->try_get(argument.name))
      arguments[py::str(argument.name)] = from_argument(*value, *loan.loans);
  return arguments;
}

template <typename T>
py::list lend_all(Loans& loans, std::span<T* const> objects) {
  py::list list;
  for (T* object : objects) list.append(loans.lend(object));
  return list;
}

std::string describe(const Node& node) {
  std::string text;
  for (const Value* output : node.outputs()) text += (output->index() ? ", %" : "%") + output->name();
  text += (text.empty() ? "" : " = ") + node.op();
  return node.module_path.empty() ? text : text + " at " + node.module_path;
}

void bind_nodes(py::module_& module) {
  py::class_<ValueLoan, LoanPtr<Value>>(module, "GraphValue", "What a node makes, or an input of the graph.")
      .def_property_readonly("name", [](const ValueLoan& value) { return value->name(); })
      .def_property_readonly(
          "is_tensor", [](const ValueLoan& value) { return value->is_tensor(); },
          "False for a number that the graph computes.")
      .def_property_readonly("dtype",
                             [](const ValueLoan& value) -> std::optional<ScalarType> {
                               if (!value->is_tensor()) return std::nullopt;
                               return value->dtype();
                             })
      .def_property_readonly(
          "sizes",
          [](const ValueLoan& value) {
            py::list sizes;
            if (value->is_tensor())
              for (const Expr& size : value->sizes()) sizes.append(from_expr(size));
            return sizes;
          },
          "An int where the size is fixed, an Expr where it is dynamic.")
      .def_property_readonly(
          "number",
          [](const ValueLoan& value) -> py::object {
            const auto* number = std::get_if<NumberType>(&value->type());
            return number ? from_expr(number->expr) : py::none();
          },
          "A number's expression; None for a tensor.")
      .def_property_readonly(
          "producer", [](const ValueLoan& value) { return value.loans->lend(value->producer()); },
          "The node that makes it; None for an input of the graph.")
      .def_property_readonly(
          "users",
          [](const ValueLoan& value) {
            std::vector<Node*> users;
            for (const Use& use : value->uses())
              if (std::ranges::find(users, use.node) == users.end()) users.push_back(use.node);
            return lend_all<Node>(*value.loans, users);
          },
          "Nodes that read it, each once. Outputs of the program are not among them.")
      .def_property_readonly("is_output", [](const ValueLoan& value) { return value->graph().is_output(&value.get()); })
      .def("__repr__", [](const ValueLoan& value) { return "%" + value->name() + ": " + to_text(value->type()); });

  py::class_<NodeLoan, LoanPtr<Node>>(module, "GraphNode", "One ATen op with its arguments by the schema's names.")
      .def_property_readonly(
          "op", [](const NodeLoan& node) { return node->op(); }, "\"aten::add.Tensor\"")
      .def_property_readonly("args", &arguments_of,
                             "All arguments by name, the schema's defaults among them: GraphValues, numbers, Exprs, "
                             "dtypes, strings, None and lists.")
      .def_property_readonly("outputs",
                             [](const NodeLoan& node) { return lend_all<Value>(*node.loans, node->outputs()); })
      .def_property_readonly(
          "output",
          [](const NodeLoan& node) {
            if (node->outputs().size() != 1)
              throw Error({.op = node->op()},
                          "has " + std::to_string(node->outputs().size()) + " outputs; take one from .outputs");
            return node.loans->lend(node->output());
          },
          "The only output.")
      .def_property_readonly(
          "module_path", [](const NodeLoan& node) { return node->module_path; },
          "Dotted path of the submodule that ran it.")
      .def_property_readonly(
          "source", [](const NodeLoan& node) { return node->source; },
          "The model's source line: \"modeling_llama.py:120\".")
      .def_property_readonly("next", [](const NodeLoan& node) { return node.loans->lend(node->next()); })
      .def_property_readonly("prev", [](const NodeLoan& node) { return node.loans->lend(node->prev()); })
      .def(
          "set",
          [](const NodeLoan& node, const std::string& name, py::handle value) {
            const OpSchema& schema = node->schema();
            const auto index = schema.find(name);
            if (!index) node->set(name, None{});  // throws, with near names
            node.loans->changed();
            node->set(name, to_argument(value, schema.arguments[*index], node->op(), *node.loans));
          },
          py::arg("name"), py::arg("value"), "Replaces one argument.")
      .def(
          "replace_with", &replace_with,
          "replace_with(op, **args): puts another op in the node's place, whose outputs take over names and uses. They "
          "must have the same dtypes and sizes. Returns the new node; this one is erased.")
      .def(
          "insert_before",
          [](const NodeLoan& node, const std::string& op, const py::kwargs& given) {
            return node.loans->lend(insert(*node.loans, &node.get(), op, given, &node.get(), nullptr));
          },
          "insert_before(op, **args): a new node in front of this one; its output types follow from the op.")
      .def(
          "erase", [](const NodeLoan& node) { erase(*node.loans, &node.get()); },
          "Removes the node, whose outputs must have no uses left.")
      .def("__repr__", [](const NodeLoan& node) { return describe(*node); });
}

// ── Programs ──

LoanPtr<Value> add_constant(const ProgramLoan& loan, const std::string& name, const at::Tensor& tensor) {
  Program& program = loan.loans->changed();
  std::string target = name;
  for (int suffix = 1; program.find_input(target) != nullptr; ++suffix) target = name + "_" + std::to_string(suffix);
  const TensorData data = to_tensor_data(tensor.detach().clone(at::MemoryFormat::Contiguous));
  TensorType type{data.dtype, {data.sizes.begin(), data.sizes.end()}, {}};
  Value* value = program.graph->add_input("c_" + target, std::move(type));
  program.state[target] = data;
  const auto first_user = std::ranges::find(program.inputs, InputKind::UserInput, &InputSpec::kind);
  program.inputs.insert(first_user, {.kind = InputKind::Constant, .value = value, .target = target});
  std::vector<Value*> order;
  for (const InputSpec& input : program.inputs)
    if (input.value != nullptr) order.push_back(input.value);
  program.graph->reorder_inputs(order);
  return loan.loans->lend(value);
}

std::optional<at::Tensor> data_of(const ProgramLoan& program, const ValueLoan& value) {
  const InputSpec* input = program->find_input(&value.get());
  if (input == nullptr) return std::nullopt;
  const auto state = program->state.find(input->target);
  if (state == program->state.end()) return std::nullopt;
  return to_tensor(state->second).clone();
}

py::dict inputs_of(const ProgramLoan& program, bool is_user) {
  py::dict inputs;
  for (const InputSpec& input : program->inputs) {
    if ((input.kind == InputKind::UserInput) != is_user) continue;
    inputs[py::str(input.target)] =
        input.value ? py::cast(program.loans->lend(input.value)) : from_constant(input.constant);
  }
  return inputs;
}

py::dict outputs_of(const ProgramLoan& program) {
  py::dict outputs;
  for (const OutputSpec& output : program->outputs)
    if (output.kind == OutputKind::UserOutput)
      outputs[py::str(output.target)] =
          output.value ? py::cast(program.loans->lend(output.value)) : from_constant(output.constant);
  return outputs;
}

py::list nodes_of(const ProgramLoan& program) {
  py::list nodes;
  for (Node& node : *program->graph) nodes.append(program.loans->lend(&node));
  return nodes;
}

void bind_view(py::module_& module) {
  py::class_<ProgramLoan, LoanPtr<Program>>(module, "GraphProgram", "A traced program in the hands of a fix.")
      .def_property_readonly("nodes", &nodes_of, "The nodes as they stand now, in order.")
      .def("__iter__", [](const ProgramLoan& program) { return py::iter(nodes_of(program)); })
      .def("__len__", [](const ProgramLoan& program) { return program->graph->size(); })
      .def_property_readonly(
          "inputs", [](const ProgramLoan& program) { return inputs_of(program, true); },
          "What callers give, by leaf path: values, and constants of the signature.")
      .def_property_readonly(
          "state", [](const ProgramLoan& program) { return inputs_of(program, false); },
          "Values of parameters, buffers and constants, by name.")
      .def_property_readonly("outputs", &outputs_of, "What callers get, by leaf path: values and constants.")
      .def(
          "find",
          [](const ProgramLoan& program, const std::string& name) {
            return program.loans->lend(program->graph->find_value(name));
          },
          py::arg("name"), "The value of that name, or None.")
      .def("data", &data_of, py::arg("value"),
           "A copy of a parameter's, buffer's or constant's tensor; None for others.")
      .def("add_constant", &add_constant, py::arg("name"), py::arg("tensor"), "A new constant of the program.")
      .def(
          "append",
          [](const ProgramLoan& program, const std::string& op, const py::kwargs& given) {
            return program.loans->lend(insert(*program.loans, nullptr, op, given, nullptr, nullptr));
          },
          "append(op, **args): a new node at the end; its output types follow from the op.")
      .def(
          "replace_all_uses",
          [](const ProgramLoan& program, const ValueLoan& from, const ValueLoan& to) {
            program.loans->changed().replace_all_uses(&from.get(), &to.get());
          },
          py::arg("old"), py::arg("new"), "All that reads `old`, outputs of the program included, reads `new`.")
      .def("__str__", [](const ProgramLoan& program) { return program->str(); });
}

}  // namespace

void bind_graph(py::module_& module) {
  bind_expr(module);
  bind_nodes(module);
  bind_view(module);
}

}  // namespace transporters::python
