// Reals rounded to integers: floor, ceil, trunc, round. Quotients and binary fractions of integers go back to integer
// division (conversions are exact, see simplify_real.cpp).
#include <array>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

struct Fraction {
  Expr numerator;
  Expr denominator;
};

// Binary fractions p / 2**k up to these sizes multiply an integer exactly.
constexpr double kMaxNumerator = 1 << 20;
constexpr int kMaxShift = 20;

std::optional<Fraction> times_constant(const Expr& constant, const Expr& converted) {
  auto value = constant.as_real();
  if (!value || converted.kind() != Kind::ToReal) return std::nullopt;
  double numerator = *value;
  int64_t denominator = 1;
  for (int shift = 0; std::floor(numerator) != numerator && shift < kMaxShift; ++shift) {
    numerator *= 2;
    denominator *= 2;
  }
  if (!(std::abs(numerator) <= kMaxNumerator) || std::floor(numerator) != numerator) return std::nullopt;
  return Fraction{operands_of(converted)[0] * static_cast<int64_t>(numerator), denominator};
}

// The quotient of integers that a real is.
std::optional<Fraction> as_fraction(const Expr& e) {
  std::span<const Expr> operands = e.operands();
  if (e.kind() == Kind::ToReal) return Fraction{operands[0], 1};
  if (e.kind() == Kind::TrueDiv && operands[0].type() == Type::Integer) return Fraction{operands[0], operands[1]};
  if (e.kind() == Kind::Mul) return times_constant(operands[0], operands[1]);
  return std::nullopt;
}

// An integer plus a constant fraction: rounding concerns the constant alone.
struct Shifted {
  Expr integer;
  double fraction;
};

std::optional<Shifted> as_shifted(const Expr& e) {
  if (e.kind() != Kind::Add || e.operands().size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const auto constant = e.operands()[i].as_real();
    const Expr& converted = e.operands()[1 - i];
    if (constant && std::abs(*constant) <= kMaxNumerator && converted.kind() == Kind::ToReal)
      return Shifted{operands_of(converted)[0], *constant};
  }
  return std::nullopt;
}

Expr round_constant(double value, const Expr& unrounded, Kind kind) {
  if (auto integer = real_to_integer(value)) return *integer;
  return make_node(kind, Type::Integer, {unrounded});
}

}  // namespace

Expr floor(const Expr& a) {
  require_numbers("floor", std::span(&a, 1));
  if (a.type() == Type::Integer) return a;
  if (auto value = a.as_real()) return round_constant(std::floor(*value), a, Kind::Floor);
  if (auto fraction = as_fraction(a)) return floor_div(fraction->numerator, fraction->denominator);
  if (auto shifted = as_shifted(a)) return shifted->integer + static_cast<int64_t>(std::floor(shifted->fraction));
  return make_node(Kind::Floor, Type::Integer, {a});
}

Expr ceil(const Expr& a) {
  require_numbers("ceil", std::span(&a, 1));
  if (a.type() == Type::Integer) return a;
  if (auto value = a.as_real()) return round_constant(std::ceil(*value), a, Kind::Ceil);
  if (auto fraction = as_fraction(a)) return ceil_div(fraction->numerator, fraction->denominator);
  if (auto shifted = as_shifted(a)) return shifted->integer + static_cast<int64_t>(std::ceil(shifted->fraction));
  return make_node(Kind::Ceil, Type::Integer, {a});
}

Expr trunc(const Expr& a) {
  require_numbers("trunc", std::span(&a, 1));
  if (a.type() == Type::Integer) return a;
  if (auto value = a.as_real()) return round_constant(std::trunc(*value), a, Kind::Trunc);
  if (auto fraction = as_fraction(a); fraction && fraction->denominator.is(1)) return fraction->numerator;
  return make_node(Kind::Trunc, Type::Integer, {a});
}

Expr round(const Expr& a) {
  require_numbers("round", std::span(&a, 1));
  if (a.type() == Type::Integer) return a;
  if (auto value = a.as_real()) return round_constant(round_half_even(*value), a, Kind::Round);
  if (auto fraction = as_fraction(a); fraction && fraction->denominator.is(1)) return fraction->numerator;
  return make_node(Kind::Round, Type::Integer, {a});
}

}  // namespace transporters::symbolic
