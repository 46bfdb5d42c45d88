// Sizes of a file: sympy texts to expressions over the program's symbols, with ranges and hints.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "transporters/dynamo/json_access.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

class SizeReader {
 public:
  // `symbols`: the program's names by the file's; others keep theirs.
  explicit SizeReader(std::map<std::string, std::string> symbols) : names_(std::move(symbols)) {}

  // schema.SymInt, SymFloat and SymBool: {"as_int": 3} or {"as_expr": {"expr_str": ..., "hint": ...}}.
  Expr read(const ConstJson& json);
  std::vector<Expr> read_all(const ConstJson& json);
  TensorType read_tensor(const ConstJson& tensor_meta);
  // The sym_*_values of a graph by name.
  void read_values(const ConstJson& graph);
  // Takes the names of another graph's numbers, and gives those known until now.
  std::unordered_map<std::string, Expr> exchange_values(std::unordered_map<std::string, Expr> values) {
    values_.swap(values);
    return values;
  }
  // The number that a name stands for; null when the file does not say.
  const Expr* find(const std::string& name) const;
  Expr symbol(const std::string& file_name) const;

  // Ranges of "range_constraints", for symbols that are in use.
  std::map<std::string, symbolic::Range> read_ranges(const ConstJson& range_constraints) const;
  const std::map<std::string, int64_t>& hints() const { return hints_; }

 private:
  std::map<std::string, std::string> names_;
  std::unordered_map<std::string, Expr> parsed_;
  std::unordered_map<std::string, Expr> values_;
  std::map<std::string, int64_t> hints_;
};

}  // namespace transporters::dynamo
