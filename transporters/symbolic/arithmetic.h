// int64 arithmetic that notices overflow, and division that rounds toward minus infinity.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "transporters/error.h"

namespace transporters::symbolic {

// A size does not fit int64. Caught where a rule is optional; reaches the user where a size itself overflows.
class OverflowError : public Error {
 public:
  OverflowError() : Error("arithmetic on symbolic sizes overflows int64; check for sizes near 2**63") {}
};

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline int64_t add_or_throw(int64_t a, int64_t b) {
  if (auto result = checked_add(a, b)) return *result;
  throw OverflowError();
}

inline int64_t mul_or_throw(int64_t a, int64_t b) {
  if (auto result = checked_mul(a, b)) return *result;
  throw OverflowError();
}

inline int64_t negate_or_throw(int64_t a) { return mul_or_throw(a, -1); }

// Quotient rounded toward minus infinity; nullopt for b == 0 and for the one overflow, INT64_MIN / -1.
inline std::optional<int64_t> checked_floor_div(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
  int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Remainder with the sign of b; nullopt for b == 0.
inline std::optional<int64_t> checked_mod(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Greatest common divisor, 0 for two zeros; where that is 2**63, half of it.
inline int64_t common_divisor(int64_t a, int64_t b) {
  auto magnitude = [](int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
  uint64_t divisor = std::gcd(magnitude(a), magnitude(b));
  constexpr uint64_t kTooLarge = uint64_t{1} << 63;
  return static_cast<int64_t>(divisor == kTooLarge ? divisor / 2 : divisor);
}

// As the checked ones, for a divisor known to be positive.
inline int64_t floor_div_positive(int64_t a, int64_t b) { return *checked_floor_div(a, b); }
inline int64_t mod_positive(int64_t a, int64_t b) { return *checked_mod(a, b); }

// base to a natural power; nullopt on overflow and for a negative exponent.
inline std::optional<int64_t> checked_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent > 63) return std::nullopt;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    auto next = checked_mul(result, base);
    if (!next) return std::nullopt;
    result = *next;
  }
  return result;
}

// The integer a rounded real is; nullopt when it does not fit (or is not a number).
inline std::optional<int64_t> real_to_integer(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2**63
  if (!(value >= -kLimit && value < kLimit)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Rounds to the nearest integer, ties to even, whatever the thread's rounding mode.
inline double round_half_even(double value) {
  double down = std::floor(value);
  double rest = value - down;
  if (rest != 0.5) return rest < 0.5 ? down : down + 1;
  return std::fmod(down, 2) == 0 ? down : down + 1;
}

}  // namespace transporters::symbolic
