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

// A product that is built without distributing anything.
struct Product {
  int64_t coefficient = 1;
  std::vector<Expr> factors;

  void multiply(int64_t other_coefficient, std::span<const Expr> other_factors) {
    coefficient = mul_or_throw(coefficient, other_coefficient);
    factors = multiply_factors(factors, other_factors);
  }

  // Of a sum, what all its terms share (and the sign of the first) is pulled out; the rest is one factor.
  void multiply(const Expr& e) {
    if (e.kind() != Kind::Add) {
      Term term = as_term(e);
      return multiply(term.coefficient, term.factors);
    }
    CommonFactor common = common_factor(e);
    multiply(common.coefficient, common.factors);
    Expr rest = divide_exactly(e, common);
    if (linear_form(rest).terms[0].coefficient < 0) {
      coefficient = negate_or_throw(coefficient);
      rest = scale(rest, -1);
    }
    multiply(1, std::span(&rest, 1));
  }
};

Expr multiply_integers(const Expr& a, const Expr& b) {
  if (auto factor = a.as_integer()) return scale(b, *factor);
  if (auto factor = b.as_integer()) return scale(a, *factor);
  bool has_sum = a.kind() == Kind::Add || b.kind() == Kind::Add;
  if (!has_sum) return multiply_terms(as_term(a), as_term(b));
  if (term_count(a) * term_count(b) <= kMaxExpandedTerms && !has_sum_factor(a) && !has_sum_factor(b)) {
    return expand(a, b);
  }
  Product product;
  product.multiply(a);
  product.multiply(b);
  return make_term(product.coefficient, product.factors);
}

Expr multiply_reals(Expr a, Expr b) {
  if (a.as_real() && b.as_real()) return Expr::real(*a.as_real() * *b.as_real());
  if (a.as_real() == 1.0) return b;
  if (b.as_real() == 1.0) return a;
  if (Expr::compare(a, b) > 0) std::swap(a, b);
  // A change of sign is exact: it is taken up by a constant.
  if (a.as_real() == -1.0 && b.kind() == Kind::Mul && operands_of(b)[0].as_real()) {
    return multiply_reals(Expr::real(-*operands_of(b)[0].as_real()), operands_of(b)[1]);
  }
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
