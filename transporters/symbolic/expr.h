// Canonical expressions over symbolic sizes: the arithmetic behind every dynamic dimension.
//
// An Expr is an immutable handle to a shared node. Constructors canonicalise (constants folded, sums and products
// flattened and sorted, like terms collected), so that equal sizes written differently compare equal:
//     Expr::symbol("batch") * 2 + Expr::symbol("batch") == 3 * Expr::symbol("batch")
// Canonicalisation uses only what holds for every integer for which the expression has a value (a division by zero has
// none), with integers that become reals taken to be exact, as they are below 2**53. What holds only inside a symbol's
// range is ShapeEnv's part. Integer division and modulo round toward minus infinity, as in Python. Arithmetic on reals
// is never regrouped. Integers and reals mix as in Python; booleans are no numbers (InternalError). A constant that
// leaves int64 throws Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace transporters::symbolic {

enum class Kind : uint8_t {
  Integer,
  Real,
  Boolean,
  Symbol,  // an integer symbol, told apart by name alone
  // integer or real
  Add,
  Mul,
  Pow,
  Min,
  Max,
  // integer
  FloorDiv,
  Mod,
  Floor,  // of a real
  Ceil,   // of a real
  Trunc,  // of a real
  Round,  // of a real, ties to even
  // real
  ToReal,
  TrueDiv,
  Sqrt,
  // boolean; greater-than forms are written with the operands swapped
  Equal,
  NotEqual,
  Less,
  LessEqual,
  And,
  Or,
  Not,
  // any type: operands are condition, value if true, value if false
  Select,
};

enum class Type : uint8_t { Integer, Real, Boolean };

using Number = std::variant<int64_t, double, bool>;

class Expr {
 public:
  struct Node;

  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t value);                       // NOLINT(google-explicit-constructor): a size is written as a plain number
  Expr(int value) : Expr(int64_t{value}) {}  // NOLINT(google-explicit-constructor)
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  // Throws Error unless the name is an identifier.
  static Expr symbol(std::string_view name);
  static Expr real(double value);
  static Expr boolean(bool value);
  // Parses what str() prints. Throws Error with the column of the first character it could not read.
  static Expr parse(std::string_view text);

  Kind kind() const;
  Type type() const;
  std::span<const Expr> operands() const;
  // The symbol's name; empty for other kinds.
  const std::string& name() const;

  // The value when this is a constant of that type, else nullopt.
  std::optional<int64_t> as_integer() const;
  std::optional<double> as_real() const;
  std::optional<bool> as_boolean() const;
  bool is_constant() const;
  // True for the integer constant `value`.
  bool is(int64_t value) const { return as_integer() == value; }

  // Infix text in Python syntax with FloorDiv, Mod, Max, Min, ... as calls: "2*batch + 1", "FloorDiv(sequence, 2)". The
  // functions have the names of torch.utils._sympy.functions, so torch reads the text as this expression.
  std::string str() const;
  size_t hash() const;
  // Names of the symbols inside, sorted, each once.
  std::vector<std::string> symbols() const;
  bool contains(std::string_view symbol) const;

  // Replaces symbols; names absent from the map stay. The result is canonical again.
  Expr substitute(const std::unordered_map<std::string, Expr>& replacements) const;
  // The number this is when `value_of` gives each symbol; nullopt when it gives none, on division by zero, or on
  // overflow of int64.
  std::optional<Number> evaluate(const std::function<std::optional<int64_t>(std::string_view)>& value_of) const;

  // Structural equality of canonical forms.
  friend bool operator==(const Expr& a, const Expr& b);
  // A total order that does not depend on addresses, so that output is the same in every run.
  static int compare(const Expr& a, const Expr& b);

  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator*(const Expr& a, const Expr& b);
// An integer to a constant negative power throws Error; to a real power, or as a real, it is a real.
Expr pow(const Expr& base, const Expr& exponent);
Expr floor_div(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr to_real(const Expr& a);
Expr true_div(const Expr& a, const Expr& b);
Expr sqrt(const Expr& a);
Expr floor(const Expr& a);
Expr ceil(const Expr& a);
Expr trunc(const Expr& a);
Expr round(const Expr& a);
Expr equal(const Expr& a, const Expr& b);
Expr not_equal(const Expr& a, const Expr& b);
Expr less(const Expr& a, const Expr& b);
Expr less_equal(const Expr& a, const Expr& b);
inline Expr greater(const Expr& a, const Expr& b) { return less(b, a); }
inline Expr greater_equal(const Expr& a, const Expr& b) { return less_equal(b, a); }
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);
// The branch that is not chosen may have no value.
Expr select(const Expr& condition, const Expr& if_true, const Expr& if_false);
// Product of sizes; 1 for none.
Expr product(std::span<const Expr> sizes);

}  // namespace transporters::symbolic

template <>
struct std::hash<transporters::symbolic::Expr> {
  size_t operator()(const transporters::symbolic::Expr& e) const noexcept { return e.hash(); }
};
