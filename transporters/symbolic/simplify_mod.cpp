// Remainder of division rounded toward minus infinity: it has the divisor's sign, as in Python.
#include <array>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/polynomial.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

Expr raw(const Expr& a, const Expr& b) { return make_node(Kind::Mod, Type::Integer, {a, b}); }

// x when the term is c*Mod(x, m) with c*m divisible by `divisor`: then Mod(x, m) may be replaced by x.
const Expr* redundant_mod(const Term& term, int64_t divisor) {
  if (term.factors.size() != 1 || term.factors[0].kind() != Kind::Mod) return nullptr;
  auto modulus = operands_of(term.factors[0])[1].as_integer();
  if (!modulus) return nullptr;
  auto period = checked_mul(term.coefficient, *modulus);
  return period && *period % divisor == 0 ? &operands_of(term.factors[0])[0] : nullptr;
}

// True for c*Mod(x, m) + constant with every value in [0, divisor).
bool is_already_reduced(const std::vector<Term>& terms, int64_t constant, int64_t divisor) {
  if (terms.size() != 1 || terms[0].factors.size() != 1 || terms[0].factors[0].kind() != Kind::Mod) return false;
  auto modulus = operands_of(terms[0].factors[0])[1].as_integer();
  if (!modulus || *modulus <= 0) return false;
  auto largest = checked_mul(terms[0].coefficient, *modulus - 1);
  auto value = largest ? checked_add(*largest, constant) : std::nullopt;
  return value && *value < divisor;
}

Expr mod_constant(const Expr& a, int64_t divisor) {
  LinearForm form = linear_form(a);
  std::vector<Term> rest;
  int64_t common = divisor;
  for (Term term : form.terms) {
    int64_t coefficient = mod_positive(term.coefficient, divisor);
    if (coefficient == 0) continue;
    if (coefficient != term.coefficient) term.source = nullptr;
    term.coefficient = coefficient;
    if (const Expr* inner = redundant_mod(term, divisor)) {
      Expr removed = make_term(term.coefficient, term.factors);
      return mod(a - removed + *inner * coefficient, divisor);
    }
    common = common_divisor(common, coefficient);
    rest.push_back(term);
  }
  int64_t constant = mod_positive(form.constant, divisor);
  if (rest.empty()) return constant;
  if (is_already_reduced(rest, constant, divisor)) return sum_terms(std::move(rest), constant);
  if (common == 1) return raw(sum_terms(std::move(rest), constant), divisor);
  // (g*x + c) mod (g*d) == g*((x + floor(c/g)) mod d) + c mod g
  for (Term& term : rest) {
    term.coefficient /= common;
    term.source = nullptr;
  }
  Expr reduced = mod(sum_terms(std::move(rest), constant / common), divisor / common);
  return reduced * common + constant % common;
}

Expr mod_symbolic(const Expr& a, const Expr& b) {
  CommonFactor common = common_factor(common_factor(a), common_factor(b));
  if (!common.is_one()) return to_expr(common) * mod(divide_exactly(a, common), divide_exactly(b, common));
  if (linear_form(b).terms[0].coefficient < 0) return -mod(-a, -b);
  if (auto division = split_off_multiple(a, b)) return mod(division->remainder, b);
  return raw(a, b);
}

}  // namespace

Expr mod(const Expr& a, const Expr& b) {
  std::array<Expr, 2> operands = {a, b};
  require_integers("modulo", operands);
  if (b.is(0)) return raw(a, b);
  if (a.is(0) || b.is(1) || b.is(-1) || a == b) return 0;
  if (auto divisor = b.as_integer()) {
    if (auto dividend = a.as_integer()) return *checked_mod(*dividend, *divisor);
    return *divisor < 0 ? -mod(-a, negate_or_throw(*divisor)) : mod_constant(a, *divisor);
  }
  return mod_symbolic(a, b);
}

}  // namespace transporters::symbolic
