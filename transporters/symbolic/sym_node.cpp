#include "transporters/symbolic/sym_node.h"

#include <c10/core/SymNodeImpl.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "transporters/error.h"
#include "transporters/symbolic/foreign_node.h"
#include "transporters/symbolic/layout.h"

namespace transporters::symbolic {

namespace {

using c10::SymNode;
using SymNodes = c10::ArrayRef<SymNode>;

// "TensorShape.cpp:123" from the place that a guard was called at.
std::string call_site(const char* file, int64_t line) {
  std::string_view path = file ? file : "";
  path.remove_prefix(path.find_last_of("/\\") + 1);
  return path.empty() ? "" : std::string(path) + ":" + std::to_string(line);
}

// One expression of a ShapeEnv. Results of operations are simplified at once, so that what the ranges make constant is
// constant for ATen too.
class ExprNode : public c10::SymNodeImpl {
 public:
  ExprNode(Expr expr, std::shared_ptr<ShapeEnv> env, std::optional<bool> for_larger_sizes = std::nullopt)
      : expr_(std::move(expr)), env_(std::move(env)), for_larger_sizes_(for_larger_sizes) {}

  const Expr& expr() const { return expr_; }

  bool is_int() override { return expr_.type() == Type::Integer; }
  bool is_bool() override { return expr_.type() == Type::Boolean; }
  bool is_float() override { return expr_.type() == Type::Real; }

  SymNode add(const SymNode& other) override { return wrap(expr_ + expr_of(other)); }
  SymNode sub(const SymNode& other) override { return wrap(expr_ - expr_of(other)); }
  SymNode mul(const SymNode& other) override { return wrap(expr_ * expr_of(other)); }
  SymNode truediv(const SymNode& other) override { return wrap(true_div(expr_, expr_of(other))); }
  SymNode float_truediv(const SymNode& other) override { return truediv(other); }
  SymNode int_truediv(const SymNode& other) override { return truediv(other); }
  SymNode pow(const SymNode& other) override {
    const Expr exponent = expr_of(other);
    // As in Python, an integer to a negative power is a float.
    if (is_int() && exponent.type() == Type::Integer && env_->bounds(exponent).min < 0) {
      return wrap(symbolic::pow(to_real(expr_), exponent));
    }
    return wrap(symbolic::pow(expr_, exponent));
  }
  SymNode float_pow(const SymNode& other) override { return wrap(symbolic::pow(to_real(expr_), expr_of(other))); }
  SymNode pow_by_natural(const SymNode& other) override { return wrap(symbolic::pow(expr_, expr_of(other))); }
  SymNode floordiv(const SymNode& other) override {
    const Expr divisor = expr_of(other);
    if (is_int() && divisor.type() == Type::Integer) return wrap(floor_div(expr_, divisor));
    return wrap(to_real(symbolic::floor(true_div(expr_, divisor))));
  }
  SymNode int_floordiv(const SymNode& other) override { return floordiv(other); }
  SymNode mod(const SymNode& other) override {
    const Expr divisor = expr_of(other);
    if (is_int() && divisor.type() == Type::Integer) return wrap(symbolic::mod(expr_, divisor));
    return wrap(expr_ - to_real(symbolic::floor(true_div(expr_, divisor))) * divisor);
  }
  SymNode neg() override { return wrap(-expr_); }
  SymNode ceil() override { return wrap(symbolic::ceil(expr_)); }
  SymNode floor() override { return wrap(symbolic::floor(expr_)); }
  SymNode sym_min(const SymNode& other) override { return wrap(min(expr_, expr_of(other))); }
  SymNode sym_max(const SymNode& other) override { return wrap(max(expr_, expr_of(other))); }
  SymNode sym_float() override { return wrap(to_real(expr_)); }

  SymNode eq(const SymNode& other) override { return compare(equal, other); }
  SymNode ne(const SymNode& other) override { return compare(not_equal, other); }
  SymNode lt(const SymNode& other) override { return compare(less, other); }
  SymNode le(const SymNode& other) override { return compare(less_equal, other); }
  SymNode gt(const SymNode& other) override { return compare(greater, other); }
  SymNode ge(const SymNode& other) override { return compare(greater_equal, other); }
  SymNode sym_and(const SymNode& other) override {
    const Expr operand = expr_of(other);
    auto a = oblivious_answer(), b = oblivious_answer_of(other);
    bool settled = a == false || b == false;
    return wrap(logical_and(expr_, operand), settled ? std::optional(false) : a && b ? a : std::nullopt);
  }
  SymNode sym_or(const SymNode& other) override {
    const Expr operand = expr_of(other);
    auto a = oblivious_answer(), b = oblivious_answer_of(other);
    bool settled = a == true || b == true;
    return wrap(logical_or(expr_, operand), settled ? std::optional(true) : a && b ? a : std::nullopt);
  }
  SymNode sym_not() override {
    return wrap(logical_not(expr_), for_larger_sizes_ ? std::optional(!*for_larger_sizes_) : std::nullopt);
  }
  SymNode sym_ite(const SymNode& if_true, const SymNode& if_false) override {
    return wrap(select(expr_, expr_of(if_true), expr_of(if_false)));
  }

  SymNode is_contiguous(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(symbolic::is_contiguous(*env_, exprs_of(sizes), exprs_of(strides)));
  }
  SymNode is_channels_last_contiguous_2d(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(is_channels_last_contiguous(*env_, exprs_of(sizes), exprs_of(strides), 4));
  }
  SymNode is_channels_last_contiguous_3d(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(is_channels_last_contiguous(*env_, exprs_of(sizes), exprs_of(strides), 5));
  }
  SymNode is_channels_last_strides_2d(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(is_channels_last_strides(*env_, exprs_of(sizes), exprs_of(strides), 4));
  }
  SymNode is_channels_last_strides_3d(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(is_channels_last_strides(*env_, exprs_of(sizes), exprs_of(strides), 5));
  }
  SymNode is_non_overlapping_and_dense(SymNodes sizes, SymNodes strides) override {
    return wrap_bool(symbolic::is_non_overlapping_and_dense(*env_, exprs_of(sizes), exprs_of(strides)));
  }

  SymNode clone() override { return wrap(expr_); }
  SymNode wrap_int(int64_t value) override { return wrap(value); }
  SymNode wrap_float(double value) override { return wrap(Expr::real(value)); }
  SymNode wrap_bool(bool value) override { return wrap(Expr::boolean(value)); }

  int64_t guard_int(const char* file, int64_t line) override { return env_->specialize(expr_, call_site(file, line)); }
  double guard_float(const char* file, int64_t line) override {
    // A number that the data gives is asserted, and stays a symbol.
    std::map<std::string, int64_t, std::less<>> numbers;
    for (const std::string& symbol : current().symbols())
      numbers[symbol] = env_->specialize(Expr::symbol(symbol), call_site(file, line));
    const auto value = current().evaluate([&](std::string_view name) -> std::optional<int64_t> {
      const auto found = numbers.find(name);
      return found == numbers.end() ? std::nullopt : std::optional(found->second);
    });
    if (value) return std::visit([](auto number) { return static_cast<double>(number); }, *value);
    throw GuardError("`" + expr_.str() + "` has no value at the example sizes, at " + call_site(file, line));
  }
  bool guard_bool(const char* file, int64_t line) override {
    if (auto answer = oblivious_answer()) return *answer;
    return env_->guard(expr_, call_site(file, line));
  }
  bool guard_size_oblivious(const char* file, int64_t line) override { return guard_bool(file, line); }
  bool guard_or_false(const char*, int64_t) override { return oblivious_answer().value_or(false); }
  bool guard_or_true(const char*, int64_t) override { return oblivious_answer().value_or(true); }
  bool statically_known_true(const char*, int64_t) override { return env_->decide(expr_).value_or(false); }
  // A check that the example fails is answered false, so that the kernel's own message is what the user reads.
  bool expect_true(const char* file, int64_t line) override {
    auto answer = env_->decide(expr_);
    if (!answer) {
      if (auto hint = env_->hint_number(expr_)) answer = std::get<bool>(*hint);
    }
    if (answer == false) return false;
    env_->expect(expr_, "", call_site(file, line));
    return true;
  }
  int64_t int_() override { return guard_int("", 0); }
  bool bool_() override { return guard_bool("", 0); }

  bool has_hint() override { return env_->hint_number(expr_).has_value(); }
  std::string str() override { return expr_.str(); }

  std::optional<int64_t> constant_int() override { return current().as_integer(); }
  std::optional<bool> constant_bool() override { return current().as_boolean(); }
  std::optional<int64_t> maybe_as_int() override { return constant_int(); }
  bool is_constant() override { return current().is_constant(); }
  bool is_symbolic() override { return !is_constant(); }

 private:
  using Comparison = Expr (*)(const Expr&, const Expr&);

  SymNode wrap(const Expr& expr, std::optional<bool> for_larger_sizes = std::nullopt) const {
    return c10::make_intrusive<ExprNode>(env_->simplify(expr), env_, for_larger_sizes);
  }

  SymNode compare(Comparison make, const SymNode& other) const {
    const Expr operand = expr_of(other);
    return wrap(make(expr_, operand), answer_for_larger_sizes(make, expr_, operand));
  }

  // What a comparison of a computed size (s - 2 behind a convolution) with a small number is for all sizes of at least
  // 2. As an expression it can only be told from `s == 3` here, where its sides are still apart.
  std::optional<bool> answer_for_larger_sizes(Comparison make, const Expr& size, const Expr& number) const {
    auto small = number.as_integer();
    if (!small || *small < 0 || *small > 2 || size.type() != Type::Integer || size.is_constant()) return std::nullopt;
    constexpr int64_t kLarge = int64_t{1} << 40;
    auto answer = make(2, number).as_boolean();
    if (answer != make(kLarge, number).as_boolean()) return std::nullopt;
    // Remainders and differences that can be negative are no sizes.
    if (contains_mod(size) || env_->bounds(size).min < 0) return std::nullopt;
    auto hint = env_->hint(size);
    return hint && *hint >= 2 ? answer : std::nullopt;
  }

  static bool contains_mod(const Expr& e) {
    return e.kind() == Kind::Mod || std::ranges::any_of(e.operands(), contains_mod);
  }

  std::optional<bool> oblivious_answer() const {
    auto answer = env_->decide_size_oblivious(expr_);
    return answer ? answer : for_larger_sizes_;
  }
  std::optional<bool> oblivious_answer_of(const SymNode& other) const {
    if (auto* ours = dynamic_cast<ExprNode*>(other.get())) return ours->oblivious_answer();
    return expr_of(other).as_boolean();
  }

  // What the expression has become since it was made.
  Expr current() const { return env_->simplify(expr_); }

  Expr expr_of(const SymNode& other) const;
  std::vector<Expr> exprs_of(SymNodes nodes) const {
    std::vector<Expr> exprs;
    exprs.reserve(nodes.size());
    for (const SymNode& node : nodes) exprs.push_back(expr_of(node));
    return exprs;
  }

  Expr expr_;
  std::shared_ptr<ShapeEnv> env_;
  // Of a condition: its answer where no size is 0 or 1, if known (see answer_for_larger_sizes).
  std::optional<bool> for_larger_sizes_;
};

NodeUnwrapper unwrap_node = nullptr;

// Of our own nodes, wrapped or not, and of libtorch's constants.
Expr expr_of_node(c10::SymNodeImpl* node) {
  if (auto* ours = dynamic_cast<ExprNode*>(node)) return ours->expr();
  if (auto value = node->maybe_as_int()) return *value;
  if (auto value = node->constant_int()) return *value;
  if (auto value = node->constant_bool()) return Expr::boolean(*value);
  if (unwrap_node != nullptr) {
    if (const c10::SymNode wrapped = unwrap_node(node)) return expr_of_node(wrapped.get());
  }
  throw InternalError("a symbolic number that another tracer made: " + node->str());
}

Expr ExprNode::expr_of(const SymNode& other) const {
  if (auto* ours = dynamic_cast<ExprNode*>(other.get()); ours && ours->env_ != env_) {
    throw InternalError("sizes of two traces meet: " + expr_.str() + " and " + ours->expr_.str());
  }
  return expr_of_node(other.get());
}

SymNode make_node(const Expr& expr, const std::shared_ptr<ShapeEnv>& env) {
  return c10::make_intrusive<ExprNode>(expr, env);
}

}  // namespace

void set_node_unwrapper(NodeUnwrapper unwrapper) { unwrap_node = unwrapper; }

c10::SymInt to_sym_int(const Expr& expr, const std::shared_ptr<ShapeEnv>& env) {
  const Expr simplified = env->simplify(expr);
  if (auto value = simplified.as_integer()) return *value;
  return c10::SymInt(make_node(simplified, env));
}

c10::SymFloat to_sym_float(const Expr& expr, const std::shared_ptr<ShapeEnv>& env) {
  const Expr simplified = env->simplify(expr);
  if (auto value = simplified.as_real()) return *value;
  return c10::SymFloat(make_node(simplified, env));
}

c10::SymBool to_sym_bool(const Expr& expr, const std::shared_ptr<ShapeEnv>& env) {
  const Expr simplified = env->simplify(expr);
  if (auto value = simplified.as_boolean()) return *value;
  return c10::SymBool(make_node(simplified, env));
}

Expr to_expr(const c10::SymInt& value) {
  if (!value.is_heap_allocated()) return value.as_int_unchecked();
  return expr_of_node(value.toSymNodeImplUnowned());
}

Expr to_expr(const c10::SymFloat& value) {
  if (!value.is_symbolic()) return Expr::real(value.as_float_unchecked());
  return expr_of_node(value.toSymNodeImplUnowned());
}

Expr to_expr(const c10::SymBool& value) {
  if (!value.is_heap_allocated()) return Expr::boolean(value.as_bool_unchecked());
  return expr_of_node(value.toSymNodeImplUnowned());
}

}  // namespace transporters::symbolic
