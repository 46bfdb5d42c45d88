#include "transporters/symbolic/terms.h"

#include <algorithm>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

Expr make_power(const Expr& base, int64_t exponent) {
  if (exponent == 1) return base;
  return make_node(Kind::Pow, Type::Integer, {base, Expr(exponent)});
}

// Walks two sorted factor lists; f(base, exponent in a, exponent in b).
template <typename F>
void merge_factors(std::span<const Expr> a, std::span<const Expr> b, F f) {
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    int order = 0;
    if (i == a.size()) {
      order = 1;
    } else if (j == b.size()) {
      order = -1;
    } else {
      order = Expr::compare(*as_power(a[i]).base, *as_power(b[j]).base);
    }
    Power left = order <= 0 ? as_power(a[i]) : Power{nullptr, 0};
    Power right = order >= 0 ? as_power(b[j]) : Power{nullptr, 0};
    f(left.base ? *left.base : *right.base, left.exponent, right.exponent);
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
}

std::vector<Expr> common_factors(std::span<const Expr> a, std::span<const Expr> b) {
  std::vector<Expr> common;
  merge_factors(a, b, [&](const Expr& base, int64_t in_a, int64_t in_b) {
    if (int64_t n = std::min(in_a, in_b); n > 0) common.push_back(make_power(base, n));
  });
  return common;
}

}  // namespace

Power as_power(const Expr& factor) {
  if (factor.kind() == Kind::Pow) {
    if (auto exponent = operands_of(factor)[1].as_integer()) return {&operands_of(factor)[0], *exponent};
  }
  return {&factor, 1};
}

Term as_term(const Expr& e) {
  if (auto value = e.as_integer()) return {*value, {}, &e};
  if (e.kind() == Kind::Mul) {
    std::span<const Expr> operands = e.operands();
    if (auto coefficient = operands[0].as_integer()) return {*coefficient, operands.subspan(1), &e};
    return {1, operands, &e};
  }
  return {1, std::span(&e, 1), &e};
}

LinearForm linear_form(const Expr& e) {
  LinearForm form;
  if (auto value = e.as_integer()) {
    form.constant = *value;
  } else if (e.kind() == Kind::Add) {
    for (const Expr& operand : operands_of(e)) {
      if (auto constant = operand.as_integer()) {
        form.constant = *constant;
      } else {
        form.terms.push_back(as_term(operand));
      }
    }
  } else {
    form.terms.push_back(as_term(e));
  }
  return form;
}

int compare_factors(std::span<const Expr> a, std::span<const Expr> b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (int order = Expr::compare(a[i], b[i])) return order;
  }
  return 0;
}

Expr make_term(int64_t coefficient, std::span<const Expr> factors) {
  if (coefficient == 0) return 0;
  if (factors.empty()) return coefficient;
  if (factors.size() == 1) {
    if (coefficient == 1) return factors[0];
    if (factors[0].kind() == Kind::Add) return scale(factors[0], coefficient);
  }
  std::vector<Expr> operands;
  operands.reserve(factors.size() + 1);
  if (coefficient != 1) operands.emplace_back(coefficient);
  operands.insert(operands.end(), factors.begin(), factors.end());
  return make_node(Kind::Mul, Type::Integer, std::move(operands));
}

Expr sum_terms(std::vector<Term> terms, int64_t constant) {
  auto before = [](const Term& a, const Term& b) { return compare_factors(a.factors, b.factors) < 0; };
  if (!std::ranges::is_sorted(terms, before)) std::ranges::stable_sort(terms, before);
  std::vector<Expr> operands;
  operands.reserve(terms.size() + 1);
  for (size_t i = 0; i < terms.size();) {
    int64_t coefficient = terms[i].coefficient;
    size_t next = i + 1;
    for (; next < terms.size() && compare_factors(terms[i].factors, terms[next].factors) == 0; ++next) {
      coefficient = add_or_throw(coefficient, terms[next].coefficient);
    }
    if (coefficient != 0) {
      bool unchanged = terms[i].source && next == i + 1;
      operands.push_back(unchanged ? *terms[i].source : make_term(coefficient, terms[i].factors));
    }
    i = next;
  }
  if (constant != 0) operands.emplace_back(constant);
  if (operands.empty()) return 0;
  if (operands.size() == 1) return operands[0];
  return make_node(Kind::Add, Type::Integer, std::move(operands));
}

Expr sum(std::span<const Expr> operands) {
  std::vector<Term> terms;
  int64_t constant = 0;
  for (const Expr& operand : operands) {
    LinearForm form = linear_form(operand);
    terms.insert(terms.end(), form.terms.begin(), form.terms.end());
    constant = add_or_throw(constant, form.constant);
  }
  return sum_terms(std::move(terms), constant);
}

Expr scale(const Expr& e, int64_t factor) {
  if (factor == 1) return e;
  if (factor == 0) return 0;
  if (e.kind() != Kind::Add) {
    Term term = as_term(e);
    return make_term(mul_or_throw(term.coefficient, factor), term.factors);
  }
  LinearForm form = linear_form(e);
  for (Term& term : form.terms) {
    term.coefficient = mul_or_throw(term.coefficient, factor);
    term.source = nullptr;
  }
  form.constant = mul_or_throw(form.constant, factor);
  return sum_terms(std::move(form));
}

std::vector<Expr> multiply_factors(std::span<const Expr> a, std::span<const Expr> b) {
  std::vector<Expr> factors;
  factors.reserve(a.size() + b.size());
  merge_factors(a, b, [&](const Expr& base, int64_t in_a, int64_t in_b) {
    factors.push_back(make_power(base, add_or_throw(in_a, in_b)));
  });
  return factors;
}

Expr multiply_terms(const Term& a, const Term& b) {
  return make_term(mul_or_throw(a.coefficient, b.coefficient), multiply_factors(a.factors, b.factors));
}

CommonFactor common_factor(const Expr& e) {
  LinearForm form = linear_form(e);
  CommonFactor common;
  common.coefficient = common_divisor(form.constant, 0);
  for (size_t i = 0; i < form.terms.size(); ++i) {
    const Term& term = form.terms[i];
    common.coefficient = common_divisor(common.coefficient, term.coefficient);
    if (form.constant != 0) continue;
    if (i == 0) {
      common.factors.assign(term.factors.begin(), term.factors.end());
    } else if (!common.factors.empty()) {
      common.factors = common_factors(common.factors, term.factors);
    }
  }
  return common;
}

CommonFactor common_factor(const CommonFactor& a, const CommonFactor& b) {
  return {common_divisor(a.coefficient, b.coefficient), common_factors(a.factors, b.factors)};
}

std::optional<Expr> divide_term(const Term& a, const Term& b) {
  if (b.coefficient == 0 || (b.coefficient == -1 && a.coefficient == std::numeric_limits<int64_t>::min()) ||
      a.coefficient % b.coefficient != 0) {
    return std::nullopt;
  }
  std::vector<Expr> factors;
  bool divisible = true;
  merge_factors(a.factors, b.factors, [&](const Expr& base, int64_t in_a, int64_t in_b) {
    if (in_a < in_b) divisible = false;
    if (in_a > in_b) factors.push_back(make_power(base, in_a - in_b));
  });
  if (!divisible) return std::nullopt;
  return make_term(a.coefficient / b.coefficient, factors);
}

Expr divide_exactly(const Expr& e, const CommonFactor& factor) {
  if (factor.is_one()) return e;
  LinearForm form = linear_form(e);
  Term divisor{factor.coefficient, factor.factors, nullptr};
  std::vector<Expr> quotients;
  for (const Term& term : form.terms) quotients.push_back(divide_term(term, divisor).value());
  quotients.emplace_back(form.constant / factor.coefficient);
  return sum(quotients);
}

Expr to_expr(const CommonFactor& factor) { return make_term(factor.coefficient, factor.factors); }

}  // namespace transporters::symbolic
