#include "transporters/symbolic/polynomial.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

constexpr size_t kMaxTerms = 128;
constexpr int kMaxSteps = 256;

using Exponents = std::vector<int64_t>;
// Leading term first.
using Polynomial = std::map<Exponents, int64_t, std::greater<>>;

class Ring {
 public:
  Ring(const LinearForm& a, const LinearForm& b) {
    for (const LinearForm* form : {&a, &b}) {
      for (const Term& term : form->terms) {
        for (const Expr& factor : term.factors) bases_.push_back(*as_power(factor).base);
      }
    }
    auto before = [](const Expr& x, const Expr& y) { return Expr::compare(x, y) < 0; };
    std::ranges::sort(bases_, before);
    bases_.erase(std::unique(bases_.begin(), bases_.end()), bases_.end());
  }

  Polynomial to_polynomial(const LinearForm& form) const {
    Polynomial polynomial;
    if (form.constant != 0) polynomial[Exponents(bases_.size())] = form.constant;
    for (const Term& term : form.terms) {
      Exponents exponents(bases_.size());
      for (const Expr& factor : term.factors) {
        Power power = as_power(factor);
        auto before = [](const Expr& x, const Expr& y) { return Expr::compare(x, y) < 0; };
        auto it = std::ranges::lower_bound(bases_, *power.base, before);
        exponents[static_cast<size_t>(it - bases_.begin())] += power.exponent;
      }
      polynomial[exponents] = term.coefficient;
    }
    return polynomial;
  }

  Expr to_expr(const Polynomial& polynomial) const {
    std::vector<Expr> terms;
    for (const auto& [exponents, coefficient] : polynomial) {
      Expr term = coefficient;
      for (size_t i = 0; i < bases_.size(); ++i) {
        if (exponents[i] != 0) {
          Expr power = pow(bases_[i], exponents[i]);
          term = multiply_terms(as_term(term), as_term(power));
        }
      }
      terms.push_back(term);
    }
    return sum(terms);
  }

 private:
  std::vector<Expr> bases_;
};

// Subtracts coefficient * x^exponents * divisor. False on overflow.
bool subtract(Polynomial& from, int64_t coefficient, const Exponents& exponents, const Polynomial& divisor) {
  for (const auto& [monomial, c] : divisor) {
    Exponents at = monomial;
    for (size_t i = 0; i < at.size(); ++i) at[i] += exponents[i];
    auto amount = checked_mul(c, coefficient);
    auto negated = amount ? checked_mul(*amount, -1) : std::nullopt;
    if (!negated) return false;
    int64_t& slot = from[at];
    auto rest = checked_add(slot, *negated);
    if (!rest) return false;
    slot = *rest;
    if (slot == 0) from.erase(at);
  }
  return true;
}

bool is_part_of(const Polynomial& part, const Polynomial& whole) {
  return std::ranges::all_of(part, [&](const auto& term) {
    auto it = whole.find(term.first);
    return it != whole.end() && it->second == term.second;
  });
}

}  // namespace

std::optional<Division> split_off_multiple(const Expr& a, const Expr& b) {
  LinearForm left = linear_form(a);
  LinearForm right = linear_form(b);
  if (b.is(0) || left.terms.size() > kMaxTerms || right.terms.size() > kMaxTerms) return std::nullopt;
  Ring ring(left, right);
  Polynomial rest = ring.to_polynomial(left);
  const Polynomial divisor = ring.to_polynomial(right);
  const auto& [lead, lead_coefficient] = *divisor.begin();
  Polynomial quotient, remainder;
  for (int step = 0; !rest.empty(); ++step) {
    if (step == kMaxSteps) return std::nullopt;
    Exponents exponents = rest.begin()->first;
    const int64_t coefficient = rest.begin()->second;
    bool divisible =
        checked_mod(coefficient, lead_coefficient) == 0 && checked_floor_div(coefficient, lead_coefficient);
    for (size_t i = 0; i < lead.size(); ++i) {
      exponents[i] -= lead[i];
      divisible = divisible && exponents[i] >= 0;
    }
    if (!divisible) {
      remainder.insert(rest.extract(rest.begin()));
      continue;
    }
    int64_t ratio = coefficient / lead_coefficient;
    quotient[exponents] = ratio;
    if (!subtract(rest, ratio, exponents, divisor)) return std::nullopt;
  }
  if (quotient.empty() || !is_part_of(remainder, ring.to_polynomial(left))) return std::nullopt;
  return Division{ring.to_expr(quotient), ring.to_expr(remainder)};
}

}  // namespace transporters::symbolic
