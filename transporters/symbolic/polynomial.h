// Division of sums by sums, seen as polynomials over the factors that occur in them.
#pragma once

#include <optional>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

struct Division {
  Expr quotient;
  Expr remainder;
};

// a == quotient * b + remainder with integer coefficients, by multivariate division in lexicographic order; for every
// value, so FloorDiv(a, b) == quotient + FloorDiv(remainder, b). nullopt when b is 0 or the division grows too large.
std::optional<Division> divide(const Expr& a, const Expr& b);

}  // namespace transporters::symbolic
