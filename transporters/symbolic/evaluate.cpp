#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

using Values = std::function<std::optional<int64_t>(std::string_view)>;

class Evaluator {
 public:
  explicit Evaluator(const Values& value_of) : value_of_(value_of) {}

  std::optional<Number> evaluate(const Expr& e) const {
    switch (e.kind()) {
      case Kind::Integer:
      case Kind::Real:
      case Kind::Boolean:
        return e.node()->value;
      case Kind::Symbol:
        if (auto value = value_of_(e.name())) return *value;
        return std::nullopt;
      case Kind::And:
      case Kind::Or:
        return junction(e);
      case Kind::Not:
        if (auto value = boolean(e.operands()[0])) return !*value;
        return std::nullopt;
      case Kind::Select: {
        auto condition = boolean(e.operands()[0]);
        return condition ? evaluate(e.operands()[*condition ? 1 : 2]) : std::nullopt;
      }
      case Kind::Equal:
      case Kind::NotEqual:
      case Kind::Less:
      case Kind::LessEqual:
        return comparison(e);
      default:
        return e.type() == Type::Real ? real_operation(e) : integer_operation(e);
    }
  }

 private:
  std::optional<int64_t> integer(const Expr& e) const {
    auto value = evaluate(e);
    return value ? std::optional(std::get<int64_t>(*value)) : std::nullopt;
  }
  std::optional<bool> boolean(const Expr& e) const {
    auto value = evaluate(e);
    return value ? std::optional(std::get<bool>(*value)) : std::nullopt;
  }
  // Of an integer or real operand.
  std::optional<double> real(const Expr& e) const {
    auto value = evaluate(e);
    if (!value) return std::nullopt;
    if (auto* whole = std::get_if<int64_t>(&*value)) return static_cast<double>(*whole);
    return std::get<double>(*value);
  }

  // One operand that settles the result is enough, even if others have no value.
  std::optional<Number> junction(const Expr& e) const {
    bool settling = e.kind() == Kind::Or;
    bool complete = true;
    for (const Expr& operand : e.operands()) {
      auto value = boolean(operand);
      if (value == settling) return settling;
      complete = complete && value;
    }
    return complete ? std::optional<Number>(!settling) : std::nullopt;
  }

  template <typename T>
  static bool compare(Kind kind, const T& a, const T& b) {
    switch (kind) {
      case Kind::Equal:
        return a == b;
      case Kind::NotEqual:
        return a != b;
      case Kind::Less:
        return a < b;
      default:
        return a <= b;
    }
  }

  std::optional<Number> comparison(const Expr& e) const {
    auto a = evaluate(e.operands()[0]);
    auto b = evaluate(e.operands()[1]);
    if (!a || !b) return std::nullopt;
    return std::visit([&](const auto& x) { return compare(e.kind(), x, std::get<std::decay_t<decltype(x)>>(*b)); }, *a);
  }

  template <typename T, typename F>
  static std::optional<T> fold(std::span<const Expr> operands, F value_of, std::optional<T> (*combine)(T, T)) {
    std::optional<T> result = value_of(operands[0]);
    for (const Expr& e : operands.subspan(1)) {
      auto next = result ? value_of(e) : std::nullopt;
      result = next ? combine(*result, *next) : std::nullopt;
    }
    return result;
  }

  std::optional<Number> integer_operation(const Expr& e) const {
    std::span<const Expr> operands = e.operands();
    auto fold_with = [&](std::optional<int64_t> (*combine)(int64_t, int64_t)) -> std::optional<Number> {
      return fold<int64_t>(operands, [&](const Expr& x) { return integer(x); }, combine);
    };
    auto rounded = [&](double (*round)(double)) -> std::optional<Number> {
      auto value = real(operands[0]);
      return value ? std::optional<Number>(real_to_integer(round(*value))) : std::nullopt;
    };
    switch (e.kind()) {
      case Kind::Add:
        return fold_with(checked_add);
      case Kind::Mul:
        return fold_with(checked_mul);
      case Kind::Pow:
        return fold_with(checked_pow);
      case Kind::FloorDiv:
        return fold_with(checked_floor_div);
      case Kind::Mod:
        return fold_with(checked_mod);
      case Kind::Min:
        return fold_with([](int64_t a, int64_t b) -> std::optional<int64_t> { return std::min(a, b); });
      case Kind::Max:
        return fold_with([](int64_t a, int64_t b) -> std::optional<int64_t> { return std::max(a, b); });
      case Kind::Floor:
        return rounded([](double x) { return std::floor(x); });
      case Kind::Ceil:
        return rounded([](double x) { return std::ceil(x); });
      case Kind::Trunc:
        return rounded([](double x) { return std::trunc(x); });
      case Kind::Round:
        return rounded(round_half_even);
      default:
        throw InternalError("not an integer operation: " + e.str());
    }
  }

  std::optional<Number> real_operation(const Expr& e) const {
    std::span<const Expr> operands = e.operands();
    auto fold_with = [&](std::optional<double> (*combine)(double, double)) -> std::optional<Number> {
      return fold<double>(operands, [&](const Expr& x) { return real(x); }, combine);
    };
    switch (e.kind()) {
      case Kind::Add:
        return fold_with([](double a, double b) -> std::optional<double> { return a + b; });
      case Kind::Mul:
        return fold_with([](double a, double b) -> std::optional<double> { return a * b; });
      case Kind::Pow:
        return fold_with([](double a, double b) -> std::optional<double> { return std::pow(a, b); });
      case Kind::Min:
        return fold_with([](double a, double b) -> std::optional<double> { return std::min(a, b); });
      case Kind::Max:
        return fold_with([](double a, double b) -> std::optional<double> { return std::max(a, b); });
      case Kind::TrueDiv:
        return fold_with(
            [](double a, double b) -> std::optional<double> { return b == 0 ? std::nullopt : std::optional(a / b); });
      case Kind::ToReal:
        return as_number(real(operands[0]));
      case Kind::Sqrt: {
        auto value = real(operands[0]);
        return value && *value >= 0 ? std::optional<Number>(std::sqrt(*value)) : std::nullopt;
      }
      default:
        throw InternalError("not a real operation: " + e.str());
    }
  }

  static std::optional<Number> as_number(std::optional<double> value) {
    return value ? std::optional<Number>(*value) : std::nullopt;
  }

  const Values& value_of_;
};

}  // namespace

std::optional<Number> Expr::evaluate(const Values& value_of) const { return Evaluator(value_of).evaluate(*this); }

}  // namespace transporters::symbolic
