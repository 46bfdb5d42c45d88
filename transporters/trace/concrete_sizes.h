// Plain integers that came from dynamic sizes, told back into expressions.
//
// Code that reads Tensor::size(0) as an int64_t computes with the example size. When every symbol's example size is a
// distinct prime, most such integers have one reading over the symbols: 4 * 1009 is 4*batch, 1009 + 1 is batch + 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters {

class ConcreteSizes {
 public:
  struct Symbol {
    std::string name;
    int64_t hint;
  };
  explicit ConcreteSizes(std::vector<Symbol> symbols) : symbols_(std::move(symbols)) {}

  // The expression whose value at the hints is `value`: a product of symbols with a constant factor, a quotient of a
  // symbol by a small constant, or one of those plus or minus a small constant. A constant when there is none.
  symbolic::Expr decode(int64_t value) const;

  const std::vector<Symbol>& symbols() const { return symbols_; }

 private:
  std::vector<Symbol> symbols_;
};

// Example sizes for symbols with the given ranges and samples: distinct primes, large where the range allows, and other
// ones for each `round`. Symbols whose `groups` entry is equal get the same size.
std::vector<int64_t> prime_hints(const std::vector<std::pair<int64_t, int64_t>>& ranges,
                                 const std::vector<std::string>& groups, int round);

}  // namespace transporters
