// What is known of the symbols of one program: ranges, hints, equalities, asserts. Answers the questions ("is this size
// 1?") that model code and ATen's composite kernels ask while tracing, and records what an answer took for granted.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

// Closed interval of integers; kInfinity as `max`, kMinusInfinity as `min` mean unbounded.
struct Range {
  static constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
  int64_t min = 0;
  int64_t max = kInfinity;

  bool contains(int64_t value) const { return min <= value && value <= max; }
  bool operator==(const Range&) const = default;
  // "[2, 64]", "[2, unbounded]".
  std::string str() const;
};

struct SymbolInfo {
  std::string name;
  Range range;
  // The value that stands for the symbol where only an example can decide; none for unbacked symbols, whose value is
  // computed by the graph (nonzero, item, ...).
  std::optional<int64_t> hint;
  // The size in the user's sample; differs from `hint` where the sample has 0 or 1.
  std::optional<int64_t> sample;
  // Where it comes from, for messages: "input_ids dim 0".
  std::string source;
  // Given by the user as Dim(name, min, max): it may be neither specialised nor narrowed without an error.
  bool explicit_dim = false;
};

// One thing the trace took for granted. `where` names the op, the module path and the line that asked.
struct RuntimeAssert {
  Expr condition;
  std::string where;
  std::string message = {};  // what expect() was given
};
struct Specialization {
  std::string symbol;
  int64_t value;
  std::string where;
};
struct Equality {
  std::string symbol;  // replaced ...
  Expr by;             // ... by this everywhere
  std::string where;
};
struct Narrowing {
  std::string symbol;
  Range range;  // afterwards
  std::string where;
};

class ShapeEnv {
 public:
  struct Options {
    // A guard that narrows an explicit Dim becomes a runtime assert in place of an error.
    bool prefer_deferred_runtime_asserts_over_guards = false;
  };
  ShapeEnv() = default;
  explicit ShapeEnv(Options options) : options_(options) {}

  // Adds a symbol; a taken name gets a numeric suffix. `info.hint` must be >= 2 unless the range forces less.
  Expr add_symbol(SymbolInfo info);
  // Adds a symbol whose value the graph computes: "u0", "u1", ...; `prefix` "u" by default.
  Expr add_unbacked(Range range, std::string source, std::string_view prefix = "u");

  const SymbolInfo& info(std::string_view symbol) const;  // throws Error naming the known symbols
  const SymbolInfo* try_info(std::string_view symbol) const;
  std::vector<std::string> symbols() const;  // in order of creation

  // The expression with equalities and specialisations applied and with what the ranges allow simplified away
  // (Max(batch, 1) is batch where batch >= 1; Mod(4*s, 4) is 0).
  Expr simplify(const Expr& expr) const;
  // Interval that contains every value of `expr` (integer type) over the ranges of its symbols.
  Range bounds(const Expr& expr) const;
  // The value at the hints; nullopt when an unbacked symbol is inside.
  std::optional<int64_t> hint(const Expr& expr) const;
  std::optional<Number> hint_number(const Expr& expr) const;

  // True or false when the ranges decide; nullopt otherwise. Records nothing.
  std::optional<bool> decide(const Expr& condition) const;
  // As decide, but a dynamic size is taken to be neither 0 nor 1. For questions where the answer for larger sizes
  // also serves 0 and 1 (broadcasting, contiguity, "is it empty").
  std::optional<bool> decide_size_oblivious(const Expr& condition) const;

  // Answers a question that code branches on: decide, decide_size_oblivious, then the hint, and what the hint's answer
  // needs is recorded:
  //   an equality that holds   one symbol is replaced by what it equals (an equality record, or a specialisation when
  //                            that is a number); by a runtime assert when it can't be solved for a symbol
  //   an equality that fails   a runtime assert of !=, except where the question is whether a size is 0 or 1: there
  //                            the answer for other sizes serves
  //   symbol <= c, symbol >= c the symbol's range is narrowed
  //   anything else            a runtime assert
  // An explicit Dim loses no value of its range: what would narrow, fix or tie it throws GuardError, or becomes a
  // runtime assert with prefer_deferred_runtime_asserts_over_guards. Nothing is ever fixed to 0 or 1 here. Throws
  // GuardError too when the condition is data-dependent. `call_site` ("TensorShape.cpp:123") is added to the place.
  bool guard(const Expr& condition, std::string_view call_site = "");
  // States that a condition holds (torch._check): recorded, never branched on. It may narrow ranges and tie symbols
  // that are no explicit Dims. Throws GuardError if it is surely false.
  void expect(const Expr& condition, std::string_view message = "", std::string_view call_site = "");
  // Needs a number: constants answer at once. A symbol is specialised to the size of the user's sample (to its hint
  // where there is no sample); of an expression only the value there is taken for granted, which fixes its symbols or
  // becomes a runtime assert. Recorded; throws GuardError for explicit Dims and unbacked symbols.
  int64_t specialize(const Expr& expr, std::string_view call_site = "");
  // As specialize, for the user's sample size of 1 on an axis that broadcasting requires to be 1. False, and nothing is
  // recorded, when the sample is not 1 there.
  bool specialize_to_sample(const Expr& expr, std::string_view call_site = "");

  // Asked what an expression over symbols that the graph computes is at the user's sample; nullopt when it can't tell.
  // With it, guard and specialize answer data-dependent questions as for the sample, and record a runtime assert, so
  // that the program refuses data for which the answer would be another.
  using DataOracle = std::function<std::optional<Number>(const Expr&)>;
  void set_data_oracle(DataOracle oracle) { data_oracle_ = std::move(oracle); }
  struct DataAnswer {
    Expr condition;  // what was taken for granted
    std::string where;
  };
  const std::vector<DataAnswer>& data_answers() const { return data_answers_; }

  const std::vector<RuntimeAssert>& runtime_asserts() const { return asserts_; }
  const std::vector<Specialization>& specializations() const { return specializations_; }
  const std::vector<Equality>& equalities() const { return equalities_; }
  // Ranges that guards and expectations narrowed, in order.
  const std::vector<Narrowing>& narrowings() const { return narrowings_; }

  // Called for the place named in records and errors: "aten::view at model.layers.0 (TensorShape.cpp:123)".
  void set_location(std::function<std::string()> location) { location_ = std::move(location); }

 private:
  friend class Reasoner;

  // A condition that holds, in the forms that reasoning looks things up by.
  struct Facts {
    std::vector<Expr> conditions;
    std::unordered_map<Expr, bool> truth;            // conditions and their negations
    std::vector<std::pair<Expr, int64_t>> at_least;  // sum without constant >= number
    std::unordered_map<Expr, Expr> values;           // what is no symbol but has one value: Mod(s, 4) is 0
  };
  // Results that hold until the next record.
  struct Cache {
    std::unordered_map<Expr, Expr> simplified;
    std::unordered_map<Expr, Range> bounds;
  };

  // guard.cpp
  bool guard_condition(const Expr& condition, const std::string& where);
  bool guard_junction(const Expr& condition, const std::string& where);
  bool guard_equal(const Expr& condition, const std::string& where);
  bool guard_less_equal(const Expr& condition, const std::string& where);
  void expect_condition(const Expr& condition, const std::string& message, const std::string& where);
  std::optional<Number> ask_data(const Expr& expr) const;
  void take_for_granted(const Expr& condition, const std::string& where);
  // specialize.cpp
  bool has_no_explicit_dim(const Expr& expr) const;
  std::optional<int64_t> at_sample(const Expr& expr) const;
  void specialize_symbols(const Expr& expr, const std::string& reason, const std::string& where);

  // unify.cpp
  enum class Outcome : uint8_t { Done, Unsolvable, LosesDim };
  Outcome try_unify(const Expr& condition, const std::string& where, std::string& dim);
  Outcome try_replace(const std::string& symbol, const Expr& by, const std::string& where, std::string& dim);
  Outcome try_narrow(const Expr& condition, const std::string& where, std::string& dim);
  Outcome try_fit(const Expr& expr, const Range& range, const std::string& where, std::string& dim);

  // records.cpp
  std::string place(std::string_view call_site) const;
  void add_assert(const Expr& condition, const std::string& where);
  void add_fact(const Expr& condition);
  void index_fact(const Expr& condition);
  void replace(const std::string& symbol, const Expr& by);
  void set_range(const std::string& symbol, const Range& range, const std::string& where);
  void specialize_symbol(const std::string& symbol, int64_t value, const std::string& where);
  void forget_results();
  std::string describe(const std::string& symbol) const;

  Options options_;
  std::map<std::string, SymbolInfo, std::less<>> infos_;
  std::vector<std::string> order_;
  std::unordered_map<std::string, Expr> replacements_;
  std::vector<RuntimeAssert> asserts_;
  std::vector<Specialization> specializations_;
  std::vector<Equality> equalities_;
  std::vector<Narrowing> narrowings_;
  Facts facts_;
  mutable Cache cache_;
  mutable Cache oblivious_cache_;
  std::function<std::string()> location_;
  DataOracle data_oracle_;
  std::vector<DataAnswer> data_answers_;
  std::unordered_map<std::string, int> next_unbacked_;
};

}  // namespace transporters::symbolic
