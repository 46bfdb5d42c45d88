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
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

// Closed interval of integers; kInfinity as `max` means unbounded.
struct Range {
  static constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();
  int64_t min = 0;
  int64_t max = kInfinity;

  bool contains(int64_t value) const { return min <= value && value <= max; }
  bool operator==(const Range&) const = default;
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
  // needs is recorded (an equality, a narrowed range, a runtime assert; a specialisation last). Throws GuardError when
  // the condition is data-dependent or contradicts an explicit Dim.
  bool guard(const Expr& condition);
  // States that a condition holds (torch._check): recorded, never branched on. Throws GuardError if it is surely false.
  void expect(const Expr& condition, std::string_view message = "");
  // Needs a number: constants answer at once, anything else specialises its symbols to their hints (recorded), and
  // throws GuardError for explicit Dims and unbacked symbols.
  int64_t specialize(const Expr& expr);
  // As specialize, for the user's sample size of 1 on an axis that broadcasting requires to be 1.
  bool specialize_to_sample(const Expr& expr);

  const std::vector<RuntimeAssert>& runtime_asserts() const { return asserts_; }
  const std::vector<Specialization>& specializations() const { return specializations_; }
  const std::vector<Equality>& equalities() const { return equalities_; }

  // Called for the place named in records and errors: "aten::view at model.layers.0 (TensorShape.cpp:123)".
  void set_location(std::function<std::string()> location) { location_ = std::move(location); }

 private:
  Options options_;
  std::map<std::string, SymbolInfo, std::less<>> infos_;
  std::vector<std::string> order_;
  std::unordered_map<std::string, Expr> replacements_;
  std::vector<RuntimeAssert> asserts_;
  std::vector<Specialization> specializations_;
  std::vector<Equality> equalities_;
  std::function<std::string()> location_;
  int next_unbacked_ = 0;
};

}  // namespace transporters::symbolic
