// Choice between two values: constant conditions decide, equal values need no choice, choosing the smaller or the
// larger of what the condition compares is a minimum or a maximum.
#include <array>

#include "transporters/error.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

std::optional<Expr> as_extremum(const Expr& condition, const Expr& a, const Expr& b) {
  if (a.type() != Type::Integer || condition.kind() != Kind::LessEqual) return std::nullopt;
  if (condition == less_equal(a, b) || condition == less(a, b)) return min(a, b);
  if (condition == less_equal(b, a) || condition == less(b, a)) return max(a, b);
  return std::nullopt;
}

}  // namespace

Expr select(const Expr& condition, const Expr& if_true, const Expr& if_false) {
  require_booleans("select", std::span(&condition, 1));
  std::array<Expr, 2> values = {if_true, if_false};
  if (if_true.type() != if_false.type()) {
    require_numbers("select", values);
    promote(values[0], values[1]);
  }
  if (auto decided = condition.as_boolean()) return *decided ? values[0] : values[1];
  if (values[0] == values[1]) return values[0];
  if (auto x = values[0].as_boolean(), y = values[1].as_boolean(); x && y)
    return *x ? condition : logical_not(condition);
  if (auto extremum = as_extremum(condition, values[0], values[1])) return *extremum;
  // Of a condition and its negation the smaller one is kept.
  Expr negated = logical_not(condition);
  if (Expr::compare(negated, condition) < 0) {
    return make_node(Kind::Select, values[0].type(), {negated, values[1], values[0]});
  }
  return make_node(Kind::Select, values[0].type(), {condition, values[0], values[1]});
}

}  // namespace transporters::symbolic
