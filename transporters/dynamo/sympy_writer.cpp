#include <charconv>
#include <cmath>

#include "transporters/dynamo/sympy.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

using symbolic::Expr;
using symbolic::Kind;
using symbolic::Type;

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "oo" : "-oo";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return "Float('" + std::string(text, end) + "', precision=53)";
}

const char* constructor(const Expr& expr) {
  const bool real = expr.type() == Type::Real;
  const auto integers = [&] {
    for (const Expr& operand : expr.operands())
      if (operand.type() != Type::Integer) return false;
    return true;
  };
  switch (expr.kind()) {
    case Kind::Add:
      return "Add";
    case Kind::Mul:
      return "Mul";
    case Kind::Pow:
      if (real) return "FloatPow";
      return expr.operands()[1].is_constant() ? "Pow" : "PowByNatural";
    case Kind::Min:
      return "Min";
    case Kind::Max:
      return "Max";
    case Kind::FloorDiv:
      return "FloorDiv";
    case Kind::Mod:
      return "PythonMod";
    case Kind::Floor:
      return "FloorToInt";
    case Kind::Ceil:
      return "CeilToInt";
    case Kind::Trunc:
      return "TruncToInt";
    case Kind::Round:
      return "RoundToInt";
    case Kind::ToReal:
      return "ToFloat";
    case Kind::TrueDiv:
      return integers() ? "IntTrueDiv" : "FloatTrueDiv";
    case Kind::Equal:
      return "Equality";
    case Kind::NotEqual:
      return "Unequality";
    case Kind::Less:
      return "StrictLessThan";
    case Kind::LessEqual:
      return "LessThan";
    case Kind::And:
      return "And";
    case Kind::Or:
      return "Or";
    case Kind::Not:
      return "Not";
    default:
      throw InternalError("no sympy constructor for " + expr.str());
  }
}

}  // namespace

std::string to_sympy(const Expr& expr, const std::function<std::string(const std::string&)>& symbol) {
  switch (expr.kind()) {
    case Kind::Integer:
      return "Integer(" + std::to_string(*expr.as_integer()) + ")";
    case Kind::Real:
      return real_text(*expr.as_real());
    case Kind::Boolean:
      return *expr.as_boolean() ? "true" : "false";
    case Kind::Symbol:
      return symbol(expr.name());
    case Kind::Select: {
      const auto operands = expr.operands();
      return "Piecewise(ExprCondPair(" + to_sympy(operands[1], symbol) + ", " + to_sympy(operands[0], symbol) +
             "), ExprCondPair(" + to_sympy(operands[2], symbol) + ", true))";
    }
    case Kind::Sqrt:
      // torch writes OpaqueUnaryFn_sqrt, which its own reader can't evaluate.
      return "FloatPow(" + to_sympy(expr.operands()[0], symbol) + ", Float('0.5', precision=53))";
    default: {
      std::string text = constructor(expr);
      const char* separator = "(";
      for (const Expr& operand : expr.operands()) {
        text += separator + to_sympy(operand, symbol);
        separator = ", ";
      }
      return text + ")";
    }
  }
}

}  // namespace transporters::dynamo
