// Expressions with replaced operands, made canonical again.
#include "transporters/error.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

Expr fold(std::span<const Expr> operands, Expr (*combine)(const Expr&, const Expr&)) {
  Expr result = operands[0];
  for (const Expr& e : operands.subspan(1)) result = combine(result, e);
  return result;
}

Expr substitute_node(const Expr& e, const std::unordered_map<std::string, Expr>& replacements, uint64_t mask) {
  if ((e.node()->symbol_mask & mask) == 0) return e;
  if (e.kind() == Kind::Symbol) {
    auto it = replacements.find(e.name());
    return it == replacements.end() ? e : it->second;
  }
  const std::vector<Expr>& operands = operands_of(e);
  std::vector<Expr> replaced;
  replaced.reserve(operands.size());
  bool changed = false;
  for (const Expr& operand : operands) {
    replaced.push_back(substitute_node(operand, replacements, mask));
    changed = changed || replaced.back().node() != operand.node();
  }
  return changed ? rebuild(e.kind(), replaced) : e;
}

}  // namespace

Expr rebuild(Kind kind, std::span<const Expr> operands) {
  switch (kind) {
    case Kind::Add: {
      bool real = operands[0].type() == Type::Real || operands.back().type() == Type::Real;
      return real ? fold(operands, operator+) : sum(operands);
    }
    case Kind::Mul:
      return fold(operands, operator*);
    case Kind::Pow:
      return pow(operands[0], operands[1]);
    case Kind::Min:
    case Kind::Max:
      return extremum(kind, operands);
    case Kind::FloorDiv:
      return floor_div(operands[0], operands[1]);
    case Kind::Mod:
      return mod(operands[0], operands[1]);
    case Kind::Floor:
      return floor(operands[0]);
    case Kind::Ceil:
      return ceil(operands[0]);
    case Kind::Trunc:
      return trunc(operands[0]);
    case Kind::Round:
      return round(operands[0]);
    case Kind::ToReal:
      return to_real(operands[0]);
    case Kind::TrueDiv:
      return true_div(operands[0], operands[1]);
    case Kind::Sqrt:
      return sqrt(operands[0]);
    case Kind::Equal:
      return equal(operands[0], operands[1]);
    case Kind::NotEqual:
      return not_equal(operands[0], operands[1]);
    case Kind::Less:
      return less(operands[0], operands[1]);
    case Kind::LessEqual:
      return less_equal(operands[0], operands[1]);
    case Kind::And:
      return fold(operands, logical_and);
    case Kind::Or:
      return fold(operands, logical_or);
    case Kind::Not:
      return logical_not(operands[0]);
    case Kind::Select:
      return select(operands[0], operands[1], operands[2]);
    case Kind::Integer:
    case Kind::Real:
    case Kind::Boolean:
    case Kind::Symbol:
      break;
  }
  throw InternalError("a constant or symbol has no operands to replace");
}

Expr Expr::substitute(const std::unordered_map<std::string, Expr>& replacements) const {
  uint64_t mask = 0;
  for (const auto& [name, value] : replacements) mask |= symbol_bit(name);
  return substitute_node(*this, replacements, mask);
}

}  // namespace transporters::symbolic
