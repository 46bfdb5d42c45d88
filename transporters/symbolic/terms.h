// Integer expressions seen as sums of terms, a term as a coefficient times factors. Terms are views: they are valid
// while the expressions they were taken from live.
#pragma once

#include <span>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

struct Term {
  int64_t coefficient = 0;
  // Sorted; empty for a constant. A repeated factor appears once, as Pow(base, n).
  std::span<const Expr> factors;
  // The expression this is a view of, when its coefficient was not changed.
  const Expr* source = nullptr;
};

// Non-constant terms in canonical order, and the constant.
struct LinearForm {
  std::vector<Term> terms;
  int64_t constant = 0;
};

Term as_term(const Expr& e);
LinearForm linear_form(const Expr& e);
int compare_factors(std::span<const Expr> a, std::span<const Expr> b);

// coefficient * product of factors.
Expr make_term(int64_t coefficient, std::span<const Expr> factors);
// The sum of terms in any order, like terms collected. Throws OverflowError.
Expr sum_terms(std::vector<Term> terms, int64_t constant);
inline Expr sum_terms(LinearForm form) { return sum_terms(std::move(form.terms), form.constant); }
Expr sum(std::span<const Expr> operands);
// e * factor, distributed over a sum.
Expr scale(const Expr& e, int64_t factor);
// Factors of a product, repeated ones joined.
std::vector<Expr> multiply_factors(std::span<const Expr> a, std::span<const Expr> b);
// Product of two terms.
Expr multiply_terms(const Term& a, const Term& b);

// base and exponent of a factor; exponent 1 unless it is Pow(base, n).
struct Power {
  const Expr* base;
  int64_t exponent;
};
Power as_power(const Expr& factor);

// Greatest common divisor of the coefficients (constant included), and the factors that every term has.
struct CommonFactor {
  int64_t coefficient = 0;
  std::vector<Expr> factors;
  bool is_one() const { return coefficient == 1 && factors.empty(); }
};
CommonFactor common_factor(const Expr& e);
CommonFactor common_factor(const CommonFactor& a, const CommonFactor& b);
// e / factor; every term must be divisible.
Expr divide_exactly(const Expr& e, const CommonFactor& factor);
// The term's quotient by another, if that is a term with an integer coefficient.
std::optional<Expr> divide_term(const Term& a, const Term& b);
Expr to_expr(const CommonFactor& factor);

}  // namespace transporters::symbolic
