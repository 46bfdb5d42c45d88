// Names inside a .pt2 file. Symbols are called s0, s1, ... and u0, u1, ... there, because torch tells their kind by the
// first letter and parses expressions in which a name like "batch" or "N" could mean something else; values get names
// that torch's generated Python code can use.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "transporters/graph/program.h"

namespace transporters::dynamo {

// Whether Python code can have a variable of that name beside torch.fx's own.
bool is_python_name(std::string_view name);
// Whether a Python method can have an argument of that name.
bool is_argument_name(std::string_view name);

class SymbolNames {
 public:
  explicit SymbolNames(const Program& program);

  // "s0" for the program's "batch".
  const std::string& file_name(const std::string& symbol) const;
  // "Symbol('s0', positive=True, integer=True)", as torch writes it.
  std::string constructor(const std::string& symbol) const;
  std::string sympy(const Expr& expr) const;
  // File names of the symbols, by the program's names.
  const std::map<std::string, std::string>& all() const { return names_; }
  // Whether a size of an input gives the symbol its value; otherwise the graph computes it.
  bool is_backed(const std::string& symbol) const { return file_name(symbol).front() == 's'; }

 private:
  const Program& program_;
  std::map<std::string, std::string> names_;
};

class ValueNames {
 public:
  // Names the program's inputs: p_, b_ and c_ before parameters, buffers and constants, user inputs after their path.
  explicit ValueNames(const Program& program);

  const std::string& operator[](const Value* value) const { return names_.at(value); }
  // A constant input has no value, but a name.
  const std::string& constant_input(size_t input) const { return constant_inputs_.at(input); }
  void add(const Value* value) { names_[value] = unique(value->name()); }
  // A name for a node, taken from now on: `wanted` made a Python identifier, with a suffix where needed.
  std::string unique(std::string_view wanted);

 private:
  std::string unique(std::string_view wanted, bool (*is_refused)(std::string_view));

  std::unordered_map<const Value*, std::string> names_;
  std::map<size_t, std::string> constant_inputs_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace transporters::dynamo
