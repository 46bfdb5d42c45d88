#include "transporters/dynamo/size_nodes.h"

#include <algorithm>
#include <cmath>

#include "transporters/dynamo/schema.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

using symbolic::Kind;
using symbolic::Type;

// A term that reads better subtracted.
bool is_negative(const Expr& term) {
  if (term.kind() == Kind::Mul)
    return std::any_of(term.operands().begin(), term.operands().end(), [](const Expr& factor) {
      return factor.as_integer().value_or(0) < 0 || factor.as_real().value_or(0) < 0;
    });
  return term.as_integer().value_or(0) < 0 || term.as_real().value_or(0) < 0;
}

// Halves rounded to the even neighbour, from operations that files have.
Expr round_by_floor(const Expr& value) {
  const Expr shifted = value + Expr::real(0.5);
  const Expr up = symbolic::floor(shifted);
  const Expr is_tie = symbolic::equal(symbolic::to_real(up), shifted);
  const Expr is_odd = symbolic::equal(symbolic::mod(up, Expr(2)), Expr(1));
  return symbolic::select(symbolic::logical_and(is_tie, is_odd), up - Expr(1), up);
}

Expr to_type(const Expr& expr, Type type) {
  return type == Type::Real && expr.type() == Type::Integer ? symbolic::to_real(expr) : expr;
}

}  // namespace

Json real_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

SizeNodes::SizeNodes(const Program& program, const SymbolNames& symbols, ValueNames& names, GraphJson& graph)
    : program_(program), symbols_(symbols), names_(names), graph_(graph), sources_(find_symbol_sources(program)) {}

Json SizeNodes::named(const std::string& name, Type type) {
  const char* kind = type == Type::Integer ? "as_sym_int" : type == Type::Real ? "as_sym_float" : "as_sym_bool";
  return {{kind, {{"as_name", name}}}};
}

Json SizeNodes::argument(const Expr& expr) {
  if (const auto value = expr.as_integer()) return {{"as_int", *value}};
  if (const auto value = expr.as_real()) return {{"as_float", real_json(*value)}};
  if (const auto value = expr.as_boolean()) return {{"as_bool", *value}};
  return named(emit(expr), expr.type());
}

Json SizeNodes::argument(const std::vector<Expr>& exprs) {
  const Type type = exprs.empty() ? Type::Integer : exprs.front().type();
  const bool constant = std::all_of(exprs.begin(), exprs.end(), [](const Expr& e) { return e.is_constant(); });
  const char* plain = type == Type::Integer ? "as_int" : type == Type::Real ? "as_float" : "as_bool";
  Json elements = Json::array();
  for (const Expr& expr : exprs) {
    if (expr.type() != type) throw InternalError("a list of numbers of several types: " + expr.str());
    Json element = argument(expr);
    if (constant) {
      elements.push_back(std::move(element[plain]));
    } else if (expr.is_constant()) {
      elements.push_back(std::move(element));
    } else {
      elements.push_back(std::move(element.front()));
    }
  }
  if (constant) return {{std::string(plain) + "s", std::move(elements)}};
  const char* symbolic = type == Type::Integer ? "as_sym_ints" : type == Type::Real ? "as_sym_floats" : "as_sym_bools";
  return {{symbolic, std::move(elements)}};
}

Json SizeNodes::argument(const Value* number) const {
  return named(numbers_.at(number), std::get<NumberType>(number->type()).expr.type());
}

Json SizeNodes::value_json(const Expr& expr) const {
  if (const auto value = expr.as_integer()) return {{"as_int", *value}};
  if (const auto value = expr.as_real()) return {{"as_float", real_json(*value)}};
  if (const auto value = expr.as_boolean()) return {{"as_bool", *value}};
  Json hint;
  if (expr.type() != Type::Boolean) {
    const auto number = expr.evaluate([this](std::string_view symbol) -> std::optional<int64_t> {
      const std::string name(symbol);
      if (!symbols_.is_backed(name)) return std::nullopt;
      if (const auto known = program_.hints.find(name); known != program_.hints.end()) return known->second;
      const auto range = program_.ranges.find(name);
      return range == program_.ranges.end() ? 2 : std::clamp<int64_t>(2, range->second.min, range->second.max);
    });
    if (number && std::holds_alternative<int64_t>(*number)) hint = {{"as_int", std::get<int64_t>(*number)}};
    if (number && std::holds_alternative<double>(*number)) hint = {{"as_float", real_json(std::get<double>(*number))}};
  }
  return {{"as_expr", {{"expr_str", symbols_.sympy(expr)}, {"hint", std::move(hint)}}}};
}

Json SizeNodes::size(const Expr& expr) const { return value_json(expr); }

void SizeNodes::declare(const std::string& name, const Expr& value) {
  Json& values = value.type() == Type::Integer ? graph_.sym_int_values
                 : value.type() == Type::Real  ? graph_.sym_float_values
                                               : graph_.sym_bool_values;
  // torch.export.load has no place for the symbol of a boolean that the data decides: as in torch's own files, the
  // value stands that the program asserts.
  values[name] = value.type() == Type::Boolean && reads_boolean(value) ? Json{{"as_bool", true}} : value_json(value);
}

bool SizeNodes::reads_boolean(const Expr& expr) const {
  if (expr.is_constant()) return false;
  for (const std::string& symbol : expr.symbols()) {
    const auto source = sources_.find(symbol);
    if (source == sources_.end() || source->second.dim) continue;
    const auto* number = std::get_if<NumberType>(&source->second.value->type());
    if (number != nullptr && number->expr.type() == Type::Boolean) return true;
  }
  return false;
}

Json SizeNodes::define(const Value* number) {
  const Expr& expr = std::get<NumberType>(number->type()).expr;
  const std::string& name = names_[number];
  numbers_[number] = name;
  declare(name, expr);
  made_.try_emplace(expr, name);
  return named(name, expr.type());
}

std::string SizeNodes::call(const char* target, const std::vector<std::pair<const char*, Json>>& inputs,
                            const Expr& value) {
  // "torch.ops.aten.sym_size.int" -> "sym_size_int", "_operator.add" -> "add".
  std::string wanted = target;
  if (wanted.starts_with("torch.ops.aten.")) {
    wanted = wanted.substr(15);
  } else {
    wanted = wanted.substr(wanted.rfind('.') + 1);
  }
  const std::string name = names_.unique(wanted);
  Json arguments = Json::array();
  for (const auto& [argument, json] : inputs)
    arguments.push_back({{"name", argument}, {"arg", json}, {"kind", kPositional}});
  declare(name, value);
  made_.try_emplace(value, name);
  graph_.nodes.push_back({{"target", target},
                          {"inputs", std::move(arguments)},
                          {"outputs", Json::array({named(name, value.type())})},
                          {"metadata", metadata_},
                          {"is_hop_single_tensor_return", nullptr},
                          {"name", name}});
  return name;
}

std::string SizeNodes::emit_symbol(const std::string& symbol) {
  const auto found = sources_.find(symbol);
  if (found == sources_.end())
    throw Error({.stage = "dynamo"},
                "the graph computes with '" + symbol + "', which is the size of no input or value");
  const SymbolSource& source = found->second;
  const Expr symbol_expr = Expr::symbol(symbol);
  const Expr whole = Expr(source.scale) * symbol_expr + Expr(source.offset);
  std::string name;
  if (!source.dim) {
    name = numbers_.at(source.value);
  } else {
    const auto made = made_.find(whole);
    name = made != made_.end()
               ? made->second
               : call("torch.ops.aten.sym_size.int",
                      {{"self", {{"as_tensor", {{"name", names_[source.value]}}}}}, {"dim", {{"as_int", *source.dim}}}},
                      whole);
    made_.try_emplace(whole, name);
  }
  if (source.offset != 0)
    name = call("_operator.sub", {{"a", named(name, Type::Integer)}, {"b", {{"as_int", source.offset}}}},
                Expr(source.scale) * symbol_expr);
  if (source.scale != 1)
    name =
        call("_operator.floordiv", {{"a", named(name, Type::Integer)}, {"b", {{"as_int", source.scale}}}}, symbol_expr);
  return name;
}

std::string SizeNodes::emit_sum(const Expr& expr) {
  std::vector<Expr> terms(expr.operands().begin(), expr.operands().end());
  std::stable_partition(terms.begin(), terms.end(), [](const Expr& term) { return !is_negative(term); });
  Expr sum = to_type(terms.front(), expr.type());
  Json left = argument(sum);
  for (size_t i = 1; i < terms.size(); ++i) {
    const Expr term = to_type(terms[i], expr.type());
    sum = sum + term;
    const bool subtract = is_negative(term);
    const Json right = argument(subtract ? -term : term);
    left = named(call(subtract ? "_operator.sub" : "_operator.add", {{"a", left}, {"b", right}}, sum), expr.type());
  }
  return left.front()["as_name"];
}

std::string SizeNodes::emit_product(const Expr& expr) {
  std::vector<Expr> factors;
  bool negate = false;
  for (const Expr& factor : expr.operands()) {
    if (factor.is(-1)) {
      negate = !negate;
    } else {
      factors.push_back(to_type(factor, expr.type()));
    }
  }
  if (!negate) return emit_chain("_operator.mul", factors, [](const Expr& a, const Expr& b) { return a * b; });
  return call("_operator.neg", {{"a", argument(-expr)}}, expr);
}

std::string SizeNodes::emit_chain(const char* target, const std::vector<Expr>& operands,
                                  Expr (*combine)(const Expr&, const Expr&)) {
  Expr value = operands.front();
  Json left = argument(value);
  for (size_t i = 1; i < operands.size(); ++i) {
    const Json right = argument(operands[i]);
    value = combine(value, operands[i]);
    left = named(call(target, {{"a", left}, {"b", right}}, value), value.type());
  }
  return left.front()["as_name"];
}

std::string SizeNodes::emit(const Expr& expr) {
  if (const auto made = made_.find(expr); made != made_.end()) return made->second;
  const std::vector<Expr> operands(expr.operands().begin(), expr.operands().end());
  const auto binary = [&](const char* target) {
    const Json a = argument(operands[0]);
    const Json b = argument(operands[1]);
    return call(target, {{"a", a}, {"b", b}}, expr);
  };
  // Python has no floor among the operators that torch's files may name, but its // floors.
  const auto floor_of = [&](const Expr& real, const Expr& value) {
    const std::string whole = call("_operator.floordiv", {{"a", argument(real)}, {"b", {{"as_float", 1.0}}}},
                                   symbolic::to_real(symbolic::floor(real)));
    return call("math.trunc", {{"x", named(whole, Type::Real)}}, value);
  };
  std::string name;
  switch (expr.kind()) {
    case Kind::Integer:
    case Kind::Real:
    case Kind::Boolean:
      throw InternalError("a constant is no node: " + expr.str());
    case Kind::Symbol:
      name = emit_symbol(expr.name());
      break;
    case Kind::Add:
      name = emit_sum(expr);
      break;
    case Kind::Mul:
      name = emit_product(expr);
      break;
    case Kind::Pow:
      name = binary("_operator.pow");
      break;
    case Kind::Min:
      name = emit_chain("torch.sym_min", operands, symbolic::min);
      break;
    case Kind::Max:
      name = emit_chain("torch.sym_max", operands, symbolic::max);
      break;
    case Kind::FloorDiv:
      name = binary("_operator.floordiv");
      break;
    case Kind::Mod:
      name = binary("_operator.mod");
      break;
    case Kind::Floor:
      name = floor_of(operands[0], expr);
      break;
    case Kind::Ceil: {
      const Expr negative = -operands[0];
      name = call("_operator.neg", {{"a", named(floor_of(negative, symbolic::floor(negative)), Type::Integer)}}, expr);
      break;
    }
    case Kind::Trunc:
      name = call("math.trunc", {{"x", argument(operands[0])}}, expr);
      break;
    case Kind::Round:
      name = emit(round_by_floor(operands[0]));
      break;
    case Kind::ToReal:
      name = call("torch.sym_float", {{"a", argument(operands[0])}}, expr);
      break;
    case Kind::TrueDiv:
      name = binary("_operator.truediv");
      break;
    case Kind::Sqrt:
      name = call("torch._sym_sqrt", {{"a", argument(operands[0])}}, expr);
      break;
    case Kind::Equal:
      name = binary("_operator.eq");
      break;
    case Kind::NotEqual:
      name = binary("_operator.ne");
      break;
    case Kind::Less:
      name = binary("_operator.lt");
      break;
    case Kind::LessEqual:
      name = binary("_operator.le");
      break;
    case Kind::And:
      name = emit_chain("_operator.and_", operands, symbolic::logical_and);
      break;
    case Kind::Or:
      name = emit_chain("_operator.or_", operands, symbolic::logical_or);
      break;
    case Kind::Not:
      name = call("torch.sym_not", {{"a", argument(operands[0])}}, expr);
      break;
    case Kind::Select: {
      const Json condition = argument(operands[0]);
      const Json if_true = argument(operands[1]);
      const Json if_false = argument(operands[2]);
      name = call("torch.sym_ite", {{"b", condition}, {"t", if_true}, {"f", if_false}}, expr);
      break;
    }
  }
  made_.try_emplace(expr, name);
  return name;
}

}  // namespace transporters::dynamo
