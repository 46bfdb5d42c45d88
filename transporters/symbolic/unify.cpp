// Making a condition hold by what is known of symbols: replacing one by what it equals, narrowing its range.
#include <algorithm>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/interval.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/reasoner.h"
#include "transporters/symbolic/shape_env.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

struct Solution {
  std::string symbol;
  Expr by;
};

// Symbols that `zero == 0` gives as an expression of the others.
std::vector<Solution> solve(const Expr& zero) {
  std::vector<Solution> solutions;
  LinearForm form = linear_form(zero);
  for (size_t i = 0; i < form.terms.size(); ++i) {
    const Term& term = form.terms[i];
    if (term.factors.size() != 1 || term.factors[0].kind() != Kind::Symbol) continue;
    const Expr& symbol = term.factors[0];
    int64_t divisor = term.coefficient;
    bool solvable = divisor != std::numeric_limits<int64_t>::min() && checked_mod(form.constant, divisor) == 0;
    for (size_t j = 0; j < form.terms.size() && solvable; ++j) {
      if (j == i) continue;
      solvable = checked_mod(form.terms[j].coefficient, divisor) == 0 &&
                 std::ranges::none_of(form.terms[j].factors, [&](const Expr& f) { return f.contains(symbol.name()); });
    }
    if (!solvable) continue;
    Expr rest = zero - make_term(term.coefficient, term.factors);
    Expr by = divide_exactly(scale(rest, divisor < 0 ? 1 : -1), {std::abs(divisor), {}});
    solutions.push_back({symbol.name(), by});
  }
  return solutions;
}

// Whether every value of one of its symbols' ranges, shifted, is a value of the sum: some symbol has coefficient 1 or
// -1.
bool takes_every_value(const Expr& e) {
  LinearForm form = linear_form(e);
  return std::ranges::any_of(form.terms, [](const Term& term) {
    return term.factors.size() == 1 && term.factors[0].kind() == Kind::Symbol &&
           (term.coefficient == 1 || term.coefficient == -1);
  });
}

// Values x with range.min <= coefficient*x + constant <= range.max.
Range solve_affine(int64_t coefficient, int64_t constant, const Range& range) {
  Range shifted = range + Range{-constant, -constant};
  if (coefficient < 0) shifted = -shifted;
  int64_t divisor = std::abs(coefficient);
  Range result = shifted;
  if (!is_infinite(shifted.min)) result.min = -floor_div_positive(-shifted.min, divisor);
  if (!is_infinite(shifted.max)) result.max = floor_div_positive(shifted.max, divisor);
  return result;
}

}  // namespace

// Makes expr lie in `range`: by narrowing when it has one symbol, else by asserts.
ShapeEnv::Outcome ShapeEnv::try_fit(const Expr& expr, const Range& range, const std::string& where, std::string& dim) {
  if (is_subset(bounds(expr), range)) return Outcome::Done;
  LinearForm form = linear_form(expr);
  bool affine = form.terms.size() == 1 && form.terms[0].factors.size() == 1 &&
                form.terms[0].factors[0].kind() == Kind::Symbol &&
                form.constant != std::numeric_limits<int64_t>::min() &&
                form.terms[0].coefficient != std::numeric_limits<int64_t>::min();
  if (!affine) {
    if (range.min != Range::kMinusInfinity) add_assert(less_equal(range.min, expr), where);
    if (range.max != Range::kInfinity) add_assert(less_equal(expr, range.max), where);
    return Outcome::Done;
  }
  const std::string& symbol = form.terms[0].factors[0].name();
  const SymbolInfo& known = info(symbol);
  Range narrowed = intersect(known.range, solve_affine(form.terms[0].coefficient, form.constant, range));
  if (narrowed.min > narrowed.max) return Outcome::Unsolvable;
  if (known.explicit_dim) {
    dim = symbol;
    return Outcome::LosesDim;
  }
  bool unbacked = !known.hint;
  if (!unbacked && !narrowed.contains(*known.hint)) return Outcome::Unsolvable;
  if (unbacked) {
    if (narrowed.min > known.range.min) add_assert(less_equal(narrowed.min, Expr::symbol(symbol)), where);
    if (narrowed.max < known.range.max) add_assert(less_equal(Expr::symbol(symbol), narrowed.max), where);
  }
  set_range(symbol, narrowed, where);
  return Outcome::Done;
}

ShapeEnv::Outcome ShapeEnv::try_replace(const std::string& symbol, const Expr& by, const std::string& where,
                                        std::string& dim) {
  const SymbolInfo known = info(symbol);
  // What is known first can't be told by what the graph computes later.
  if (known.hint && !hint(by)) return Outcome::Unsolvable;
  const auto age = [this](const std::string& name) { return std::ranges::find(order_, name) - order_.begin(); };
  if (!known.hint)
    for (const std::string& name : by.symbols())
      if (!info(name).hint && age(name) > age(symbol)) return Outcome::Unsolvable;
  Range range = bounds(by);
  bool loses = by.is_constant() || !takes_every_value(by) || !is_subset(known.range, range);
  if (known.explicit_dim && loses) {
    dim = symbol;
    return Outcome::LosesDim;
  }
  if (auto value = by.as_integer()) {
    // 0 and 1 are what other sizes serve as well: never a reason to fix a size of the input.
    if (!known.range.contains(*value) || (known.hint && *value < 2)) return Outcome::Unsolvable;
    if (known.hint) {
      specialize_symbol(symbol, *value, where);
      return Outcome::Done;
    }
  }
  if (Outcome fit = try_fit(by, known.range, where, dim); fit != Outcome::Done) return fit;
  if (!known.hint) add_assert(equal(Expr::symbol(symbol), by), where);
  replace(symbol, by);
  equalities_.push_back({symbol, by, where});
  return Outcome::Done;
}

// For `a == b`. Symbols that the graph computes go first, explicit Dims last, younger before older.
ShapeEnv::Outcome ShapeEnv::try_unify(const Expr& condition, const std::string& where, std::string& dim) {
  std::vector<Solution> solutions;
  try {
    solutions = solve(condition.operands()[0] - condition.operands()[1]);
  } catch (const OverflowError&) {
    return Outcome::Unsolvable;
  }
  auto rank = [&](const Solution& solution) {
    const SymbolInfo& known = info(solution.symbol);
    auto age = std::ranges::find(order_, solution.symbol) - order_.begin();
    return std::tuple(known.hint.has_value(), known.explicit_dim, -age);
  };
  std::ranges::sort(solutions, [&](const Solution& a, const Solution& b) { return rank(a) < rank(b); });
  Outcome outcome = Outcome::Unsolvable;
  for (const Solution& solution : solutions) {
    Outcome next = try_replace(solution.symbol, solution.by, where, dim);
    if (next == Outcome::Done) return next;
    if (next == Outcome::LosesDim) outcome = next;
  }
  return outcome;
}

// For `a <= b` with one symbol in it.
ShapeEnv::Outcome ShapeEnv::try_narrow(const Expr& condition, const std::string& where, std::string& dim) {
  Expr slack;
  try {
    slack = condition.operands()[1] - condition.operands()[0];
  } catch (const OverflowError&) {
    return Outcome::Unsolvable;
  }
  LinearForm form = linear_form(slack);
  bool affine =
      form.terms.size() == 1 && form.terms[0].factors.size() == 1 && form.terms[0].factors[0].kind() == Kind::Symbol;
  if (!affine) return Outcome::Unsolvable;
  return try_fit(slack, {0, Range::kInfinity}, where, dim);
}

}  // namespace transporters::symbolic
