// The values of a program's symbols and size expressions during one run.
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/symbol_sources.h"

namespace transporters {

// A symbol solved from a size (or the number) of a value: scale * symbol + offset is what the value has there.
struct SymbolBinding {
  size_t symbol;
  std::optional<size_t> dim;
  int64_t scale;
  int64_t offset;
  Expr expr;  // for messages
};

// Numbers each symbol and expression of a program once; a run binds the symbols as their values appear, and evaluates
// each expression at most once.
class SymbolValues {
 public:
  explicit SymbolValues(const Program& program);

  // The bindings that a value gives, being the source of the symbols.
  const std::vector<SymbolBinding>& bindings(const Value* value) const;
  // Index of an expression, for value().
  size_t add(const Expr& expr);

  void reset();
  // Solves the symbols that a value gives. `context` and `what` ("input 'x'", "output %nonzero") are for errors.
  void bind(const std::vector<SymbolBinding>& bindings, const c10::IValue& value, const ErrorContext& context,
            const std::string& what);
  // The expression's value in this run; throws Error when a symbol inside has none.
  const symbolic::Number& value(size_t expr);
  int64_t integer(size_t expr);
  const Expr& expr(size_t index) const { return exprs_[index]; }
  // "sequence = 8 (input 'input_ids' dim 1)" for each symbol of an expression, comma separated.
  std::string explain(const Expr& expr) const;

 private:
  struct Symbol {
    std::string name;
    symbolic::Range range;
    std::optional<int64_t> value;
    std::string origin;
  };

  std::vector<Symbol> symbols_;
  std::map<std::string, size_t, std::less<>> symbol_index_;
  std::unordered_map<const Value*, std::vector<SymbolBinding>> bindings_;
  std::vector<Expr> exprs_;
  std::unordered_map<Expr, size_t> expr_index_;
  std::vector<std::optional<symbolic::Number>> values_;
};

}  // namespace transporters
