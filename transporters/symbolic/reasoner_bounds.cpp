// Bounds of integer and real expressions: interval arithmetic over the kinds, refined for sums, whose terms are seldom
// independent (Max(s, t) - s, s - 2*FloorDiv(s, 2), s*t - s).
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/reasoner.h"

namespace transporters::symbolic {

namespace {

// Nested refinements beyond this are not worth their time.
constexpr size_t kMaxDepth = 3;
// Limits of the polynomials that refine_by_shift expands.
constexpr size_t kMaxShiftSymbols = 4;
constexpr size_t kMaxShiftTerms = 12;
constexpr int64_t kMaxShiftDegree = 4;

class DepthGuard {
 public:
  explicit DepthGuard(size_t& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  size_t& depth_;
};

// k with a == k * b term by term.
std::optional<int64_t> ratio(const LinearForm& a, const LinearForm& b) {
  if (a.terms.size() != b.terms.size() || a.terms.empty() ||
      checked_mod(a.terms[0].coefficient, b.terms[0].coefficient) != 0) {
    return std::nullopt;
  }
  auto k = checked_floor_div(a.terms[0].coefficient, b.terms[0].coefficient);
  if (!k) return std::nullopt;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (checked_mul(b.terms[i].coefficient, *k) != a.terms[i].coefficient ||
        compare_factors(a.terms[i].factors, b.terms[i].factors) != 0) {
      return std::nullopt;
    }
  }
  return k;
}

// Quotients of an interval whose values are all divisible.
Range divide_by(const Range& range, int64_t divisor) {
  Range result = range;
  if (!is_infinite(range.min)) result.min = -floor_div_positive(-range.min, divisor);
  if (!is_infinite(range.max)) result.max = floor_div_positive(range.max, divisor);
  return result;
}

using Exponents = std::array<int8_t, kMaxShiftSymbols>;
using ShiftedPolynomial = std::map<Exponents, int64_t>;

// Sum of terms with each base written as its lower bound plus something not negative; nullopt when too large.
class Shift {
 public:
  bool add_base(const Expr& base, const Range& range) {
    for (const auto& known : bases_) {
      if (known.first == base) return true;
    }
    if (bases_.size() == kMaxShiftSymbols || is_infinite(range.min)) return false;
    bases_.emplace_back(base, range);
    return true;
  }

  std::optional<ShiftedPolynomial> expand(const LinearForm& form) const {
    ShiftedPolynomial sum;
    sum[Exponents{}] = form.constant;
    for (const Term& term : form.terms) {
      ShiftedPolynomial product{{Exponents{}, term.coefficient}};
      for (const Expr& factor : term.factors) {
        Power power = as_power(factor);
        for (int64_t i = 0; i < power.exponent; ++i) {
          if (!multiply(product, *power.base)) return std::nullopt;
        }
      }
      for (const auto& [exponents, coefficient] : product) {
        auto total = checked_add(sum[exponents], coefficient);
        if (!total) return std::nullopt;
        sum[exponents] = *total;
      }
    }
    return sum;
  }

  Range bounds(const ShiftedPolynomial& polynomial) const {
    Range total{0, 0};
    for (const auto& [exponents, coefficient] : polynomial) {
      Range monomial{coefficient, coefficient};
      for (size_t i = 0; i < bases_.size(); ++i) {
        const Range& range = bases_[i].second;
        Range above{0, (range + Range{-range.min, -range.min}).max};
        monomial = monomial * power(above, exponents[i]);
      }
      total = total + monomial;
    }
    return total;
  }

 private:
  bool multiply(ShiftedPolynomial& polynomial, const Expr& base) const {
    auto it = std::ranges::find_if(bases_, [&](const auto& known) { return known.first == base; });
    auto index = static_cast<size_t>(it - bases_.begin());
    ShiftedPolynomial result;
    for (const auto& [exponents, coefficient] : polynomial) {
      auto constant = checked_mul(coefficient, it->second.min);
      if (!constant) return false;
      Exponents raised = exponents;
      ++raised[index];
      for (auto [at, amount] : {std::pair{exponents, *constant}, std::pair{raised, coefficient}}) {
        auto total = checked_add(result[at], amount);
        if (!total) return false;
        result[at] = *total;
      }
    }
    polynomial = std::move(result);
    return true;
  }

  std::vector<std::pair<Expr, Range>> bases_;
};

}  // namespace

Reasoner::Reasoner(const ShapeEnv& env, bool size_oblivious)
    : env_(env), size_oblivious_(size_oblivious), cache_(size_oblivious ? env.oblivious_cache_ : env.cache_) {
  for (const auto& [name, by] : env.replacements_) replaced_mask_ |= symbol_bit(name);
}

Range Reasoner::symbol_range(const std::string& name) const {
  auto it = env_.infos_.find(name);
  if (it == env_.infos_.end()) return kAllIntegers;
  Range range = it->second.range;
  if (size_oblivious_ && range.min >= 0 && range.max >= 2) range.min = std::max<int64_t>(range.min, 2);
  return range;
}

Range Reasoner::bounds(const Expr& e) {
  if (auto value = e.as_integer()) return {*value, *value};
  if (e.kind() == Kind::Symbol) return symbol_range(e.name());
  // A result cut short by the depth limit is right but not the best there is: it is kept apart.
  if (nested_.size() <= depth_) nested_.resize(depth_ + 1);
  auto& known = depth_ == 0 ? cache_.bounds : nested_[depth_];
  if (auto it = known.find(e); it != known.end()) return it->second;
  Range range = bounds_of_kind(e);
  (depth_ == 0 ? cache_.bounds : nested_[depth_]).emplace(e, range);
  return range;
}

Range Reasoner::bounds_of_kind(const Expr& e) {
  std::span<const Expr> operands = e.operands();
  switch (e.kind()) {
    case Kind::Add:
    case Kind::Mul:
      return bounds_of_sum(e);
    case Kind::Pow:
      if (auto exponent = operands[1].as_integer()) return power(bounds(operands[0]), *exponent);
      return power(bounds(operands[0]), bounds(operands[1]));
    case Kind::FloorDiv:
      return floor_div(bounds(operands[0]), bounds(operands[1]));
    case Kind::Mod:
      return mod(bounds(operands[0]), bounds(operands[1]));
    case Kind::Min:
    case Kind::Max: {
      Range range = bounds(operands[0]);
      for (const Expr& operand : operands.subspan(1)) {
        range = e.kind() == Kind::Min ? min(range, bounds(operand)) : max(range, bounds(operand));
      }
      return range;
    }
    case Kind::Floor:
      return rounded(real_bounds(operands[0]), [](double x) { return std::floor(x); });
    case Kind::Ceil:
      return rounded(real_bounds(operands[0]), [](double x) { return std::ceil(x); });
    case Kind::Trunc:
      return rounded(real_bounds(operands[0]), [](double x) { return std::trunc(x); });
    case Kind::Round:
      return rounded(real_bounds(operands[0]), round_half_even);
    case Kind::Select:
      return hull(bounds(operands[1]), bounds(operands[2]));
    default:
      return kAllIntegers;
  }
}

RealRange Reasoner::real_bounds(const Expr& e) {
  std::span<const Expr> operands = e.operands();
  switch (e.kind()) {
    case Kind::Real:
      if (std::isnan(*e.as_real())) return {};
      return {*e.as_real(), *e.as_real()};
    case Kind::ToReal:
      return to_real(bounds(operands[0]));
    case Kind::Add:
      return real_bounds(operands[0]) + real_bounds(operands[1]);
    case Kind::Mul:
      return real_bounds(operands[0]) * real_bounds(operands[1]);
    case Kind::TrueDiv: {
      auto of = [&](const Expr& x) { return x.type() == Type::Integer ? to_real(bounds(x)) : real_bounds(x); };
      return true_div(of(operands[0]), of(operands[1]));
    }
    case Kind::Min:
    case Kind::Max: {
      RealRange range = real_bounds(operands[0]);
      for (const Expr& operand : operands.subspan(1)) {
        RealRange other = real_bounds(operand);
        range = e.kind() == Kind::Min ? RealRange{std::min(range.min, other.min), std::min(range.max, other.max)}
                                      : RealRange{std::max(range.min, other.min), std::max(range.max, other.max)};
      }
      return range;
    }
    case Kind::Sqrt: {
      RealRange range = real_bounds(operands[0]);
      return {std::sqrt(std::max(range.min, 0.0)), std::sqrt(std::max(range.max, 0.0))};
    }
    case Kind::Select:
      return hull(real_bounds(operands[1]), real_bounds(operands[2]));
    default:
      return {};
  }
}

Range Reasoner::bounds_of_factors(std::span<const Expr> factors) {
  Range range{1, 1};
  for (const Expr& factor : factors) range = range * bounds(factor);
  return range;
}

Range Reasoner::bounds_of_sum(const Expr& e) {
  LinearForm form = linear_form(e);
  Range range{form.constant, form.constant};
  bool has_product = false;
  for (const Term& term : form.terms) {
    range = range + bounds_of_factors(term.factors) * Range{term.coefficient, term.coefficient};
    has_product = has_product || term.factors.size() > 1 || as_power(term.factors[0]).exponent > 1;
  }
  refine_by_facts(form, range);
  if (depth_ == kMaxDepth) return range;
  DepthGuard guard(depth_);
  try {
    if (form.terms.size() > 1) refine_by_choices(e, form, range);
    refine_by_division(e, form, range);
    if (has_product && form.terms.size() > 1) refine_by_shift(form, range);
  } catch (const OverflowError&) {
    // The range so far stands.
  }
  return range;
}

void Reasoner::refine_by_facts(const LinearForm& form, Range& range) const {
  for (const auto& [sum, least] : env_.facts_.at_least) {
    auto k = ratio(form, linear_form(sum));
    if (!k) continue;
    Range known = Range{least, Range::kInfinity} * Range{*k, *k} + Range{form.constant, form.constant};
    range = intersect(range, known);
  }
}

// A minimum, maximum or choice takes one of its values: c*Max(x, y) + rest lies between c*x + rest and c*y + rest.
void Reasoner::refine_by_choices(const Expr& e, const LinearForm& form, Range& range) {
  for (const Term& term : form.terms) {
    const Expr& factor = term.factors[0];
    bool is_extremum = factor.kind() == Kind::Min || factor.kind() == Kind::Max;
    if (term.factors.size() != 1 || !(is_extremum || factor.kind() == Kind::Select)) continue;
    Expr rest = e - make_term(term.coefficient, term.factors);
    std::span<const Expr> values = factor.operands().subspan(is_extremum ? 0 : 1);
    bool takes_largest = (factor.kind() == Kind::Max) == (term.coefficient > 0);
    Range total = bounds(rest + scale(values[0], term.coefficient));
    for (const Expr& value : values.subspan(1)) {
      Range next = bounds(rest + scale(value, term.coefficient));
      if (!is_extremum) {
        total = hull(total, next);
      } else {
        total = takes_largest ? max(total, next) : min(total, next);
      }
    }
    range = intersect(range, total);
    return;
  }
}

// x // d is (x - x mod d) / d, and x mod d is x - d*(x // d): either way the terms of x meet those of the rest.
void Reasoner::refine_by_division(const Expr& e, const LinearForm& form, Range& range) {
  for (const Term& term : form.terms) {
    for (const Expr& factor : term.factors) {
      if (factor.kind() != Kind::FloorDiv && factor.kind() != Kind::Mod) continue;
      const Expr& x = operands_of(factor)[0];
      const Expr& d = operands_of(factor)[1];
      Expr rest = e - make_term(term.coefficient, term.factors);
      if (factor.kind() == Kind::Mod) {
        if (form.terms.size() == 1) continue;
        Expr cofactor = divide_term(term, as_term(factor)).value();
        range = intersect(range, bounds(rest + cofactor * (x - d * floor_div(x, d))));
      } else if (auto cofactor = divide_term(term, as_term(factor * d))) {
        range = intersect(range, bounds(rest + *cofactor * (x - mod(x, d))));
      } else if (auto divisor = d.as_integer(); divisor && *divisor > 0 && form.terms.size() > 1) {
        Expr outer = divide_term(term, as_term(factor)).value();
        Expr scaled = scale(rest, *divisor) + outer * x;
        range = intersect(range, divide_by(bounds(scaled) + -bounds(outer * mod(x, d)), *divisor));
      } else {
        continue;
      }
      return;
    }
  }
}

// s*t - s with s, t >= 2 is (2 + x)*(2 + y) - (2 + x) = 2 + 2*y + x + x*y: no term is negative, so 2 is its minimum.
void Reasoner::refine_by_shift(const LinearForm& form, Range& range) {
  if (!is_infinite(range.min) && !is_infinite(range.max)) return;
  if (form.terms.size() > kMaxShiftTerms) return;
  Shift shift;
  for (const Term& term : form.terms) {
    int64_t degree = 0;
    for (const Expr& factor : term.factors) {
      Power power = as_power(factor);
      degree += power.exponent;
      if (degree > kMaxShiftDegree || !shift.add_base(*power.base, bounds(*power.base))) return;
    }
  }
  if (auto polynomial = shift.expand(form)) range = intersect(range, shift.bounds(*polynomial));
}

}  // namespace transporters::symbolic
