// What follows from the ranges and facts of a ShapeEnv: bounds of expressions, simpler forms, truth of conditions.
//
// A Reasoner reads its ShapeEnv and fills the caches there; it is made for one question and thrown away.
#pragma once

#include "transporters/symbolic/interval.h"
#include "transporters/symbolic/shape_env.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

class Reasoner {
 public:
  // With `size_oblivious`, symbols that cannot be negative are taken to be at least 2 where their range allows it.
  explicit Reasoner(const ShapeEnv& env, bool size_oblivious = false);

  Expr simplify(const Expr& e);
  // Of an integer expression without replaced symbols (simplify applies replacements).
  Range bounds(const Expr& e);
  RealRange real_bounds(const Expr& e);

 private:
  // reasoner_bounds.cpp
  Range symbol_range(const std::string& name) const;
  Range bounds_of_kind(const Expr& e);
  Range bounds_of_sum(const Expr& e);
  Range bounds_of_factors(std::span<const Expr> factors);
  void refine_by_facts(const LinearForm& form, Range& range) const;
  void refine_by_choices(const Expr& e, const LinearForm& form, Range& range);
  void refine_by_division(const Expr& e, const LinearForm& form, Range& range);
  void refine_by_shift(const LinearForm& form, Range& range);

  // reasoner_simplify.cpp
  Expr simplify_once(const Expr& e);
  Expr simplify_operands(const Expr& e);
  std::optional<Expr> apply_rules(const Expr& e);
  std::optional<Expr> simplify_product(const Expr& e);
  std::optional<Expr> simplify_extremum(const Expr& e);
  std::optional<Expr> simplify_floor_div(const Expr& e);
  std::optional<Expr> simplify_mod(const Expr& e);
  std::optional<Expr> simplify_trunc(const Expr& e);
  std::optional<Expr> simplify_comparison(const Expr& e);
  std::optional<Expr> simplify_integer_comparison(const Expr& e);
  std::optional<Expr> simplify_real_comparison(const Expr& e);
  bool is_at_least_zero(const Expr& e);

  const ShapeEnv& env_;
  const bool size_oblivious_;
  ShapeEnv::Cache& cache_;
  uint64_t replaced_mask_ = 0;
  size_t depth_ = 0;                                     // of refinements
  std::vector<std::unordered_map<Expr, Range>> nested_;  // bounds found at each depth
};

}  // namespace transporters::symbolic
