// Where the symbols of a program get their values at run time: a size of an input, or what a node computes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters {

// `scale * symbol + offset` is the size of `value` in dimension `dim`, or is `value` itself when that is a number.
struct SymbolSource {
  Value* value = nullptr;
  std::optional<size_t> dim;  // nullopt for a number
  int64_t scale = 1;
  int64_t offset = 0;
};

// The first source of each symbol in execution order: user inputs, then node outputs. Within one value, and among the
// inputs, a plain symbol is preferred to one inside a linear expression (2*sequence + 1). Symbols without a source are
// absent.
std::map<std::string, SymbolSource> find_symbol_sources(const Program& program);

// Symbols inside a type's sizes, strides or number; inside an argument's expressions. Sorted, each once.
std::vector<std::string> symbols_of(const ValueType& type);
std::vector<std::string> symbols_of(const Argument& argument);

}  // namespace transporters
