#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "transporters/dynamo/sympy.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

using symbolic::Expr;
using symbolic::Type;

// Deeper nesting than this comes from damaged files.
constexpr int kMaxDepth = 200;
// A chain of operations becomes an expression as deep as it is long, which is printed and freed by recursion.
constexpr int kMaxAtoms = 1000;

using Operands = std::vector<Expr>;

Expr real(const Expr& expr) { return expr.type() == Type::Integer ? symbolic::to_real(expr) : expr; }

// Python's arithmetic: integers become real where they meet a real.
template <typename F>
Expr mixed(Expr a, Expr b, F f) {
  if (a.type() != b.type()) {
    a = real(a);
    b = real(b);
  }
  return f(a, b);
}

Expr add(const Expr& a, const Expr& b) {
  return mixed(a, b, [](const Expr& x, const Expr& y) { return x + y; });
}
Expr multiply(const Expr& a, const Expr& b) {
  return mixed(a, b, [](const Expr& x, const Expr& y) { return x * y; });
}
Expr power(const Expr& a, const Expr& b) {
  return mixed(a, b, [](const Expr& x, const Expr& y) { return symbolic::pow(x, y); });
}
Expr minimum(const Expr& a, const Expr& b) {
  return mixed(a, b, [](const Expr& x, const Expr& y) { return symbolic::min(x, y); });
}
Expr maximum(const Expr& a, const Expr& b) {
  return mixed(a, b, [](const Expr& x, const Expr& y) { return symbolic::max(x, y); });
}
Expr equal(const Expr& a, const Expr& b) { return mixed(a, b, symbolic::equal); }
Expr not_equal(const Expr& a, const Expr& b) { return mixed(a, b, symbolic::not_equal); }
Expr less(const Expr& a, const Expr& b) { return mixed(a, b, symbolic::less); }
Expr less_equal(const Expr& a, const Expr& b) { return mixed(a, b, symbolic::less_equal); }

// a // b of Python, which is real for a real operand.
Expr floor_divide(const Expr& a, const Expr& b) {
  if (a.type() == Type::Integer && b.type() == Type::Integer) return symbolic::floor_div(a, b);
  return symbolic::to_real(symbolic::floor(symbolic::true_div(real(a), real(b))));
}

Expr shift(const Expr& a, const Expr& b, bool left) {
  const Expr factor = symbolic::pow(Expr(2), b);
  return left ? a * factor : symbolic::floor_div(a, factor);
}

template <typename F>
Expr rounded(const Expr& a, F f) {
  return a.type() == Type::Integer ? a : f(a);
}

struct Function {
  size_t min_operands;
  size_t max_operands;  // kAny: folded over all
  Expr (*apply)(const Operands&);
};

constexpr size_t kAny = std::numeric_limits<size_t>::max();

template <auto f>
Expr fold(const Operands& operands) {
  Expr result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) result = f(result, operands[i]);
  return result;
}

template <auto f>
Expr binary(const Operands& operands) {
  return f(operands[0], operands[1]);
}

template <auto f>
Expr flipped(const Operands& operands) {
  return f(operands[1], operands[0]);
}

template <auto f>
Expr rounding(const Operands& operands) {
  return rounded(operands[0], f);
}

template <auto f>
Expr of_reals(const Operands& operands) {
  Operands reals;
  for (const Expr& operand : operands) reals.push_back(real(operand));
  return fold<f>(reals);
}

Expr real_power(const Operands& operands) {
  return operands[1].as_real() == 0.5 ? symbolic::sqrt(real(operands[0])) : of_reals<symbolic::pow>(operands);
}

Expr identity(const Operands& operands) { return operands[0]; }
Expr to_float(const Operands& operands) { return real(operands[0]); }
Expr square_root(const Operands& operands) { return symbolic::sqrt(real(operands[0])); }
Expr choose(const Operands& operands) { return symbolic::select(operands[0], operands[1], operands[2]); }

const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> table = {
      {"Add", {1, kAny, fold<add>}},
      {"Mul", {1, kAny, fold<multiply>}},
      {"Pow", {2, 2, binary<power>}},
      {"PowByNatural", {2, 2, binary<power>}},
      {"FloatPow", {2, 2, real_power}},
      {"Min", {1, kAny, fold<minimum>}},
      {"Max", {1, kAny, fold<maximum>}},
      {"min", {1, kAny, fold<minimum>}},
      {"max", {1, kAny, fold<maximum>}},
      {"torch.sym_min", {2, 2, binary<minimum>}},
      {"torch.sym_max", {2, 2, binary<maximum>}},
      {"FloorDiv", {2, 2, binary<floor_divide>}},
      {"CleanDiv", {2, 2, binary<floor_divide>}},
      {"CeilDiv", {2, 2, binary<symbolic::ceil_div>}},
      {"Mod", {2, 2, binary<symbolic::mod>}},
      {"PythonMod", {2, 2, binary<symbolic::mod>}},
      {"ModularIndexing",
       {3, 3, [](const Operands& o) { return symbolic::mod(symbolic::floor_div(o[0], o[1]), o[2]); }}},
      {"LShift", {2, 2, [](const Operands& o) { return shift(o[0], o[1], true); }}},
      {"RShift", {2, 2, [](const Operands& o) { return shift(o[0], o[1], false); }}},
      {"FloorToInt", {1, 1, rounding<symbolic::floor>}},
      {"CeilToInt", {1, 1, rounding<symbolic::ceil>}},
      {"TruncToInt", {1, 1, rounding<symbolic::trunc>}},
      {"RoundToInt", {1, 1, rounding<symbolic::round>}},
      {"TruncToFloat", {1, 1, [](const Operands& o) { return real(rounded(o[0], symbolic::trunc)); }}},
      {"math.floor", {1, 1, rounding<symbolic::floor>}},
      {"math.ceil", {1, 1, rounding<symbolic::ceil>}},
      {"math.trunc", {1, 1, rounding<symbolic::trunc>}},
      {"torch.sym_int", {1, 1, rounding<symbolic::trunc>}},
      {"int", {1, 1, rounding<symbolic::trunc>}},
      {"round", {1, 1, rounding<symbolic::round>}},
      {"ToFloat", {1, 1, to_float}},
      {"torch.sym_float", {1, 1, to_float}},
      {"float", {1, 1, to_float}},
      {"IntTrueDiv", {2, 2, binary<symbolic::true_div>}},
      {"FloatTrueDiv", {2, 2, of_reals<symbolic::true_div>}},
      {"Rational", {2, 2, binary<symbolic::true_div>}},
      {"OpaqueUnaryFn_sqrt", {1, 1, square_root}},
      {"torch._sym_sqrt", {1, 1, square_root}},
      {"math.sqrt", {1, 1, square_root}},
      {"Identity", {1, 1, identity}},
      {"Integer", {1, 1, identity}},
      {"Equality", {2, 2, binary<equal>}},
      {"Eq", {2, 2, binary<equal>}},
      {"Unequality", {2, 2, binary<not_equal>}},
      {"Ne", {2, 2, binary<not_equal>}},
      {"StrictLessThan", {2, 2, binary<less>}},
      {"Lt", {2, 2, binary<less>}},
      {"LessThan", {2, 2, binary<less_equal>}},
      {"Le", {2, 2, binary<less_equal>}},
      {"StrictGreaterThan", {2, 2, flipped<less>}},
      {"Gt", {2, 2, flipped<less>}},
      {"GreaterThan", {2, 2, flipped<less_equal>}},
      {"Ge", {2, 2, flipped<less_equal>}},
      {"And", {1, kAny, fold<symbolic::logical_and>}},
      {"Or", {1, kAny, fold<symbolic::logical_or>}},
      {"Not", {1, 1, [](const Operands& o) { return symbolic::logical_not(o[0]); }}},
      {"torch.sym_not", {1, 1, [](const Operands& o) { return symbolic::logical_not(o[0]); }}},
      {"Where", {3, 3, choose}},
      {"torch.sym_ite", {3, 3, choose}},
  };
  return table;
}

class Parser {
 public:
  Parser(std::string_view text, const SympyNames& names) : text_(text), names_(names) {}

  Expr parse() {
    Expr result = disjunction();
    skip_space();
    if (at_ != text_.size()) fail("expected the end");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error({.stage = "dynamo"}, "column " + std::to_string(at_ + 1) + " of expression '" +
                                         std::string(text_.substr(0, 200)) + "': " + what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    const bool is_word = std::isalpha(static_cast<unsigned char>(token.front())) != 0;
    if (is_word && at_ + token.size() < text_.size() && is_name_char(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }

  static bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  // One level of the grammar may only nest so deep.
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxDepth) parser.fail("nested too deeply");
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  Expr disjunction() {
    const Depth depth(*this);
    Expr left = conjunction();
    while (accept("or") || accept("|")) left = boolean(left, conjunction(), symbolic::logical_or);
    return left;
  }

  Expr conjunction() {
    Expr left = negation();
    while (accept("and") || accept("&")) left = boolean(left, negation(), symbolic::logical_and);
    return left;
  }

  template <typename F>
  Expr boolean(const Expr& a, const Expr& b, F f) {
    if (a.type() != Type::Boolean || b.type() != Type::Boolean) fail("expected conditions");
    return f(a, b);
  }

  Expr negation() {
    if (!accept("not") && !accept("~")) return comparison();
    const Depth depth(*this);
    const Expr operand = negation();
    if (operand.type() != Type::Boolean) fail("expected a condition");
    return symbolic::logical_not(operand);
  }

  // a < b <= c means a < b and b <= c.
  Expr comparison() {
    Expr left = sum();
    std::optional<Expr> result;
    while (true) {
      Expr (*compare)(const Operands&) = nullptr;
      if (accept("==")) compare = binary<equal>;
      if (compare == nullptr && accept("!=")) compare = binary<not_equal>;
      if (compare == nullptr && accept("<=")) compare = binary<less_equal>;
      if (compare == nullptr && accept(">=")) compare = flipped<less_equal>;
      if (compare == nullptr && accept("<")) compare = binary<less>;
      if (compare == nullptr && accept(">")) compare = flipped<less>;
      if (compare == nullptr) return result.value_or(left);
      const Expr right = sum();
      const Expr link = compare({left, right});
      result = result ? symbolic::logical_and(*result, link) : link;
      left = right;
    }
  }

  Expr sum() {
    Expr left = term();
    while (true) {
      if (accept("+")) {
        left = add(left, term());
      } else if (accept("-")) {
        left = add(left, multiply(Expr(-1), term()));
      } else {
        return left;
      }
    }
  }

  Expr term() {
    Expr left = factor();
    while (true) {
      if (accept("//")) {
        left = floor_divide(left, factor());
      } else if (accept("/")) {
        left = symbolic::true_div(left, factor());
      } else if (accept("%")) {
        left = symbolic::mod(left, factor());
      } else if (text_.substr(std::min(at_, text_.size()), 2) != "**" && accept("*")) {
        left = multiply(left, factor());
      } else {
        return left;
      }
    }
  }

  Expr factor() {
    const Depth depth(*this);
    if (accept("-")) return multiply(Expr(-1), factor());
    if (accept("+")) return factor();
    Expr base = atom();
    skip_space();
    if (accept("**")) base = power(base, factor());
    skip_space();
    return base;
  }

  Expr atom() {
    if (++atoms_ > kMaxAtoms) fail("more than " + std::to_string(kMaxAtoms) + " numbers and names");
    skip_space();
    if (at_ == text_.size()) fail("expected a number, a name or '('");
    if (accept("(")) {
      const Expr inner = disjunction();
      expect(")");
      return inner;
    }
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') return number();
    const std::string name = dotted_name();
    if (name.empty()) fail("expected a number, a name or '('");
    if (name == "true" || name == "True") return Expr::boolean(true);
    if (name == "false" || name == "False") return Expr::boolean(false);
    if (name == "oo" || name == "inf" || name == "math.inf") return Expr::real(std::numeric_limits<double>::infinity());
    if (name == "L" && names_.input) return input();
    skip_space();
    if (at_ < text_.size() && text_[at_] == '(') return call(name);
    return names_.symbol(name);
  }

  std::string dotted_name() {
    const size_t start = at_;
    while (at_ < text_.size() && (is_name_char(text_[at_]) || (text_[at_] == '.' && at_ > start))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Expr number() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    int64_t integer = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    double value = 0;
    const auto as_real = std::from_chars(begin, end, value);
    if (as_integer.ec == std::errc{} && as_integer.ptr == as_real.ptr) {
      at_ += static_cast<size_t>(as_integer.ptr - begin);
      return Expr(integer);
    }
    if (as_real.ec != std::errc{}) fail("expected a number that fits 64 bits");
    at_ += static_cast<size_t>(as_real.ptr - begin);
    return Expr::real(value);
  }

  std::string quoted() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a quoted name");
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ == text_.size()) fail("expected the end of a quoted name");
    ++at_;
    return value;
  }

  // name=value pairs of constructors: assumptions and precisions, which the value does not depend on.
  void skip_keywords() {
    while (accept(",")) {
      skip_space();
      dotted_name();
      expect("=");
      skip_space();
      if (dotted_name().empty()) fail("expected a value");
    }
  }

  Expr call(const std::string& name) {
    expect("(");
    if (name == "Symbol") {
      const std::string symbol = quoted();
      skip_keywords();
      expect(")");
      return names_.symbol(symbol);
    }
    if (name == "Float") {
      const size_t start = at_;
      const std::string digits = quoted();
      double value = 0;
      const auto end = digits.data() + digits.size();
      if (std::from_chars(digits.data(), end, value).ptr != end) {
        at_ = start;
        fail("expected a number");
      }
      skip_keywords();
      expect(")");
      return Expr::real(value);
    }
    if (name == "Piecewise") return piecewise();
    const auto found = functions().find(name);
    if (found == functions().end()) fail("'" + name + "' is no function that sizes can be computed with");
    Operands operands;
    do {
      operands.push_back(disjunction());
      skip_space();
    } while (accept(","));
    expect(")");
    const Function& function = found->second;
    if (operands.size() < function.min_operands || operands.size() > function.max_operands)
      fail("'" + name + "' got " + std::to_string(operands.size()) + " operands");
    return function.apply(operands);
  }

  Expr piecewise() {
    Operands values, conditions;
    do {
      expect("ExprCondPair");
      expect("(");
      values.push_back(disjunction());
      expect(",");
      conditions.push_back(disjunction());
      if (conditions.back().type() != Type::Boolean) fail("expected a condition");
      expect(")");
    } while (accept(","));
    expect(")");
    if (conditions.back().as_boolean() != true) fail("the last case of Piecewise needs the condition 'true'");
    Expr result = values.back();
    for (size_t i = values.size() - 1; i-- > 0;) result = symbolic::select(conditions[i], values[i], result);
    return result;
  }

  // L['x'][0].size()[1]
  Expr input() {
    std::vector<std::string> path;
    while (accept("[")) {
      skip_space();
      if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
        path.push_back(dotted_name());
      } else {
        path.push_back(quoted());
      }
      expect("]");
    }
    if (path.empty()) fail("expected the name of an input");
    if (!accept(".size()[")) return names_.input(path, -1);
    skip_space();
    const Expr dim = number();
    expect("]");
    if (!dim.as_integer() || *dim.as_integer() > std::numeric_limits<int>::max()) fail("expected a dimension");
    return names_.input(path, static_cast<int>(*dim.as_integer()));
  }

  std::string_view text_;
  const SympyNames& names_;
  size_t at_ = 0;
  int depth_ = 0;
  int atoms_ = 0;
};

}  // namespace

Expr from_sympy(std::string_view text, const SympyNames& names) try {
  return Parser(text, names).parse();
} catch (const InternalError& error) {  // operands of a type that an operation does not take
  throw Error({.stage = "dynamo"}, "expression '" + std::string(text.substr(0, 200)) + "': " + error.what());
}

}  // namespace transporters::dynamo
