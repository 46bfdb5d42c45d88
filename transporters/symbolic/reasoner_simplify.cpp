// Simpler forms inside the ranges: what canonical construction may not do because it holds only there.
#include <algorithm>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/reasoner.h"

namespace transporters::symbolic {

namespace {

// Rules make expressions simpler; should some pass one back and forth, this ends it.
constexpr int kMaxSteps = 32;
// Facts beyond this many are not combined with a question one by one.
constexpr size_t kMaxCombinedFacts = 64;

bool share_symbols(const Expr& a, const Expr& b) { return (a.node()->symbol_mask & b.node()->symbol_mask) != 0; }

}  // namespace

Expr Reasoner::simplify(const Expr& e) {
  if (!has_symbols(e)) return e;
  if (auto it = cache_.simplified.find(e); it != cache_.simplified.end()) return it->second;
  Expr result = e;
  try {
    for (int step = 0; step < kMaxSteps; ++step) {
      Expr next = simplify_once(result);
      if (next == result) break;
      result = next;
    }
  } catch (const OverflowError&) {
    // It stays as it is, then.
  }
  cache_.simplified.emplace(e, result);
  return result;
}

// Replacements, then operands, then the rules: the first of these that changes something.
Expr Reasoner::simplify_once(const Expr& e) {
  if ((e.node()->symbol_mask & replaced_mask_) != 0) {
    Expr replaced = e.substitute(env_.replacements_);
    if (replaced != e) return replaced;
  }
  Expr with_operands = simplify_operands(e);
  if (with_operands != e) return with_operands;
  return apply_rules(e).value_or(e);
}

Expr Reasoner::simplify_operands(const Expr& e) {
  const std::vector<Expr>& operands = operands_of(e);
  std::vector<Expr> simplified;
  simplified.reserve(operands.size());
  bool changed = false;
  for (const Expr& operand : operands) {
    simplified.push_back(simplify(operand));
    changed = changed || simplified.back().node() != operand.node();
  }
  return changed ? rebuild(e.kind(), simplified) : e;
}

// A simpler form, or nullopt when no rule applies.
std::optional<Expr> Reasoner::apply_rules(const Expr& e) {
  if (auto it = env_.facts_.values.find(e); it != env_.facts_.values.end()) return it->second;
  if (e.type() == Type::Integer) {
    Range range = bounds(e);
    if (range.min == range.max && !is_infinite(range.min)) return Expr(range.min);
  }
  switch (e.kind()) {
    case Kind::Mul:
      return simplify_product(e);
    case Kind::Min:
    case Kind::Max:
      return simplify_extremum(e);
    case Kind::FloorDiv:
      return simplify_floor_div(e);
    case Kind::Mod:
      return simplify_mod(e);
    case Kind::Trunc:
      return simplify_trunc(e);
    case Kind::Equal:
    case Kind::NotEqual:
    case Kind::Less:
    case Kind::LessEqual:
    case Kind::And:
    case Kind::Or:
      return simplify_comparison(e);
    default:
      return std::nullopt;
  }
}

// d * (x // d) is x - r where x mod d is known to be r.
std::optional<Expr> Reasoner::simplify_product(const Expr& e) {
  if (e.type() != Type::Integer) return std::nullopt;
  Term term = as_term(e);
  for (const Expr& factor : term.factors) {
    if (factor.kind() != Kind::FloorDiv) continue;
    const Expr& x = operands_of(factor)[0];
    const Expr& d = operands_of(factor)[1];
    Expr divided = factor * d;
    auto cofactor = divided.kind() == Kind::Mul ? divide_term(term, as_term(divided)) : std::nullopt;
    if (!cofactor) continue;
    if (auto remainder = simplify(mod(x, d)).as_integer()) return *cofactor * (x - *remainder);
  }
  return std::nullopt;
}

std::optional<Expr> Reasoner::simplify_extremum(const Expr& e) {
  if (e.type() != Type::Integer) return std::nullopt;
  std::vector<Expr> kept(e.operands().begin(), e.operands().end());
  auto never_needed = [&](const Expr& candidate, const Expr& other) {
    return is_at_least_zero(e.kind() == Kind::Max ? other - candidate : candidate - other);
  };
  for (size_t i = 0; i < kept.size();) {
    bool drop = false;
    for (size_t j = 0; j < kept.size() && !drop; ++j) drop = j != i && never_needed(kept[i], kept[j]);
    if (drop) {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (kept.size() == e.operands().size()) return std::nullopt;
  return extremum(e.kind(), kept);
}

std::optional<Expr> Reasoner::simplify_floor_div(const Expr& e) {
  const Expr& x = operands_of(e)[0];
  const Expr& d = operands_of(e)[1];
  Range divisor = bounds(d);
  if (divisor.min > 0) {
    // floor(floor(y / c) / d) == floor(y / (c*d)) for d > 0
    if (x.kind() == Kind::FloorDiv) return floor_div(operands_of(x)[0], operands_of(x)[1] * d);
    if (bounds(x).min >= 0 && is_at_least_zero(d - x - 1)) return Expr(0);
  }
  return std::nullopt;
}

std::optional<Expr> Reasoner::simplify_mod(const Expr& e) {
  const Expr& x = operands_of(e)[0];
  const Expr& d = operands_of(e)[1];
  // x mod d is x - q*d where the quotient has one value.
  Range quotient = floor_div(bounds(x), bounds(d));
  if (quotient.min == quotient.max && !is_infinite(quotient.min)) return x - d * quotient.min;
  if (bounds(x).min >= 0 && is_at_least_zero(d - x - 1)) return x;
  // x mod (k*d) is known, then so is x mod d.
  auto divisor = d.as_integer();
  if (!divisor || *divisor <= 0) return std::nullopt;
  for (const auto& [factor, value] : env_.facts_.values) {
    if (factor.kind() != Kind::Mod || operands_of(factor)[0] != x || !value.as_integer()) continue;
    auto modulus = operands_of(factor)[1].as_integer();
    if (modulus && *modulus % *divisor == 0) return mod(value, d);
  }
  return std::nullopt;
}

std::optional<Expr> Reasoner::simplify_trunc(const Expr& e) {
  const Expr& x = operands_of(e)[0];
  RealRange range = real_bounds(x);
  if (range.min >= 0) return floor(x);
  if (range.max <= 0) return ceil(x);
  return std::nullopt;
}

std::optional<Expr> Reasoner::simplify_comparison(const Expr& e) {
  if (auto it = env_.facts_.truth.find(e); it != env_.facts_.truth.end()) return Expr::boolean(it->second);
  if (e.kind() == Kind::And || e.kind() == Kind::Or) return std::nullopt;
  switch (e.operands()[0].type()) {
    case Type::Integer:
      return simplify_integer_comparison(e);
    case Type::Real:
      return simplify_real_comparison(e);
    case Type::Boolean:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Expr> Reasoner::simplify_integer_comparison(const Expr& e) {
  const Expr& a = operands_of(e)[0];
  const Expr& b = operands_of(e)[1];
  Expr difference = b - a;
  if (e.kind() == Kind::LessEqual || e.kind() == Kind::Less) {
    Expr slack = e.kind() == Kind::Less ? difference - 1 : difference;
    if (is_at_least_zero(slack)) return Expr::boolean(true);
    if (is_at_least_zero(-slack - 1)) return Expr::boolean(false);
  } else {
    bool equal = e.kind() == Kind::Equal;
    Range range = bounds(difference);
    if (range == Range{0, 0}) return Expr::boolean(equal);
    if (is_at_least_zero(difference - 1) || is_at_least_zero(-difference - 1)) return Expr::boolean(!equal);
  }
  // A common factor that is surely positive cancels.
  CommonFactor common = common_factor(difference);
  std::erase_if(common.factors, [&](const Expr& factor) { return bounds(factor).min < 1; });
  if (common.factors.empty()) return std::nullopt;
  Expr reduced = divide_exactly(difference, common);
  switch (e.kind()) {
    case Kind::Equal:
      return equal(0, reduced);
    case Kind::NotEqual:
      return not_equal(0, reduced);
    case Kind::Less:
      return less(0, reduced);
    default:
      return less_equal(0, reduced);
  }
}

std::optional<Expr> Reasoner::simplify_real_comparison(const Expr& e) {
  RealRange a = real_bounds(operands_of(e)[0]);
  RealRange b = real_bounds(operands_of(e)[1]);
  bool apart = a.max < b.min || b.max < a.min;
  switch (e.kind()) {
    case Kind::Equal:
    case Kind::NotEqual:
      return apart ? std::optional(Expr::boolean(e.kind() == Kind::NotEqual)) : std::nullopt;
    case Kind::Less:
      if (a.max < b.min) return Expr::boolean(true);
      return a.min >= b.max ? std::optional(Expr::boolean(false)) : std::nullopt;
    default:
      if (a.max <= b.min) return Expr::boolean(true);
      return a.min > b.max ? std::optional(Expr::boolean(false)) : std::nullopt;
  }
}

// By its bounds, or because some fact `sum >= least` leaves a rest that is.
bool Reasoner::is_at_least_zero(const Expr& e) {
  if (bounds(e).min >= 0) return true;
  const auto& facts = env_.facts_.at_least;
  for (size_t i = 0; i < facts.size() && i < kMaxCombinedFacts; ++i) {
    const auto& [sum, least] = facts[i];
    if (share_symbols(sum, e) && bounds(e - sum + least).min >= 0) return true;
  }
  return false;
}

}  // namespace transporters::symbolic
