#include <charconv>
#include <cmath>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

// Binding strength of what is printed; an operand that binds weaker than its place asks for is put in parentheses.
enum Strength { kComparison, kSum, kProduct, kUnary, kPower, kAtom };

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  void print(const Expr& e, Strength place) {
    if (strength(e) < place) {
      text_ += '(';
      print_bare(e);
      text_ += ')';
    } else {
      print_bare(e);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static bool is_negative(const Expr& e) {
    if (auto value = e.as_integer()) return *value < 0;
    if (auto value = e.as_real()) return std::signbit(*value) && !std::isnan(*value);
    return e.kind() == Kind::Mul && e.operands()[0].is_constant() && is_negative(e.operands()[0]);
  }

  // A power that prints as base**exponent.
  static bool is_plain_power(const Expr& e) {
    return e.kind() == Kind::Pow && e.type() == Type::Integer && e.operands()[1].as_integer();
  }

  static Strength strength(const Expr& e) {
    switch (e.kind()) {
      case Kind::Integer:
      case Kind::Real:
        return is_negative(e) ? kUnary : kAtom;
      case Kind::Add:
        return kSum;
      case Kind::Mul:
        return is_negative(e) ? kUnary : kProduct;
      case Kind::Pow:
        return is_plain_power(e) ? kPower : kAtom;
      case Kind::Less:
      case Kind::LessEqual:
        return kComparison;
      default:
        return kAtom;
    }
  }

  void print_bare(const Expr& e) {
    switch (e.kind()) {
      case Kind::Integer:
        text_ += std::to_string(*e.as_integer());
        return;
      case Kind::Real:
        text_ += real_text(*e.as_real());
        return;
      case Kind::Boolean:
        text_ += *e.as_boolean() ? "True" : "False";
        return;
      case Kind::Symbol:
        text_ += e.name();
        return;
      case Kind::Add:
        print_sum(e);
        return;
      case Kind::Mul:
        print_product(e);
        return;
      case Kind::Pow:
        if (is_plain_power(e)) {
          print(e.operands()[0], kAtom);
          text_ += "**";
          print(e.operands()[1], kAtom);
        } else {
          print_call(e.type() == Type::Integer ? "PowByNatural" : "FloatPow", e);
        }
        return;
      case Kind::Less:
        print_infix(e, " < ");
        return;
      case Kind::LessEqual:
        print_infix(e, " <= ");
        return;
      default:
        print_call(function_name(e), e);
    }
  }

  // Names as torch.utils._sympy.functions has them, so that the text means the same to torch.
  static const char* function_name(const Expr& e) {
    switch (e.kind()) {
      case Kind::Min:
        return "Min";
      case Kind::Max:
        return "Max";
      case Kind::FloorDiv:
        return "FloorDiv";
      case Kind::Mod:
        return "Mod";
      case Kind::Floor:
        return "FloorToInt";
      case Kind::Ceil:
        return "CeilToInt";
      case Kind::Trunc:
        return "TruncToInt";
      case Kind::Round:
        return "RoundToInt";
      case Kind::ToReal:
        return "ToFloat";
      case Kind::TrueDiv:
        return e.operands()[0].type() == Type::Integer ? "IntTrueDiv" : "FloatTrueDiv";
      case Kind::Sqrt:
        return "sqrt";
      case Kind::Equal:
        return "Eq";
      case Kind::NotEqual:
        return "Ne";
      case Kind::And:
        return "And";
      case Kind::Or:
        return "Or";
      case Kind::Not:
        return "Not";
      case Kind::Select:
        return "Where";
      default:
        throw InternalError("an expression kind without a name");
    }
  }

  void print_call(const char* function, const Expr& e) {
    text_ += function;
    text_ += '(';
    const char* separator = "";
    for (const Expr& operand : e.operands()) {
      text_ += separator;
      print(operand, kComparison);
      separator = ", ";
    }
    text_ += ')';
  }

  void print_infix(const Expr& e, const char* sign) {
    print(e.operands()[0], kSum);
    text_ += sign;
    print(e.operands()[1], kSum);
  }

  // The sign of an operand after the first becomes the operator before it. The smallest integer has no positive.
  void print_sum(const Expr& e) {
    bool first = true;
    for (const Expr& operand : e.operands()) {
      const Expr& number = operand.kind() == Kind::Mul ? operand.operands()[0] : operand;
      bool minus = !first && is_negative(operand) && !number.is(std::numeric_limits<int64_t>::min());
      if (!first) text_ += minus ? " - " : " + ";
      if (minus) {
        size_t start = text_.size();
        print(operand, kProduct);
        text_.erase(start, 1);
      } else {
        print(operand, first ? kSum : kProduct);
      }
      first = false;
    }
  }

  void print_product(const Expr& e) {
    std::span<const Expr> operands = e.operands();
    if (operands[0].is(-1)) {
      text_ += '-';
      operands = operands.subspan(1);
    }
    bool first = true;
    for (const Expr& operand : operands) {
      if (!first) text_ += '*';
      print(operand, first && operand.is_constant() ? kUnary : kPower);
      first = false;
    }
  }

  std::string text_;
};

}  // namespace

std::string Expr::str() const {
  Printer printer;
  printer.print(*this, kComparison);
  return printer.take();
}

}  // namespace transporters::symbolic
