// Powers. Integers to a natural power; a real base or exponent makes both real.
#include <array>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

// Sums to a higher power than this stay powers.
constexpr int64_t kMaxExpandedExponent = 8;

Expr repeated_product(const Expr& base, int64_t exponent) {
  Expr result = base;
  for (int64_t i = 1; i < exponent; ++i) result = result * base;
  return result;
}

Expr power_of_term(const Expr& base, int64_t exponent) {
  Term term = as_term(base);
  auto coefficient = checked_pow(term.coefficient, exponent);
  if (!coefficient) throw OverflowError();
  std::vector<Expr> factors;
  for (const Expr& factor : term.factors) {
    Power power = as_power(factor);
    factors.push_back(make_node(Kind::Pow, Type::Integer, {*power.base, Expr(mul_or_throw(power.exponent, exponent))}));
  }
  return make_term(*coefficient, factors);
}

Expr power_of_integers(const Expr& base, const Expr& exponent) {
  auto n = exponent.as_integer();
  if (!n) return base.is(1) ? base : make_node(Kind::Pow, Type::Integer, {base, exponent});
  if (*n < 0) {
    throw Error("a negative power of an integer size is no integer: " + base.str() + " ** " + std::to_string(*n) +
                "; make the base a real first");
  }
  if (*n == 0) return 1;
  if (*n == 1) return base;
  if (base.kind() == Kind::Add) {
    return *n <= kMaxExpandedExponent ? repeated_product(base, *n)
                                      : make_node(Kind::Pow, Type::Integer, {base, exponent});
  }
  return power_of_term(base, *n);
}

}  // namespace

Expr pow(const Expr& base, const Expr& exponent) {
  std::array<Expr, 2> operands = {base, exponent};
  require_numbers("power", operands);
  if (base.type() == Type::Integer && exponent.type() == Type::Integer) return power_of_integers(base, exponent);
  promote(operands[0], operands[1]);
  if (operands[0].as_real() && operands[1].as_real()) {
    return Expr::real(std::pow(*operands[0].as_real(), *operands[1].as_real()));
  }
  if (operands[1].as_real() == 1.0) return operands[0];
  return make_node(Kind::Pow, Type::Real, {operands[0], operands[1]});
}

}  // namespace transporters::symbolic
