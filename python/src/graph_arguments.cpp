#include "graph_arguments.h"

#include <torch/csrc/utils/pybind.h>

#include "transporters/error.h"

namespace py = pybind11;

namespace transporters::python {
namespace {

std::string type_name(py::handle object) { return py::str(py::type::of(object).attr("__name__")); }

// torch.strided, torch.channels_last by the last part of what they print.
std::string last_part(py::handle object) {
  const std::string text = py::str(object);
  return text.substr(text.rfind('.') + 1);
}

py::object torch_attribute(const std::string& name) { return py::module_::import("torch").attr(name.c_str()); }

template <typename T, typename F>
py::list to_list(const std::vector<T>& values, F convert) {
  py::list list;
  for (const auto& value : values) list.append(convert(value));
  return list;
}

template <typename T, typename F>
std::vector<T> from_sequence(py::handle object, F convert) {
  std::vector<T> values;
  for (py::handle element : py::reinterpret_borrow<py::sequence>(object)) values.push_back(convert(element));
  return values;
}

bool is_list(py::handle object) { return py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object); }

Value* to_value(py::handle object, Loans& loans) {
  Value* value = &object.cast<Loan<Value>&>().get();
  if (&value->graph() != loans.program().graph.get()) throw Error("value '%" + value->name() + "' is of another graph");
  return value;
}

}  // namespace

py::object from_expr(const Expr& expr) {
  if (const auto value = expr.as_integer()) return py::int_(*value);
  if (const auto value = expr.as_real()) return py::float_(*value);
  if (const auto value = expr.as_boolean()) return py::bool_(*value);
  return py::cast(expr);
}

Expr to_expr(py::handle object, const std::string& what) {
  if (py::isinstance<Expr>(object)) return object.cast<Expr>();
  if (py::isinstance<py::bool_>(object)) return Expr::boolean(object.cast<bool>());
  if (py::isinstance<py::int_>(object)) return Expr(object.cast<int64_t>());
  if (py::isinstance<py::float_>(object)) return Expr::real(object.cast<double>());
  if (py::isinstance<Loan<Value>>(object)) {
    const Value& value = *object.cast<Loan<Value>&>();
    if (const auto* number = std::get_if<NumberType>(&value.type())) return number->expr;
  }
  throw Error(what + " is a " + type_name(object) + ", expected a number or an Expr");
}

py::object from_argument(const Argument& argument, Loans& loans) {
  struct Visitor {
    Loans& loans;
    py::object operator()(const None&) const { return py::none(); }
    py::object operator()(Value* value) const { return py::cast(loans.lend(value)); }
    py::object operator()(const Values& values) const {
      return to_list(values, [this](Value* value) { return py::cast(loans.lend(value)); });
    }
    py::object operator()(const Expr& expr) const { return from_expr(expr); }
    py::object operator()(const std::vector<Expr>& exprs) const { return to_list(exprs, &from_expr); }
    py::object operator()(double value) const { return py::float_(value); }
    py::object operator()(const std::vector<double>& values) const { return py::cast(values); }
    py::object operator()(bool value) const { return py::bool_(value); }
    py::object operator()(const std::vector<bool>& values) const { return py::cast(values); }
    py::object operator()(const std::string& text) const { return py::str(text); }
    py::object operator()(const std::vector<std::string>& texts) const { return py::cast(texts); }
    py::object operator()(ScalarType dtype) const { return py::cast(dtype); }
    py::object operator()(const Layout& layout) const { return torch_attribute(layout.name); }
    py::object operator()(const MemoryFormat& format) const { return torch_attribute(format.name); }
    py::object operator()(const Device& device) const { return torch_attribute("device")(device.name); }
  };
  return std::visit(Visitor{loans}, argument);
}

Argument to_argument(py::handle object, const SchemaArgument& schema, const std::string& op, Loans& loans) {
  const std::string what = "argument '" + schema.name + "'";
  const auto wrong = [&](const std::string& expected) {
    return Error({.op = op}, what + " is a " + type_name(object) + ", expected " + expected);
  };
  const auto real = [&](py::handle number) {
    if (!py::isinstance<py::float_>(number) && !py::isinstance<py::int_>(number)) throw wrong("numbers");
    return number.cast<double>();
  };
  if (object.is_none()) return None{};
  if (py::isinstance<Loan<Value>>(object)) return to_value(object, loans);
  const bool is_text = py::isinstance<py::str>(object);
  switch (schema.kind) {
    case ArgumentKind::Tensor:
    case ArgumentKind::Scalar:
      if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
      if (py::isinstance<py::float_>(object)) return object.cast<double>();
      if (py::isinstance<py::int_>(object) || py::isinstance<Expr>(object)) return to_expr(object, what);
      throw wrong(schema.kind == ArgumentKind::Tensor ? "a Value of the graph or a number" : "a number");
    case ArgumentKind::TensorList:
    case ArgumentKind::OptionalTensorList:
      if (!is_list(object)) throw wrong("a list of Values");
      return from_sequence<Value*>(object, [&](py::handle element) -> Value* {
        if (element.is_none()) return nullptr;
        if (!py::isinstance<Loan<Value>>(element)) throw wrong("a list of Values");
        return to_value(element, loans);
      });
    case ArgumentKind::Int:
      return to_expr(object, what);
    case ArgumentKind::IntList:
      if (!is_list(object)) return std::vector<Expr>{to_expr(object, what)};
      return from_sequence<Expr>(object, [&](py::handle element) { return to_expr(element, "an element of " + what); });
    case ArgumentKind::Float:
      if (py::isinstance<Expr>(object)) return object.cast<Expr>();
      return real(object);
    case ArgumentKind::FloatList:
      if (!is_list(object)) throw wrong("a list of numbers");
      return from_sequence<double>(object, real);
    case ArgumentKind::Bool:
      if (py::isinstance<Expr>(object)) return object.cast<Expr>();
      if (!py::isinstance<py::bool_>(object)) throw wrong("a bool");
      return object.cast<bool>();
    case ArgumentKind::BoolList:
      if (!is_list(object)) throw wrong("a list of bools");
      return from_sequence<bool>(object, [](py::handle element) { return element.cast<bool>(); });
    case ArgumentKind::String:
      if (!is_text) throw wrong("a string");
      return object.cast<std::string>();
    case ArgumentKind::StringList:
      if (!is_list(object)) throw wrong("a list of strings");
      return from_sequence<std::string>(object, [](py::handle element) { return element.cast<std::string>(); });
    case ArgumentKind::ScalarType:
      if (!THPDtype_Check(object.ptr())) throw wrong("a torch.dtype");
      return object.cast<ScalarType>();
    case ArgumentKind::Layout:
      return Layout{last_part(object)};
    case ArgumentKind::MemoryFormat:
      return MemoryFormat{last_part(object)};
    case ArgumentKind::Device:
      return Device{std::string(py::str(object))};
    case ArgumentKind::Other:
      break;
  }
  throw wrong("None");
}

std::vector<NamedArgument> to_arguments(const py::kwargs& given, const std::string& op, Loans& loans) {
  const OpSchema& schema = get_schema(op);
  std::vector<std::string> known;
  for (const SchemaArgument& argument : schema.arguments) known.push_back(argument.name);
  for (const auto& [name, object] : given) {
    const auto text = name.cast<std::string>();
    if (!schema.find(text)) throw Error({.op = op}, "there is no argument '" + text + "'" + did_you_mean(text, known));
  }
  std::vector<NamedArgument> arguments;
  for (const SchemaArgument& argument : schema.arguments) {
    if (given.contains(argument.name)) {
      arguments.push_back({argument.name, to_argument(given[argument.name.c_str()], argument, op, loans)});
    } else if (!argument.default_value) {
      throw Error({.op = op}, "argument '" + argument.name + "' is missing");
    }
  }
  return arguments;
}

}  // namespace transporters::python
