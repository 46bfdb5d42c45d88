// Reads what print.cpp writes, and the other spellings of the same operations in Python and in torch's own printer.
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

constexpr int kMaxDepth = 512;
constexpr uint64_t kMinMagnitude = uint64_t{1} << 63;  // of the smallest int64

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

struct Function {
  size_t min_arguments;
  size_t max_arguments;
  Expr (*apply)(std::span<const Expr>);
};

template <Expr (*F)(const Expr&)>
Expr unary(std::span<const Expr> x) {
  return F(x[0]);
}
template <Expr (*F)(const Expr&, const Expr&)>
Expr binary(std::span<const Expr> x) {
  return F(x[0], x[1]);
}
template <Expr (*F)(const Expr&, const Expr&)>
Expr variadic(std::span<const Expr> x) {
  Expr result = x[0];
  for (const Expr& e : x.subspan(1)) result = F(result, e);
  return result;
}
Expr exact_div(std::span<const Expr> x) { return true_div(to_real(x[0]), x[1]); }
Expr real_pow(std::span<const Expr> x) { return pow(to_real(x[0]), x[1]); }

const Function* find_function(std::string_view name) {
  constexpr size_t kMany = std::numeric_limits<size_t>::max();
  static const auto* functions = new std::map<std::string, Function, std::less<>>{
      {"Min", {1, kMany, [](std::span<const Expr> x) { return extremum(Kind::Min, x); }}},
      {"Max", {1, kMany, [](std::span<const Expr> x) { return extremum(Kind::Max, x); }}},
      {"FloorDiv", {2, 2, binary<floor_div>}},
      {"CleanDiv", {2, 2, binary<floor_div>}},
      {"CeilDiv", {2, 2, binary<ceil_div>}},
      {"Mod", {2, 2, binary<mod>}},
      {"PythonMod", {2, 2, binary<mod>}},
      {"PowByNatural", {2, 2, binary<pow>}},
      {"FloatPow", {2, 2, real_pow}},
      {"FloorToInt", {1, 1, unary<floor>}},
      {"CeilToInt", {1, 1, unary<ceil>}},
      {"TruncToInt", {1, 1, unary<trunc>}},
      {"RoundToInt", {1, 1, unary<round>}},
      {"ToFloat", {1, 1, unary<to_real>}},
      {"IntTrueDiv", {2, 2, binary<true_div>}},
      {"FloatTrueDiv", {2, 2, exact_div}},
      {"sqrt", {1, 1, unary<sqrt>}},
      {"OpaqueUnaryFn_sqrt", {1, 1, unary<sqrt>}},
      {"Eq", {2, 2, binary<equal>}},
      {"Ne", {2, 2, binary<not_equal>}},
      {"And", {1, kMany, variadic<logical_and>}},
      {"Or", {1, kMany, variadic<logical_or>}},
      {"Not", {1, 1, unary<logical_not>}},
      {"Where", {3, 3, [](std::span<const Expr> x) { return select(x[0], x[1], x[2]); }}},
  };
  auto it = functions->find(name);
  return it == functions->end() ? nullptr : &it->second;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expr parse() {
    Expr e = parse_or();
    skip_spaces();
    if (at_ != text_.size()) fail(at_, "expected an operator or the end");
    return e;
  }

 private:
  [[noreturn]] void fail(size_t where, const std::string& expected) const {
    std::string got = where < text_.size() ? "'" + std::string(text_.substr(where, 1)) + "'" : "the end";
    throw Error("cannot read the expression \"" + std::string(text_) + "\": column " + std::to_string(where + 1) +
                ": " + expected + ", got " + got);
  }

  // Types and overflow are checked by the constructors; here their errors get the place.
  template <typename F>
  Expr apply(size_t where, F f) {
    try {
      return f();
    } catch (const std::exception& error) {
      throw Error("cannot read the expression \"" + std::string(text_) + "\": column " + std::to_string(where + 1) +
                  ": " + error.what());
    }
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  // True and past it when `sign` comes next and is no prefix of a longer sign.
  bool take(std::string_view sign, std::string_view not_followed_by = "") {
    skip_spaces();
    if (text_.substr(at_, sign.size()) != sign) return false;
    size_t end = at_ + sign.size();
    if (end < text_.size() && not_followed_by.find(text_[end]) != std::string_view::npos) return false;
    at_ = end;
    return true;
  }

  std::string_view peek_name() {
    skip_spaces();
    if (at_ == text_.size() || !is_name_start(text_[at_])) return {};
    size_t end = at_;
    while (end < text_.size() && (is_name_start(text_[end]) || is_digit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }

  bool take_word(std::string_view word) {
    if (peek_name() != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view sign) {
    if (!take(sign)) fail(at_, "expected '" + std::string(sign) + "'");
  }

  Expr parse_or() {
    if (++depth_ > kMaxDepth) fail(at_, "expected at most " + std::to_string(kMaxDepth) + " levels of nesting");
    Expr e = parse_and();
    for (;;) {
      skip_spaces();
      size_t where = at_;
      if (!take_word("or") && !take("|")) break;
      Expr right = parse_and();
      e = apply(where, [&] { return logical_or(e, right); });
    }
    --depth_;
    return e;
  }

  Expr parse_and() {
    Expr e = parse_not();
    for (;;) {
      skip_spaces();
      size_t where = at_;
      if (!take_word("and") && !take("&")) return e;
      Expr right = parse_not();
      e = apply(where, [&] { return logical_and(e, right); });
    }
  }

  Expr parse_not() {
    int count = 0;
    skip_spaces();
    size_t where = at_;
    while (take_word("not") || take("~")) ++count;
    Expr e = parse_comparison();
    if (count == 0) return e;
    Expr negated = apply(where, [&] { return logical_not(e); });
    return count % 2 == 0 ? e : negated;
  }

  Expr parse_comparison() {
    Expr left = parse_sum();
    skip_spaces();
    size_t where = at_;
    Expr (*make)(const Expr&, const Expr&) = nullptr;
    if (take("<=")) {
      make = less_equal;
    } else if (take(">=")) {
      make = greater_equal;
    } else if (take("==")) {
      make = equal;
    } else if (take("!=")) {
      make = not_equal;
    } else if (take("<")) {
      make = less;
    } else if (take(">")) {
      make = greater;
    } else {
      return left;
    }
    Expr right = parse_sum();
    return apply(where, [&] { return make(left, right); });
  }

  Expr parse_sum() {
    Expr e = parse_product();
    for (;;) {
      skip_spaces();
      size_t where = at_;
      bool plus = take("+");
      if (!plus && !take("-")) return e;
      Expr right = parse_product();
      e = apply(where, [&] { return plus ? e + right : e - right; });
    }
  }

  Expr parse_product() {
    Expr e = parse_unary();
    for (;;) {
      skip_spaces();
      size_t where = at_;
      if (take("//")) {
        Expr right = parse_unary();
        e = apply(where, [&] { return floor_div(e, right); });
      } else if (take("/")) {
        Expr right = parse_unary();
        e = apply(where, [&] { return true_div(e, right); });
      } else if (take("%")) {
        Expr right = parse_unary();
        e = apply(where, [&] { return mod(e, right); });
      } else if (take("*", "*")) {
        Expr right = parse_unary();
        e = apply(where, [&] { return e * right; });
      } else {
        return e;
      }
    }
  }

  Expr parse_unary() {
    skip_spaces();
    size_t where = at_;
    bool negative = false;
    while (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) {
      negative = negative != (text_[at_] == '-');
      ++at_;
      skip_spaces();
    }
    Expr e = parse_power(negative);
    return negative ? apply(where, [&] { return -e; }) : e;
  }

  // `negative` is taken up (and reset) by a number, so that the smallest integer can be read.
  Expr parse_power(bool& negative) {
    skip_spaces();
    size_t start = at_;
    bool number = at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.');
    bool taken = false;
    Expr base;
    if (number) {
      size_t end = number_end();
      at_ = end;
      skip_spaces();
      taken = negative && text_.substr(at_, 2) != "**";
      at_ = start;
      base = parse_number(end, taken);
    } else {
      base = parse_atom();
    }
    if (taken) negative = false;
    skip_spaces();
    size_t where = at_;
    if (!take("**")) return base;
    Expr exponent = parse_unary();
    return apply(where, [&] { return pow(base, exponent); });
  }

  size_t number_end() const {
    size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
      if (digits < text_.size() && is_digit(text_[digits])) {
        end = digits;
        while (end < text_.size() && is_digit(text_[end])) ++end;
      }
    }
    return end;
  }

  Expr parse_number(size_t end, bool negative) {
    size_t start = at_;
    std::string_view digits = text_.substr(start, end - start);
    at_ = end;
    if (digits.find_first_of(".eE") != std::string_view::npos) {
      double value = 0;
      auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || stop != digits.data() + digits.size()) fail(start, "expected a number");
      return Expr::real(negative ? -value : value);
    }
    uint64_t magnitude = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
    if (error != std::errc() || magnitude > kMinMagnitude || (magnitude == kMinMagnitude && !negative)) {
      fail(start, "expected an integer that fits 64 bits");
    }
    return static_cast<int64_t>(negative ? -magnitude : magnitude);
  }

  Expr parse_atom() {
    if (take("(")) {
      Expr e = parse_or();
      expect(")");
      return e;
    }
    std::string_view name = peek_name();
    if (name.empty() || name == "and" || name == "or" || name == "not") fail(at_, "expected a number, a name or '('");
    size_t where = at_;
    at_ += name.size();
    if (take("(")) return parse_call(name, where);
    if (name == "True" || name == "False") return Expr::boolean(name == "True");
    if (name == "inf") return Expr::real(std::numeric_limits<double>::infinity());
    if (name == "nan") return Expr::real(std::nan(""));
    return Expr::symbol(name);
  }

  Expr parse_call(std::string_view name, size_t where) {
    const Function* function = find_function(name);
    if (!function) fail(where, "expected a function of symbolic expressions, '" + std::string(name) + "' is none");
    std::vector<Expr> arguments = {parse_or()};
    while (take(",")) arguments.push_back(parse_or());
    expect(")");
    if (arguments.size() < function->min_arguments || arguments.size() > function->max_arguments) {
      fail(where, "expected " + std::to_string(function->min_arguments) + " arguments of " + std::string(name) + " (" +
                      std::to_string(arguments.size()) + " given)");
    }
    return apply(where, [&] { return function->apply(arguments); });
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expr Expr::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace transporters::symbolic
