#include "transporters/trace/concrete_sizes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace transporters {
namespace {

using symbolic::Expr;

// Offsets and divisors that shape code uses: kernel sizes, strides, paddings.
constexpr int64_t kLargestOffset = 8;
constexpr int64_t kLargestDivisor = 8;
constexpr int64_t kLargePrimesFrom = 1009;

bool is_prime(int64_t n) {
  if (n < 2) return false;
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

}  // namespace

Expr ConcreteSizes::decode(int64_t value) const {
  if (value < 0) {
    const Expr positive = decode(-value);
    return positive.is_constant() ? Expr(value) : -positive;
  }
  // Products first, exactly; then with an offset; then quotients.
  for (int64_t magnitude = 0; magnitude <= kLargestOffset; ++magnitude) {
    for (int64_t offset : {magnitude, -magnitude}) {
      int64_t rest = value - offset;
      if (rest <= 0) continue;
      Expr factor = 1;
      bool found = false;
      for (const auto& symbol : symbols_) {
        while (rest % symbol.hint == 0) {
          rest /= symbol.hint;
          factor = factor * Expr::symbol(symbol.name);
          found = true;
        }
      }
      if (found) return factor * Expr(rest) + Expr(offset);
      if (magnitude == 0) break;
    }
  }
  for (const auto& symbol : symbols_) {
    for (int64_t divisor = 2; divisor <= kLargestDivisor; ++divisor) {
      for (int64_t offset = -kLargestOffset; offset <= kLargestOffset; ++offset) {
        if (symbol.hint / divisor > kLargestOffset && (symbol.hint + offset) / divisor == value)
          return symbolic::floor_div(Expr::symbol(symbol.name) + Expr(offset), Expr(divisor));
      }
    }
  }
  return Expr(value);
}

std::vector<int64_t> prime_hints(const std::vector<std::pair<int64_t, int64_t>>& ranges,
                                 const std::vector<std::string>& groups, int round) {
  std::vector<int64_t> hints(ranges.size());
  std::map<std::string, int64_t> by_group;
  std::set<int64_t> used;
  // Each round takes every third prime from its own start, so that rounds share none.
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (auto it = by_group.find(groups[i]); it != by_group.end()) {
      hints[i] = it->second;
      continue;
    }
    const auto [low, high] = ranges[i];
    int64_t hint = 0;
    const int64_t start = std::max<int64_t>(low, kLargePrimesFrom + 500 * round);
    for (int64_t candidate = start; candidate <= high && candidate < start + 4000; ++candidate) {
      if (is_prime(candidate) && !used.contains(candidate)) {
        hint = candidate;
        break;
      }
    }
    // A range that ends below: the largest primes inside it, one apart for each round.
    int skip = round;
    for (int64_t candidate = std::min<int64_t>(high, kLargePrimesFrom);
         hint == 0 && candidate >= std::max<int64_t>(low, 2); --candidate) {
      if (is_prime(candidate) && !used.contains(candidate) && skip-- == 0) hint = candidate;
    }
    if (hint == 0) hint = std::max<int64_t>(low, std::min<int64_t>(high, 2 + round));
    used.insert(hint);
    by_group[groups[i]] = hint;
    hints[i] = hint;
  }
  return hints;
}

}  // namespace transporters
