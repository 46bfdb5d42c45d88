// And, or, not: flattened, sorted, constants removed; `not` is pushed inside until a comparison takes it up.
#include <algorithm>
#include <array>

#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

Expr combine(Kind kind, const Expr& a, const Expr& b) {
  std::array<Expr, 2> pair = {a, b};
  require_booleans(kind == Kind::And ? "and" : "or", pair);
  bool neutral = kind == Kind::And;
  std::vector<Expr> operands;
  for (const Expr& e : pair) {
    if (auto value = e.as_boolean()) {
      if (*value != neutral) return e;
    } else if (e.kind() == kind) {
      operands.insert(operands.end(), e.operands().begin(), e.operands().end());
    } else {
      operands.push_back(e);
    }
  }
  std::ranges::sort(operands, [](const Expr& x, const Expr& y) { return Expr::compare(x, y) < 0; });
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  if (operands.empty()) return Expr::boolean(neutral);
  if (operands.size() == 1) return operands[0];
  for (const Expr& e : operands) {
    if (std::ranges::find(operands, logical_not(e)) != operands.end()) return Expr::boolean(!neutral);
  }
  return make_node(kind, Type::Boolean, std::move(operands));
}

}  // namespace

Expr logical_and(const Expr& a, const Expr& b) { return combine(Kind::And, a, b); }
Expr logical_or(const Expr& a, const Expr& b) { return combine(Kind::Or, a, b); }

Expr logical_not(const Expr& a) {
  require_booleans("not", std::span(&a, 1));
  std::span<const Expr> operands = a.operands();
  switch (a.kind()) {
    case Kind::Boolean:
      return Expr::boolean(!*a.as_boolean());
    case Kind::Equal:
      return not_equal(operands[0], operands[1]);
    case Kind::NotEqual:
      return equal(operands[0], operands[1]);
    case Kind::Less:
      return less_equal(operands[1], operands[0]);
    case Kind::LessEqual:
      return less(operands[1], operands[0]);
    case Kind::And:
    case Kind::Or: {
      Expr result = logical_not(operands[0]);
      for (const Expr& e : operands.subspan(1)) {
        result = a.kind() == Kind::And ? logical_or(result, logical_not(e)) : logical_and(result, logical_not(e));
      }
      return result;
    }
    case Kind::Select:
      return select(operands[0], logical_not(operands[1]), logical_not(operands[2]));
    default:
      return make_node(Kind::Not, Type::Boolean, {a});
  }
}

}  // namespace transporters::symbolic
