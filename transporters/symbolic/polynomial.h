// Division of sums by sums, seen as polynomials over the factors that occur in them.
#pragma once

#include <optional>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

struct Division {
  Expr quotient;
  Expr remainder;
};

// The terms of a that b divides, split off: a == quotient * b + remainder for every value, and the remainder is some of
// a's terms (none when b divides a), so FloorDiv(a, b) == quotient + FloorDiv(remainder, b). By multivariate division
// in lexicographic order; nullopt when nothing can be split off or the division grows too large.
std::optional<Division> split_off_multiple(const Expr& a, const Expr& b);

}  // namespace transporters::symbolic
