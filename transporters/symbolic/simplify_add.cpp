// Sums. Integers: flattened, like terms collected, terms sorted, the constant last. Reals: two operands in canonical
// order, folded when both are constants (addition of reals is not associative, so nothing is regrouped).
#include <array>

#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

Expr add_reals(Expr a, Expr b) {
  if (a.as_real() && b.as_real()) return Expr::real(*a.as_real() + *b.as_real());
  if (a.as_real() == 0.0) return b;
  if (b.as_real() == 0.0) return a;
  if (Expr::compare(a, b) > 0) std::swap(a, b);
  return make_node(Kind::Add, Type::Real, {a, b});
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  if (a.type() == Type::Integer && b.type() == Type::Integer) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    std::array<Expr, 2> operands = {a, b};
    return sum(operands);
  }
  std::array<Expr, 2> operands = {a, b};
  require_numbers("addition", operands);
  promote(operands[0], operands[1]);
  return add_reals(operands[0], operands[1]);
}

Expr operator-(const Expr& a) {
  if (a.type() == Type::Integer) return scale(a, -1);
  return Expr::real(-1.0) * a;
}

Expr operator-(const Expr& a, const Expr& b) {
  if (b.is(0)) return a;
  return a + -b;
}

}  // namespace transporters::symbolic
