#include "random_tree.h"

#include <array>
#include <cmath>
#include <limits>
#include <sstream>

namespace transporters::symbolic::fuzz {

namespace {

TreePtr make(Op op, Type type, std::vector<TreePtr> children) {
  return std::make_shared<Tree>(Tree{.op = op, .type = type, .children = std::move(children)});
}

TreePtr constant(Number value) {
  static constexpr std::array kTypes = {Type::Integer, Type::Real, Type::Boolean};
  return std::make_shared<Tree>(Tree{.op = Op::Constant, .type = kTypes[value.index()], .value = value});
}

TreePtr symbol(std::string name) {
  return std::make_shared<Tree>(Tree{.op = Op::Symbol, .type = Type::Integer, .name = std::move(name)});
}

// Numbers beyond this are left out: another order of the same operations may overflow.
constexpr long double kLargest = 1e9L;

std::optional<Number> narrow(long double exact, int64_t wrapped) {
  if (std::abs(exact) > kLargest) return std::nullopt;
  return wrapped;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::floor(static_cast<long double>(a) / static_cast<long double>(b)));
}

std::optional<Number> integer_result(Op op, int64_t a, int64_t b) {
  auto la = static_cast<long double>(a);
  auto lb = static_cast<long double>(b);
  auto wrap = [](uint64_t x) { return static_cast<int64_t>(x); };
  auto ua = static_cast<uint64_t>(a);
  auto ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Add:
      return narrow(la + lb, wrap(ua + ub));
    case Op::Sub:
      return narrow(la - lb, wrap(ua - ub));
    case Op::Mul:
      return narrow(la * lb, wrap(ua * ub));
    case Op::Min:
      return std::min(a, b);
    case Op::Max:
      return std::max(a, b);
    case Op::FloorDiv:
      if (b == 0) return std::nullopt;
      return floor_quotient(a, b);
    case Op::CeilDiv:
      if (b == 0) return std::nullopt;
      return -floor_quotient(-a, b);
    case Op::Mod:
      if (b == 0) return std::nullopt;
      return a - b * floor_quotient(a, b);
    case Op::Pow: {
      uint64_t result = 1;
      long double exact = 1;
      for (int64_t i = 0; i < b; ++i) {
        result *= ua;
        exact *= la;
      }
      return b < 0 ? std::nullopt : narrow(exact, wrap(result));
    }
    default:
      return std::nullopt;
  }
}

std::optional<Number> finite(double value) {
  return std::isfinite(value) ? std::optional<Number>(value) : std::nullopt;
}

std::optional<Number> real_result(Op op, double a, double b) {
  switch (op) {
    case Op::Add:
      return finite(a + b);
    case Op::Sub:
      return finite(a - b);
    case Op::Mul:
      return finite(a * b);
    case Op::Min:
      return std::min(a, b);
    case Op::Max:
      return std::max(a, b);
    case Op::TrueDiv:
      return b == 0 ? std::nullopt : finite(a / b);
    case Op::Pow:
      return finite(std::pow(a, b));
    default:
      return std::nullopt;
  }
}

template <typename T>
bool compare(Op op, const T& a, const T& b) {
  switch (op) {
    case Op::Equal:
      return a == b;
    case Op::NotEqual:
      return a != b;
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    case Op::Greater:
      return a > b;
    default:
      return a >= b;
  }
}

double as_real(const Number& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

std::optional<Number> rounded(Op op, double value) {
  double result = op == Op::Floor   ? std::floor(value)
                  : op == Op::Ceil  ? std::ceil(value)
                  : op == Op::Trunc ? std::trunc(value)
                                    : std::nearbyint(value);
  if (std::abs(result) > static_cast<double>(kLargest)) return std::nullopt;
  return static_cast<int64_t>(result);
}

std::optional<Number> evaluate_junction(const Tree& tree, const Assignment& values) {
  bool settling = tree.op == Op::Or;
  bool complete = true;
  for (const TreePtr& child : tree.children) {
    auto value = evaluate(*child, values);
    if (value == Number(settling)) return settling;
    complete = complete && value.has_value();
  }
  return complete ? std::optional<Number>(!settling) : std::nullopt;
}

}  // namespace

TreePtr Grower::leaf(Type type) {
  static constexpr std::array kReals = {0.5, 0.25, 2.0, 0.3, -1.5, 3.0, 1.0, 0.0};
  static constexpr std::array kExtremes = {std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min(),
                                           std::numeric_limits<int64_t>::min() + 1,
                                           int64_t{1} << 62,
                                           -(int64_t{1} << 62),
                                           int64_t{1} << 53};
  switch (type) {
    case Type::Integer:
      if (extreme_ && pick(0, 2) == 0) return constant(kExtremes[static_cast<size_t>(pick(0, kExtremes.size() - 1))]);
      if (pick(0, 2) != 0) return symbol(symbols_[static_cast<size_t>(pick(0, std::ssize(symbols_) - 1))]);
      return constant(pick(0, 3) == 0 ? pick(-40, 40) : pick(-3, 8));
    case Type::Real:
      if (pick(0, 1) == 0) return make(Op::ToReal, Type::Real, {leaf(Type::Integer)});
      return constant(kReals[static_cast<size_t>(pick(0, kReals.size() - 1))]);
    case Type::Boolean:
      return constant(pick(0, 1) == 0);
  }
  return nullptr;
}

TreePtr Grower::grow(Type type, int depth) {
  if (depth <= 0 || (pick(0, 5) == 0 && type != Type::Boolean)) return leaf(type);
  auto child = [&](Type t) { return grow(t, depth - 1); };
  auto pair = [&](Op op, Type result, Type operands) { return make(op, result, {child(operands), child(operands)}); };
  constexpr Type kInt = Type::Integer, kReal = Type::Real, kBool = Type::Boolean;
  if (type == kInt) {
    static constexpr std::array kBinary = {Op::Add, Op::Add,      Op::Sub,      Op::Mul,     Op::Mul, Op::Min,
                                           Op::Max, Op::FloorDiv, Op::FloorDiv, Op::CeilDiv, Op::Mod};
    static constexpr std::array kRounding = {Op::Floor, Op::Ceil, Op::Trunc, Op::Round};
    int64_t choice = pick(0, 15);
    if (choice < 11) return pair(kBinary[static_cast<size_t>(choice)], kInt, kInt);
    if (choice == 11) return make(Op::Neg, kInt, {child(kInt)});
    if (choice == 12) return make(Op::Pow, kInt, {child(kInt), constant(pick(0, 3))});
    if (choice == 13) return make(Op::Select, kInt, {child(kBool), child(kInt), child(kInt)});
    return make(kRounding[static_cast<size_t>(pick(0, 3))], kInt, {child(kReal)});
  }
  if (type == kReal) {
    static constexpr std::array kBinary = {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::TrueDiv};
    int64_t choice = pick(0, 11);
    if (choice < 6) return pair(kBinary[static_cast<size_t>(choice)], kReal, kReal);
    if (choice == 6) return pair(Op::TrueDiv, kReal, kInt);
    if (choice == 7) return make(Op::Sqrt, kReal, {child(kReal)});
    if (choice == 8) return make(Op::Select, kReal, {child(kBool), child(kReal), child(kReal)});
    if (choice == 9) return make(Op::Pow, kReal, {child(kReal), constant(static_cast<double>(pick(0, 3)))});
    return make(Op::ToReal, kReal, {child(kInt)});
  }
  static constexpr std::array kComparisons = {Op::Equal,     Op::NotEqual, Op::Less,
                                              Op::LessEqual, Op::Greater,  Op::GreaterEqual};
  int64_t choice = pick(0, 10);
  if (choice < 6) return pair(kComparisons[static_cast<size_t>(choice)], kBool, pick(0, 3) == 0 ? kReal : kInt);
  if (choice == 6) return pair(Op::And, kBool, kBool);
  if (choice == 7) return pair(Op::Or, kBool, kBool);
  if (choice == 8) return make(Op::Not, kBool, {child(kBool)});
  if (choice == 9) return pair(Op::Equal, kBool, kBool);
  return make(Op::Select, kBool, {child(kBool), child(kBool), child(kBool)});
}

Expr build(const Tree& tree) {
  std::vector<Expr> x;
  for (const TreePtr& child : tree.children) x.push_back(build(*child));
  switch (tree.op) {
    case Op::Constant:
      if (const auto* whole = std::get_if<int64_t>(&tree.value)) return *whole;
      if (const auto* real = std::get_if<double>(&tree.value)) return Expr::real(*real);
      return Expr::boolean(std::get<bool>(tree.value));
    case Op::Symbol:
      return Expr::symbol(tree.name);
    case Op::Add:
      return x[0] + x[1];
    case Op::Sub:
      return x[0] - x[1];
    case Op::Neg:
      return -x[0];
    case Op::Mul:
      return x[0] * x[1];
    case Op::Pow:
      return pow(x[0], x[1]);
    case Op::Min:
      return min(x[0], x[1]);
    case Op::Max:
      return max(x[0], x[1]);
    case Op::FloorDiv:
      return floor_div(x[0], x[1]);
    case Op::CeilDiv:
      return ceil_div(x[0], x[1]);
    case Op::Mod:
      return mod(x[0], x[1]);
    case Op::Floor:
      return floor(x[0]);
    case Op::Ceil:
      return ceil(x[0]);
    case Op::Trunc:
      return trunc(x[0]);
    case Op::Round:
      return round(x[0]);
    case Op::ToReal:
      return to_real(x[0]);
    case Op::TrueDiv:
      return true_div(x[0], x[1]);
    case Op::Sqrt:
      return sqrt(x[0]);
    case Op::Equal:
      return equal(x[0], x[1]);
    case Op::NotEqual:
      return not_equal(x[0], x[1]);
    case Op::Less:
      return less(x[0], x[1]);
    case Op::LessEqual:
      return less_equal(x[0], x[1]);
    case Op::Greater:
      return greater(x[0], x[1]);
    case Op::GreaterEqual:
      return greater_equal(x[0], x[1]);
    case Op::And:
      return logical_and(x[0], x[1]);
    case Op::Or:
      return logical_or(x[0], x[1]);
    case Op::Not:
      return logical_not(x[0]);
    case Op::Select:
      return select(x[0], x[1], x[2]);
  }
  return 0;
}

std::optional<Number> evaluate(const Tree& tree, const Assignment& values) {
  if (tree.op == Op::Constant) return tree.value;
  if (tree.op == Op::Symbol) return values.at(tree.name);
  if (tree.op == Op::And || tree.op == Op::Or) return evaluate_junction(tree, values);
  if (tree.op == Op::Select) {
    auto condition = evaluate(*tree.children[0], values);
    return condition ? evaluate(*tree.children[std::get<bool>(*condition) ? 1 : 2], values) : std::nullopt;
  }
  std::vector<Number> x;
  for (const TreePtr& child : tree.children) {
    auto value = evaluate(*child, values);
    if (!value) return std::nullopt;
    x.push_back(*value);
  }
  switch (tree.op) {
    case Op::Neg:
      return integer_result(Op::Sub, 0, std::get<int64_t>(x[0]));
    case Op::Not:
      return !std::get<bool>(x[0]);
    case Op::ToReal:
      return as_real(x[0]);
    case Op::Sqrt:
      return as_real(x[0]) < 0 ? std::nullopt : finite(std::sqrt(as_real(x[0])));
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return rounded(tree.op, as_real(x[0]));
    case Op::Equal:
    case Op::NotEqual:
    case Op::Less:
    case Op::LessEqual:
    case Op::Greater:
    case Op::GreaterEqual:
      if (std::holds_alternative<bool>(x[0])) return compare(tree.op, std::get<bool>(x[0]), std::get<bool>(x[1]));
      if (std::holds_alternative<int64_t>(x[0])) {
        return compare(tree.op, std::get<int64_t>(x[0]), std::get<int64_t>(x[1]));
      }
      return compare(tree.op, as_real(x[0]), as_real(x[1]));
    default:
      if (tree.type == Type::Real) return real_result(tree.op, as_real(x[0]), as_real(x[1]));
      return integer_result(tree.op, std::get<int64_t>(x[0]), std::get<int64_t>(x[1]));
  }
}

size_t size(const Tree& tree) {
  size_t total = 1;
  for (const TreePtr& child : tree.children) total += size(*child);
  return total;
}

std::string to_string(const Tree& tree) {
  static constexpr std::array kNames = {
      "",         "",     "Add",       "Sub",     "Neg",          "Mul",   "Pow",    "Min",     "Max",   "FloorDiv",
      "CeilDiv",  "Mod",  "Floor",     "Ceil",    "Trunc",        "Round", "ToReal", "TrueDiv", "Sqrt",  "Equal",
      "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "And",   "Or",     "Not",     "Select"};
  if (tree.op == Op::Symbol) return tree.name;
  std::ostringstream text;
  if (tree.op == Op::Constant) {
    std::visit([&](auto value) { text << std::boolalpha << value; }, tree.value);
    if (tree.type == Type::Real) text << "r";
    return text.str();
  }
  text << kNames[static_cast<size_t>(tree.op)] << '(';
  for (size_t i = 0; i < tree.children.size(); ++i) text << (i ? ", " : "") << to_string(*tree.children[i]);
  text << ')';
  return text.str();
}

namespace {

// Trees with one part of `tree` replaced by something smaller of its type.
void collect_smaller(const TreePtr& tree, std::vector<TreePtr>& smaller) {
  if (tree->children.empty()) return;
  for (const TreePtr& child : tree->children) {
    if (child->type == tree->type) smaller.push_back(child);
  }
  if (tree->type == Type::Integer) {
    smaller.push_back(constant(int64_t{1}));
    smaller.push_back(symbol("a"));
  } else if (tree->type == Type::Real) {
    smaller.push_back(constant(0.5));
  } else {
    smaller.push_back(constant(true));
    smaller.push_back(constant(false));
  }
  for (size_t i = 0; i < tree->children.size(); ++i) {
    std::vector<TreePtr> replacements;
    collect_smaller(tree->children[i], replacements);
    for (TreePtr& replacement : replacements) {
      Tree copy = *tree;
      copy.children[i] = std::move(replacement);
      smaller.push_back(std::make_shared<Tree>(std::move(copy)));
    }
  }
}

}  // namespace

TreePtr shrink(TreePtr tree, const std::function<bool(const Tree&)>& fails) {
  for (bool changed = true; changed;) {
    changed = false;
    // Any part, of whatever type, that fails by itself.
    for (const TreePtr& child : tree->children) {
      if (fails(*child)) {
        tree = child;
        changed = true;
        break;
      }
    }
    if (changed) continue;
    std::vector<TreePtr> smaller;
    collect_smaller(tree, smaller);
    for (const TreePtr& candidate : smaller) {
      if (size(*candidate) < size(*tree) && fails(*candidate)) {
        tree = candidate;
        changed = true;
        break;
      }
    }
  }
  return tree;
}

}  // namespace transporters::symbolic::fuzz
