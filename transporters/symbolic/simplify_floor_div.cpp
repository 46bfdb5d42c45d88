// Integer division rounded toward minus infinity. What the divisor divides is split off, common factors cancel, nested
// divisions by constants become one. Where the divisor is zero the value is undefined, so a rule may assume it is not.
#include <array>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/polynomial.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

Expr raw(const Expr& a, const Expr& b) { return make_node(Kind::FloorDiv, Type::Integer, {a, b}); }

// FloorDiv(rest + constant, divisor) where no term of `rest` is divisible and 0 <= constant < divisor.
Expr divide_indivisible(std::vector<Term> rest, int64_t constant, int64_t divisor) {
  int64_t common = divisor;
  for (const Term& term : rest) common = common_divisor(common, term.coefficient);
  for (Term& term : rest) {
    term.coefficient /= common;
    if (common != 1) term.source = nullptr;
  }
  constant /= common;
  divisor /= common;

  // floor((c - x) / d) == -floor((x - c + d - 1) / d): the first coefficient is made positive.
  bool negative = rest[0].coefficient < 0;
  if (negative) {
    for (Term& term : rest) {
      term.coefficient = negate_or_throw(term.coefficient);
      term.source = nullptr;
    }
    constant = divisor - 1 - constant;
  }

  Expr quotient;
  if (rest.size() == 1 && rest[0].coefficient == 1 && rest[0].factors.size() == 1 &&
      rest[0].factors[0].kind() == Kind::FloorDiv) {
    // floor((floor(x / y) + c) / d) == floor((x + c*y) / (y*d)) for d > 0
    const Expr& inner = rest[0].factors[0];
    const Expr& y = operands_of(inner)[1];
    quotient = floor_div(operands_of(inner)[0] + y * constant, y * divisor);
  } else {
    quotient = raw(sum_terms(std::move(rest), constant), divisor);
  }
  return negative ? -quotient : quotient;
}

Expr divide_by_constant(const Expr& a, int64_t divisor) {
  LinearForm form = linear_form(a);
  std::vector<Expr> quotients;
  std::vector<Term> rest;
  for (const Term& term : form.terms) {
    if (term.coefficient % divisor == 0) {
      quotients.push_back(make_term(term.coefficient / divisor, term.factors));
    } else {
      rest.push_back(term);
    }
  }
  quotients.emplace_back(floor_div_positive(form.constant, divisor));
  if (!rest.empty()) {
    quotients.push_back(divide_indivisible(std::move(rest), mod_positive(form.constant, divisor), divisor));
  }
  return sum(quotients);
}

Expr divide_by_symbolic(const Expr& a, const Expr& b) {
  CommonFactor common = common_factor(common_factor(a), common_factor(b));
  if (!common.is_one()) return floor_div(divide_exactly(a, common), divide_exactly(b, common));
  LinearForm divisor = linear_form(b);
  if (divisor.terms[0].coefficient < 0) return floor_div(-a, -b);
  if (auto division = split_off_multiple(a, b)) {
    return division->quotient + floor_div(division->remainder, b);
  }
  return raw(a, b);
}

}  // namespace

Expr floor_div(const Expr& a, const Expr& b) {
  std::array<Expr, 2> operands = {a, b};
  require_integers("floor division", operands);
  if (b.is(1)) return a;
  if (b.is(0)) return raw(a, b);
  if (a.is(0)) return 0;
  if (a == b) return 1;
  if (auto divisor = b.as_integer()) {
    if (auto dividend = a.as_integer()) {
      auto quotient = checked_floor_div(*dividend, *divisor);
      if (!quotient) throw OverflowError();
      return *quotient;
    }
    return *divisor < 0 ? floor_div(-a, negate_or_throw(*divisor)) : divide_by_constant(a, *divisor);
  }
  return divide_by_symbolic(a, b);
}

Expr ceil_div(const Expr& a, const Expr& b) { return -floor_div(-a, b); }

}  // namespace transporters::symbolic
