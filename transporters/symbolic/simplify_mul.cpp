// Products. Integers: the coefficient first, then factors in canonical order, repeated ones as powers; constants are
// distributed over sums, and products of sums are expanded while the result is small, so that equal sizes compare
// equal. Reals: two operands in canonical order (multiplication of reals is not associative, so nothing is regrouped).
#include <algorithm>
#include <array>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

// Products of sums with more terms than this stay products.
constexpr size_t kMaxExpandedTerms = 64;

bool has_sum_factor(const Expr& e) {
  if (e.kind() != Kind::Mul && e.kind() != Kind::Pow) return false;
  return std::ranges::any_of(as_term(e).factors, [](const Expr& f) { return as_power(f).base->kind() == Kind::Add; });
}

size_t term_count(const Expr& e) { return e.kind() == Kind::Add ? operands_of(e).size() : 1; }

Expr expand(const Expr& a, const Expr& b) {
  LinearForm left = linear_form(a);
  LinearForm right = linear_form(b);
  std::vector<Expr> products;
  products.reserve((left.terms.size() + 1) * (right.terms.size() + 1));
  for (const Term& x : left.terms) {
    for (const Term& y : right.terms) products.push_back(multiply_terms(x, y));
    if (right.constant != 0) products.push_back(make_term(mul_or_throw(x.coefficient, right.constant), x.factors));
  }
  if (left.constant != 0) {
    for (const Term& y : right.terms) {
      products.push_back(make_term(mul_or_throw(y.coefficient, left.constant), y.factors));
    }
    products.emplace_back(mul_or_throw(left.constant, right.constant));
  }
  return sum(products);
}

// A sum as a term: what all its terms share (and the sign of the first) is pulled out, the rest is one factor.
Expr multiply_by_sum(const Expr& product, const Expr& e) {
  if (e.kind() != Kind::Add) return multiply_terms(as_term(product), as_term(e));
  CommonFactor common = common_factor(e);
  Expr rest = divide_exactly(e, common);
  if (linear_form(rest).terms[0].coefficient < 0) {
    common.coefficient = -common.coefficient;
    rest = scale(rest, -1);
  }
  Expr outside = to_expr(common);
  Expr scaled = multiply_terms(as_term(product), as_term(outside));
  Term rest_term{1, std::span(&rest, 1), nullptr};
  Term scaled_term = as_term(scaled);
  return multiply_terms(scaled_term, rest_term);
}

Expr multiply_integers(const Expr& a, const Expr& b) {
  if (auto factor = a.as_integer()) return scale(b, *factor);
  if (auto factor = b.as_integer()) return scale(a, *factor);
  bool has_sum = a.kind() == Kind::Add || b.kind() == Kind::Add;
  if (!has_sum) return multiply_terms(as_term(a), as_term(b));
  if (term_count(a) * term_count(b) <= kMaxExpandedTerms && !has_sum_factor(a) && !has_sum_factor(b)) {
    return expand(a, b);
  }
  return multiply_by_sum(multiply_by_sum(1, a), b);
}

Expr multiply_reals(Expr a, Expr b) {
  if (a.as_real() && b.as_real()) return Expr::real(*a.as_real() * *b.as_real());
  if (a.as_real() == 1.0) return b;
  if (b.as_real() == 1.0) return a;
  if (Expr::compare(a, b) > 0) std::swap(a, b);
  return make_node(Kind::Mul, Type::Real, {a, b});
}

}  // namespace

Expr operator*(const Expr& a, const Expr& b) {
  if (a.type() == Type::Integer && b.type() == Type::Integer) return multiply_integers(a, b);
  std::array<Expr, 2> operands = {a, b};
  require_numbers("multiplication", operands);
  promote(operands[0], operands[1]);
  return multiply_reals(operands[0], operands[1]);
}

Expr product(std::span<const Expr> sizes) {
  Expr result = 1;
  for (const Expr& size : sizes) result = result * size;
  return result;
}

}  // namespace transporters::symbolic
