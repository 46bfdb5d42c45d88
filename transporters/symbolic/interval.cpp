#include "transporters/symbolic/interval.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"

namespace transporters::symbolic {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

int64_t add_ends(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return checked_add(a, b).value_or(a < 0 ? Range::kMinusInfinity : Range::kInfinity);
}

int64_t negate_end(int64_t a) {
  if (a == Range::kInfinity) return Range::kMinusInfinity;
  if (a == Range::kMinusInfinity) return Range::kInfinity;
  return -a;
}

int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t unbounded = (a < 0) == (b < 0) ? Range::kInfinity : Range::kMinusInfinity;
  if (is_infinite(a) || is_infinite(b)) return unbounded;
  return checked_mul(a, b).value_or(unbounded);
}

int64_t divide_ends(int64_t a, int64_t b) {
  if (is_infinite(b)) return a == 0 || is_infinite(a) || (a < 0) == (b < 0) ? 0 : -1;
  if (is_infinite(a)) return b > 0 ? a : negate_end(a);
  return *checked_floor_div(a, b);
}

template <typename F>
Range over_corners(const Range& a, const Range& b, F f) {
  std::array corners = {f(a.min, b.min), f(a.min, b.max), f(a.max, b.min), f(a.max, b.max)};
  auto [low, high] = std::ranges::minmax(corners);
  return {low, high};
}

// Quotients by divisors of one sign.
Range divide_by_signed(const Range& a, const Range& b) {
  Range quotient = over_corners(a, b, divide_ends);
  // Toward an unbounded divisor the quotient tends to 0 or -1 whatever the corner says.
  if (is_infinite(b.min) || is_infinite(b.max)) {
    bool opposite_signs = b.max < 0 ? a.max > 0 : a.min < 0;
    bool same_signs = b.max < 0 ? a.min <= 0 : a.max >= 0;
    if (opposite_signs) quotient = hull(quotient, {-1, -1});
    if (same_signs) quotient = hull(quotient, {0, 0});
  }
  return quotient;
}

double or_unbounded(double value, double unbounded) { return std::isnan(value) ? unbounded : value; }

}  // namespace

Range operator+(const Range& a, const Range& b) { return {add_ends(a.min, b.min), add_ends(a.max, b.max)}; }

Range operator-(const Range& a) { return {negate_end(a.max), negate_end(a.min)}; }

Range operator*(const Range& a, const Range& b) { return over_corners(a, b, multiply_ends); }

Range power(const Range& base, int64_t exponent) {
  auto raise = [&](int64_t end) {
    if (end == 0) return int64_t{exponent == 0};
    int64_t result = 1;
    for (int64_t i = 0; i < exponent; ++i) {
      result = multiply_ends(result, end);
      if (is_infinite(result) || end == 1) break;
      if (end == -1) return int64_t{exponent % 2 == 0 ? 1 : -1};
    }
    if (is_infinite(result)) return end > 0 || exponent % 2 == 0 ? Range::kInfinity : Range::kMinusInfinity;
    return result;
  };
  int64_t low = raise(base.min);
  int64_t high = raise(base.max);
  if (exponent % 2 == 1) return {low, high};
  bool contains_zero = base.min <= 0 && base.max >= 0;
  return {contains_zero && exponent > 0 ? 0 : std::min(low, high), std::max(low, high)};
}

Range power(const Range& base, const Range& exponent) {
  int64_t low = std::max<int64_t>(exponent.min, 0);
  int64_t high = std::max<int64_t>(exponent.max, 0);
  if (low == high) return power(base, low);
  if (base.min < 0) return kAllIntegers;
  // Beyond 64 every base of at least 2 has left int64.
  constexpr int64_t kLargestExponent = 64;
  Range smallest = power(base, std::min(low, kLargestExponent));
  Range largest = power(base, std::min(high, kLargestExponent));
  return {base.min >= 1 ? smallest.min : 0, std::max<int64_t>(largest.max, 1)};
}

Range floor_div(const Range& a, const Range& b) {
  Range positive{std::max<int64_t>(b.min, 1), b.max};
  Range negative{b.min, std::min<int64_t>(b.max, -1)};
  bool has_positive = positive.min <= positive.max;
  bool has_negative = negative.min <= negative.max;
  if (has_positive && has_negative) return hull(divide_by_signed(a, positive), divide_by_signed(a, negative));
  if (has_positive) return divide_by_signed(a, positive);
  return has_negative ? divide_by_signed(a, negative) : kAllIntegers;
}

Range mod(const Range& a, const Range& b) {
  Range result{0, 0};
  if (b.max > 0) {
    int64_t largest = is_infinite(b.max) ? b.max : b.max - 1;
    if (a.min >= 0) largest = std::min(largest, a.max);
    int64_t smallest_divisor = std::max<int64_t>(b.min, 1);
    result = a.min >= 0 && a.max < smallest_divisor && b.min > 0 ? a : Range{0, largest};
  }
  if (b.min < 0) {
    int64_t smallest = is_infinite(b.min) ? b.min : b.min + 1;
    if (a.max <= 0) smallest = std::max(smallest, a.min);
    result = hull(result, {smallest, 0});
  }
  return result;
}

Range min(const Range& a, const Range& b) { return {std::min(a.min, b.min), std::min(a.max, b.max)}; }
Range max(const Range& a, const Range& b) { return {std::max(a.min, b.min), std::max(a.max, b.max)}; }
Range hull(const Range& a, const Range& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Range intersect(const Range& a, const Range& b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

RealRange to_real(const Range& a) {
  return {a.min == Range::kMinusInfinity ? -kInfinite : static_cast<double>(a.min),
          a.max == Range::kInfinity ? kInfinite : static_cast<double>(a.max)};
}

RealRange operator+(const RealRange& a, const RealRange& b) {
  return {or_unbounded(a.min + b.min, -kInfinite), or_unbounded(a.max + b.max, kInfinite)};
}

RealRange operator*(const RealRange& a, const RealRange& b) {
  RealRange result{kInfinite, -kInfinite};
  for (double x : {a.min, a.max}) {
    for (double y : {b.min, b.max}) {
      double corner = x == 0 || y == 0 ? 0 : x * y;
      if (std::isnan(corner)) return {};
      result = {std::min(result.min, corner), std::max(result.max, corner)};
    }
  }
  return result;
}

RealRange true_div(const RealRange& a, const RealRange& b) {
  if (b.min <= 0 && b.max >= 0) return {};
  RealRange result{kInfinite, -kInfinite};
  for (double x : {a.min, a.max}) {
    for (double y : {b.min, b.max}) {
      // An unbounded end by another says nothing that the other corners do not.
      double corner = std::isinf(x) && std::isinf(y) ? 0 : x / y;
      if (std::isnan(corner)) return {};
      result = {std::min(result.min, corner), std::max(result.max, corner)};
    }
  }
  return result;
}

RealRange hull(const RealRange& a, const RealRange& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

Range rounded(const RealRange& a, double (*round)(double)) {
  if (std::isnan(a.min) || std::isnan(a.max)) return kAllIntegers;
  auto low = real_to_integer(round(a.min));
  auto high = real_to_integer(round(a.max));
  return {low.value_or(a.min < 0 ? Range::kMinusInfinity : Range::kInfinity),
          high.value_or(a.max < 0 ? Range::kMinusInfinity : Range::kInfinity)};
}

}  // namespace transporters::symbolic
