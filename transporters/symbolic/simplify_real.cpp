// Conversion to reals, true division, square root. Integers below 2**53 in magnitude have an exact real; larger sizes
// do not occur, so conversions are taken to be exact.
#include <array>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

Expr raw_true_div(const Expr& a, const Expr& b) { return make_node(Kind::TrueDiv, Type::Real, {a, b}); }

Expr true_div_integers(const Expr& a, const Expr& b) {
  if (b.is(0)) return raw_true_div(a, b);
  if (b.is(1)) return to_real(a);
  if (a == b) return Expr::real(1.0);
  if (auto x = a.as_integer(), y = b.as_integer(); x && y) {
    return Expr::real(static_cast<double>(*x) / static_cast<double>(*y));
  }
  CommonFactor common = common_factor(common_factor(a), common_factor(b));
  if (!common.is_one()) return true_div(divide_exactly(a, common), divide_exactly(b, common));
  LinearForm divisor = linear_form(b);
  bool negative = divisor.terms.empty() ? divisor.constant < 0 : divisor.terms[0].coefficient < 0;
  return negative ? true_div(-a, -b) : raw_true_div(a, b);
}

Expr true_div_reals(const Expr& a, const Expr& b) {
  if (b.as_real() == 1.0) return a;
  if (a.as_real() && b.as_real() && *b.as_real() != 0.0) return Expr::real(*a.as_real() / *b.as_real());
  return raw_true_div(a, b);
}

}  // namespace

Expr to_real(const Expr& a) {
  require_numbers("conversion to a real", std::span(&a, 1));
  if (a.type() == Type::Real) return a;
  if (auto value = a.as_integer()) return Expr::real(static_cast<double>(*value));
  return make_node(Kind::ToReal, Type::Real, {a});
}

Expr true_div(const Expr& a, const Expr& b) {
  std::array<Expr, 2> operands = {a, b};
  require_numbers("true division", operands);
  promote(operands[0], operands[1]);
  // float(x) / float(y) and x / y are one value, written with integers.
  auto as_whole = [](const Expr& e) -> std::optional<Expr> {
    if (e.kind() == Kind::ToReal) return operands_of(e)[0];
    auto value = e.as_real();
    if (value && std::abs(*value) < 9007199254740992.0 && std::floor(*value) == *value && !std::signbit(*value)) {
      return Expr(static_cast<int64_t>(*value));
    }
    return std::nullopt;
  };
  if (operands[0].type() == Type::Integer) return true_div_integers(operands[0], operands[1]);
  if (!(operands[0].as_real() && operands[1].as_real())) {
    auto x = as_whole(operands[0]);
    auto y = as_whole(operands[1]);
    if (x && y) return true_div_integers(*x, *y);
  }
  return true_div_reals(operands[0], operands[1]);
}

Expr sqrt(const Expr& a) {
  Expr operand = to_real(a);
  if (auto value = operand.as_real(); value && *value >= 0) return Expr::real(std::sqrt(*value));
  return make_node(Kind::Sqrt, Type::Real, {operand});
}

}  // namespace transporters::symbolic
