#include "tests/shape_rules/call.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "transporters/error.h"

namespace transporters::testing {
namespace {

constexpr std::pair<std::string_view, ScalarType> kDtypes[] = {
    {"f32", ScalarType::Float},     {"f64", ScalarType::Double},       {"f16", ScalarType::Half},
    {"bf16", ScalarType::BFloat16}, {"i64", ScalarType::Long},         {"i32", ScalarType::Int},
    {"i16", ScalarType::Short},     {"i8", ScalarType::Char},          {"u8", ScalarType::Byte},
    {"bool", ScalarType::Bool},     {"c64", ScalarType::ComplexFloat}, {"c128", ScalarType::ComplexDouble},
};

// Of a size that is used without one.
constexpr int64_t kUnnamedExample = 3;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Call call() {
    Call call;
    const size_t open = text_.find('(');
    if (open == std::string_view::npos) stop("'('");
    call.op = std::string(text_.substr(0, open));
    at_ = open + 1;
    while (!take(')')) {
      if (!call.arguments.empty()) expect(',');
      std::string name;
      const size_t start = at_;
      const std::string_view word = identifier();
      if (!word.empty() && peek() == '=') {
        ++at_;
        name = std::string(word);
      } else {
        at_ = start;
      }
      call.arguments.emplace_back(std::move(name), value());
    }
    call.examples = std::move(examples_);
    return call;
  }

 private:
  [[noreturn]] void stop(const std::string& expected) const {
    throw Error("expected " + expected + " at '" + std::string(text_.substr(at_)) + "' of '" + std::string(text_) +
                "'");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) stop(std::string(1, c));
  }
  std::string_view identifier() {
    peek();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::optional<ScalarType> dtype() {
    const size_t start = at_;
    const std::string_view word = identifier();
    for (const auto& [name, dtype] : kDtypes)
      if (word == name) return dtype;
    at_ = start;
    return std::nullopt;
  }

  // The text up to a comma or closing bracket outside brackets.
  std::string_view item() {
    peek();
    const size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(' || c == '[') ++depth;
      if ((c == ')' || c == ']' || c == '}' || c == ',') && depth-- == 0) break;
      if (c == ',') ++depth;
    }
    return text_.substr(start, at_ - start);
  }

  Expr expression() {
    std::string_view text = item();
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      const std::string name(text.substr(0, equals));
      examples_[name] = std::stoll(std::string(text.substr(equals + 1)));
      return Expr::symbol(name);
    }
    const Expr expr = Expr::parse(text);
    for (const auto& name : expr.symbols()) examples_.try_emplace(name, kUnnamedExample);
    return expr;
  }

  std::vector<Expr> expressions(char close) {
    std::vector<Expr> list;
    while (!take(close)) {
      if (!list.empty()) expect(',');
      list.push_back(expression());
    }
    return list;
  }

  ValueText value() {
    const char next = peek();
    if (next == '[') {
      ++at_;
      ListText list;
      while (!take(']')) {
        if (!list.empty()) expect(',');
        list.push_back(value());
      }
      return {list};
    }
    if (next == '\'') {
      const size_t end = text_.find('\'', at_ + 1);
      std::string text(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return {Argument(std::move(text))};
    }
    if (const auto type = dtype()) return peek() == '[' ? ValueText{tensor(*type)} : ValueText{Argument(*type)};
    const size_t start = at_;
    const std::string_view word = item();
    if (word == "contiguous_format" || word.starts_with("channels_last"))
      return {Argument(MemoryFormat{std::string(word)})};
    if (word == "None") return {Argument(None{})};
    if (word == "true" || word == "false") return {Argument(word == "true")};
    double real = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), real);
    const bool is_real = error == std::errc() && end == word.data() + word.size() &&
                         word.find_first_of(".einf") != std::string_view::npos;
    if (is_real) return {Argument(real)};
    at_ = start;
    return {Argument(expression())};
  }

  TensorText tensor(ScalarType dtype) {
    expect('[');
    TensorText tensor{{dtype, expressions(']'), {}}, {}};
    if (take('{')) tensor.type.strides = expressions('}');
    if (take(':')) {
      expect('(');
      for (const Expr& element : expressions(')')) {
        const auto integer = element.as_integer();
        tensor.values.push_back(integer ? static_cast<double>(*integer) : element.as_real().value());
      }
    }
    return tensor;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<std::string, int64_t> examples_;
};

}  // namespace

Call parse_call(std::string_view text) { return Parser(text).call(); }

std::string dtype_text(ScalarType dtype) {
  for (const auto& [name, value] : kDtypes)
    if (value == dtype) return std::string(name);
  return c10::toString(dtype);
}

}  // namespace transporters::testing
