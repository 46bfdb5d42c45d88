// Random expression trees with their own plain evaluation, for the fuzz tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters::symbolic::fuzz {

// An operation as written, before any rule was applied.
enum class Op : uint8_t {
  Constant,
  Symbol,
  Add,
  Sub,
  Neg,
  Mul,
  Pow,
  Min,
  Max,
  FloorDiv,
  CeilDiv,
  Mod,
  Floor,
  Ceil,
  Trunc,
  Round,
  ToReal,
  TrueDiv,
  Sqrt,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  Not,
  Select,
};

struct Tree;
using TreePtr = std::shared_ptr<const Tree>;

struct Tree {
  Op op;
  Type type;
  Number value = int64_t{0};
  std::string name = {};
  std::vector<TreePtr> children = {};
};

using Assignment = std::map<std::string, int64_t, std::less<>>;

// Grows trees of a type up to a depth.
class Grower {
 public:
  // With `extreme`, constants near the ends of int64 are among the leaves.
  Grower(std::mt19937_64& random, std::vector<std::string> symbols, bool extreme = false)
      : random_(random), symbols_(std::move(symbols)), extreme_(extreme) {}
  TreePtr grow(Type type, int depth);
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

 private:
  TreePtr leaf(Type type);

  std::mt19937_64& random_;
  std::vector<std::string> symbols_;
  bool extreme_;
};

// The canonical expression of a tree.
Expr build(const Tree& tree);
// Value by plain arithmetic; nullopt where it is undefined, very large, or no finite real.
std::optional<Number> evaluate(const Tree& tree, const Assignment& values);
size_t size(const Tree& tree);
std::string to_string(const Tree& tree);

// The smallest tree found, by dropping parts of `tree`, that `fails` still rejects.
TreePtr shrink(TreePtr tree, const std::function<bool(const Tree&)>& fails);

}  // namespace transporters::symbolic::fuzz
