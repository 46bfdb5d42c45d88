// Comparisons. Of integers: common terms cancelled, coefficients divided by their greatest common divisor, terms with a
// positive coefficient on one side and the others, negated, on the other; `a < b` is written `a + 1 <= b`, so that a
// condition and the negation of its negation are one form. Of reals: only what holds without regrouping.
#include <array>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

// Integers up to here have an exact real.
constexpr double kLargestExactReal = 9007199254740992.0;  // 2**53

Expr raw(Kind kind, const Expr& a, const Expr& b) { return make_node(kind, Type::Boolean, {a, b}); }

int64_t gcd_of_coefficients(const LinearForm& form) {
  int64_t common = 0;
  for (const Term& term : form.terms) common = common_divisor(common, term.coefficient);
  return common;
}

struct Sides {
  Expr negative;  // terms with a negative coefficient, negated
  Expr positive;
};

// Splits form (a sum compared with 0) into negative <= positive.
Sides split(const LinearForm& form) {
  std::vector<Term> negative, positive;
  for (Term term : form.terms) {
    if (term.coefficient > 0) {
      positive.push_back(term);
    } else {
      term.coefficient = negate_or_throw(term.coefficient);
      term.source = nullptr;
      negative.push_back(term);
    }
  }
  bool constant_on_left = positive.empty() ? false : negative.empty() || form.constant < 0;
  int64_t left = constant_on_left ? negate_or_throw(form.constant) : 0;
  int64_t right = constant_on_left ? 0 : form.constant;
  return {sum_terms(std::move(negative), left), sum_terms(std::move(positive), right)};
}

void divide_terms(LinearForm& form, int64_t divisor) {
  for (Term& term : form.terms) {
    term.coefficient /= divisor;
    term.source = nullptr;
  }
}

void negate(LinearForm& form) {
  form.constant = negate_or_throw(form.constant);
  for (Term& term : form.terms) {
    term.coefficient = negate_or_throw(term.coefficient);
    term.source = nullptr;
  }
}

// 0 <= difference
Expr at_least_zero(const Expr& difference) {
  LinearForm form = linear_form(difference);
  if (form.terms.empty()) return Expr::boolean(form.constant >= 0);
  // Twice at most: a divisor of 2**63 comes in two parts.
  for (int64_t common; (common = gcd_of_coefficients(form)) != 1;) {
    divide_terms(form, common);
    form.constant = floor_div_positive(form.constant, common);
  }

  // A division by a constant compared with a constant: c <= x // d is c*d <= x, and x // d <= c is x <= c*d + d - 1.
  if (form.terms.size() == 1 && form.terms[0].factors.size() == 1 &&
      form.terms[0].factors[0].kind() == Kind::FloorDiv) {
    const std::vector<Expr>& operands = operands_of(form.terms[0].factors[0]);
    if (auto divisor = operands[1].as_integer(); divisor && *divisor > 0) {
      if (form.terms[0].coefficient == 1) {
        return at_least_zero(operands[0] + mul_or_throw(form.constant, *divisor));
      }
      return at_least_zero(Expr(add_or_throw(mul_or_throw(form.constant, *divisor), *divisor - 1)) - operands[0]);
    }
  }
  Sides sides = split(form);
  return raw(Kind::LessEqual, sides.negative, sides.positive);
}

Expr equals_zero(Kind kind, const Expr& difference) {
  Expr when_different = Expr::boolean(kind == Kind::NotEqual);
  LinearForm form = linear_form(difference);
  if (form.terms.empty()) return form.constant == 0 ? Expr::boolean(kind == Kind::Equal) : when_different;
  for (int64_t common; (common = gcd_of_coefficients(form)) != 1;) {
    if (form.constant % common != 0) return when_different;
    divide_terms(form, common);
    form.constant /= common;
  }
  if (form.terms[0].coefficient < 0) negate(form);
  // The first term stands on the left; so does the constant only when it is positive there and terms are on the right.
  std::vector<Term> left, right;
  for (Term term : form.terms) {
    if (term.coefficient > 0) {
      left.push_back(term);
    } else {
      term.coefficient = negate_or_throw(term.coefficient);
      term.source = nullptr;
      right.push_back(term);
    }
  }
  bool constant_on_left = form.constant > 0 && !right.empty();
  int64_t left_constant = constant_on_left ? form.constant : 0;
  int64_t right_constant = constant_on_left ? 0 : negate_or_throw(form.constant);
  return raw(kind, sum_terms(std::move(left), left_constant), sum_terms(std::move(right), right_constant));
}

Expr compare_integers(Kind kind, const Expr& a, const Expr& b) {
  if (auto x = a.as_integer(), y = b.as_integer(); x && y) {
    switch (kind) {
      case Kind::Equal:
        return Expr::boolean(*x == *y);
      case Kind::NotEqual:
        return Expr::boolean(*x != *y);
      case Kind::Less:
        return Expr::boolean(*x < *y);
      default:
        return Expr::boolean(*x <= *y);
    }
  }
  try {
    if (kind == Kind::Less) return at_least_zero(b - a - 1);
    if (kind == Kind::LessEqual) return at_least_zero(b - a);
    return Expr::compare(a, b) > 0 ? equals_zero(kind, b - a) : equals_zero(kind, a - b);
  } catch (const OverflowError&) {
    // Near the ends of int64 the sides stay as they are.
    bool swap = (kind == Kind::Equal || kind == Kind::NotEqual) && Expr::compare(a, b) > 0;
    return swap ? raw(kind, b, a) : raw(kind, a, b);
  }
}

// A real made from an integer, compared with a constant, is a comparison of integers.
std::optional<Expr> compare_with_constant(Kind kind, const Expr& a, const Expr& b) {
  bool swapped = a.as_real().has_value();
  const Expr& converted = swapped ? b : a;
  auto constant = swapped ? a.as_real() : b.as_real();
  if (converted.kind() != Kind::ToReal || !constant || !(std::abs(*constant) <= kLargestExactReal)) return std::nullopt;
  const Expr& integer = operands_of(converted)[0];
  auto down = static_cast<int64_t>(std::floor(*constant));
  auto up = static_cast<int64_t>(std::ceil(*constant));
  switch (kind) {
    case Kind::Equal:
      return down == up ? equal(integer, down) : Expr::boolean(false);
    case Kind::NotEqual:
      return down == up ? not_equal(integer, down) : Expr::boolean(true);
    case Kind::Less:
      return swapped ? less(down, integer) : less(integer, up);
    default:
      return swapped ? less_equal(up, integer) : less_equal(integer, down);
  }
}

Expr compare_reals(Kind kind, const Expr& a, const Expr& b) {
  if (auto x = a.as_real(), y = b.as_real(); x && y) {
    switch (kind) {
      case Kind::Equal:
        return Expr::boolean(*x == *y);
      case Kind::NotEqual:
        return Expr::boolean(*x != *y);
      case Kind::Less:
        return Expr::boolean(*x < *y);
      default:
        return Expr::boolean(*x <= *y);
    }
  }
  if (a == b) return Expr::boolean(kind == Kind::Equal || kind == Kind::LessEqual);
  if (auto result = compare_with_constant(kind, a, b)) return *result;
  bool symmetric = kind == Kind::Equal || kind == Kind::NotEqual;
  return symmetric && Expr::compare(a, b) > 0 ? raw(kind, b, a) : raw(kind, a, b);
}

Expr compare_booleans(Kind kind, const Expr& a, const Expr& b) {
  bool same = kind == Kind::Equal;
  if (auto x = a.as_boolean()) return *x == same ? b : logical_not(b);
  if (auto y = b.as_boolean()) return *y == same ? a : logical_not(a);
  if (a == b) return Expr::boolean(same);
  if (a == logical_not(b)) return Expr::boolean(!same);
  return Expr::compare(a, b) > 0 ? raw(kind, b, a) : raw(kind, a, b);
}

Expr make(Kind kind, const char* operation, const Expr& a, const Expr& b) {
  std::array<Expr, 2> operands = {a, b};
  bool order = kind == Kind::Less || kind == Kind::LessEqual;
  bool booleans = a.type() == Type::Boolean && b.type() == Type::Boolean;
  if (booleans && !order) return compare_booleans(kind, a, b);
  require_numbers(operation, operands);
  promote(operands[0], operands[1]);
  return operands[0].type() == Type::Integer ? compare_integers(kind, operands[0], operands[1])
                                             : compare_reals(kind, operands[0], operands[1]);
}

}  // namespace

Expr equal(const Expr& a, const Expr& b) { return make(Kind::Equal, "==", a, b); }
Expr not_equal(const Expr& a, const Expr& b) { return make(Kind::NotEqual, "!=", a, b); }
Expr less(const Expr& a, const Expr& b) { return make(Kind::Less, "<", a, b); }
Expr less_equal(const Expr& a, const Expr& b) { return make(Kind::LessEqual, "<=", a, b); }

}  // namespace transporters::symbolic
