// Arithmetic on closed intervals. An end at the limit of its type means unbounded; results that leave int64 become
// unbounded, so an interval always contains every value.
#pragma once

#include <limits>

#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {

inline constexpr Range kAllIntegers{Range::kMinusInfinity, Range::kInfinity};

inline bool is_infinite(int64_t end) { return end == Range::kInfinity || end == Range::kMinusInfinity; }

Range operator+(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range operator-(const Range& a);
Range power(const Range& base, int64_t exponent);
Range power(const Range& base, const Range& exponent);
// Values where the divisor is 0 are undefined and left out.
Range floor_div(const Range& a, const Range& b);
Range mod(const Range& a, const Range& b);
Range min(const Range& a, const Range& b);
Range max(const Range& a, const Range& b);
// Smallest interval around both; what both contain (empty: min > max).
Range hull(const Range& a, const Range& b);
Range intersect(const Range& a, const Range& b);
inline bool is_subset(const Range& inner, const Range& outer) {
  return outer.min <= inner.min && inner.max <= outer.max;
}

struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

RealRange to_real(const Range& a);
RealRange operator+(const RealRange& a, const RealRange& b);
RealRange operator*(const RealRange& a, const RealRange& b);
RealRange true_div(const RealRange& a, const RealRange& b);
RealRange hull(const RealRange& a, const RealRange& b);
// The integers that `round` (monotone) makes of the interval.
Range rounded(const RealRange& a, double (*round)(double));

}  // namespace transporters::symbolic
