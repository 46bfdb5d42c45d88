// Expressions as torch writes them into its files: sympy's constructor form ("Add(Symbol('s0', positive=True,
// integer=True), Integer(1))", torch/utils/_sympy/functions.py), and the Python of its guards ("L['x'].size()[0] % 2 ==
// 0"). Both are read by one parser, which also takes sympy's infix form of older files ("2*s0 + 1").
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters::dynamo {

// The constructor form; `symbol` gives the text for a symbol's name.
std::string to_sympy(const symbolic::Expr& expr, const std::function<std::string(const std::string&)>& symbol);

struct SympyNames {
  // The expression for a symbol's name in the file.
  std::function<symbolic::Expr(const std::string& name)> symbol;
  // For guards: the size of dimension `dim` of the input at `path` (["past", "0"] for L['past'][0]), or the input
  // itself when it is a number and `dim` is -1. Empty when the text is no guard.
  std::function<symbolic::Expr(const std::vector<std::string>& path, int dim)> input;
};

// Throws Error with the column of the first part that is not understood.
symbolic::Expr from_sympy(std::string_view text, const SympyNames& names);

}  // namespace transporters::dynamo
