// Inside of an expression. Only symbolic/*.cpp look at it.
#pragma once

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {

struct Expr::Node {
  Kind kind;
  Type type;
  size_t hash = 0;
  // Bit hash(name) % 64 of every symbol inside: tells quickly that a symbol is absent.
  uint64_t symbol_mask = 0;
  Number value = int64_t{0};  // of a constant
  std::string name;           // of a symbol
  std::vector<Expr> operands;
};

// A node as given: the caller has applied every rule of that kind.
Expr make_node(Kind kind, Type type, std::vector<Expr> operands);
// Applies the constructor of a kind to operands that were replaced.
Expr rebuild(Kind kind, std::span<const Expr> operands);
// Minimum or maximum of one or more numbers.
Expr extremum(Kind kind, std::span<const Expr> operands);
// Bit of a symbol in Node::symbol_mask.
uint64_t symbol_bit(std::string_view name);

inline const std::vector<Expr>& operands_of(const Expr& e) { return e.node()->operands; }
inline bool has_symbols(const Expr& e) { return e.node()->symbol_mask != 0; }

// Throws InternalError unless every operand is a number (or, for the second, a boolean).
void require_numbers(const char* operation, std::span<const Expr> operands);
void require_booleans(const char* operation, std::span<const Expr> operands);
void require_integers(const char* operation, std::span<const Expr> operands);
// Makes both real if either is.
void promote(Expr& a, Expr& b);

}  // namespace transporters::symbolic
