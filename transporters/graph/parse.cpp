// parse_program: reads the text that print.cpp describes.
#include <algorithm>
#include <charconv>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/text.h"

namespace transporters {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Characters of one text with a position, and errors that name it.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(size_t at, const std::string& message) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto start = before.rfind('\n') + 1;  // npos + 1 == 0
    throw Error({.stage = "parse"},
                "line " + std::to_string(line) + ", column " + std::to_string(at - start + 1) + ": " + message);
  }
  [[noreturn]] void expected(const std::string& what) const { expected(at_, what); }
  [[noreturn]] void expected(size_t at, const std::string& what) const {
    fail(at, "expected " + what + ", got " + token_at(at));
  }

  size_t at() const { return at_; }
  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n'; }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  // Spaces, and a comment with them; the line's end is not crossed.
  void skip_spaces() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (peek() == '#')
      while (!at_line_end()) ++at_;
  }
  void skip_blank_lines() {
    for (skip_spaces(); peek() == '\n'; skip_spaces()) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (peek() != c || at_end()) return false;
    ++at_;
    skip_spaces();
    return true;
  }
  void expect(char c, const std::string& where) {
    if (!accept(c)) expected("'" + std::string(1, c) + "' " + where);
  }
  // Accepts a whole word only.
  bool accept_word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    if (at_ + wanted.size() < text_.size() && is_word(text_[at_ + wanted.size()])) return false;
    at_ += wanted.size();
    skip_spaces();
    return true;
  }

  // Letters, digits, '_' and '.', and ':' where `colons`; empty when there are none.
  std::string_view word(bool colons = false) {
    const size_t start = at_;
    while (!at_end() && (is_word(text_[at_]) || (colons && text_[at_] == ':'))) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string name(const std::string& what) {
    if (peek() == '"') return string();
    const auto found = word();
    if (found.empty()) expected(what);
    return std::string(found);
  }
  std::string string() {
    if (peek() != '"') expected("a string in double quotes");
    const size_t start = at_++;
    std::string result;
    while (peek() != '"') {
      if (at_line_end()) fail(start, "expected '\"' at the end of the string, got the end of the line");
      if (peek() == '\\') {
        ++at_;
        escape(result);
      } else {
        result += text_[at_++];
      }
    }
    ++at_;
    return result;
  }
  // Text up to one of `stops` outside brackets, or the line's end, without trailing spaces.
  std::string_view until(std::string_view stops) {
    const size_t start = at_;
    int depth = 0;
    for (; !at_line_end(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && stops.find(c) != std::string_view::npos) break;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
    }
    std::string_view found = text_.substr(start, at_ - start);
    while (!found.empty() && (found.back() == ' ' || found.back() == '\r')) found.remove_suffix(1);
    return found;
  }

 private:
  std::string token_at(size_t at) const {
    if (at >= text_.size()) return "the end of the text";
    if (text_[at] == '\n') return "the end of the line";
    size_t end = at;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return "'" + std::string(text_.substr(at, std::max<size_t>(end - at, 1))) + "'";
  }

  void escape(std::string& result) {
    const size_t at = at_;
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        result += c;
        return;
      case 'b':
        result += '\b';
        return;
      case 'f':
        result += '\f';
        return;
      case 'n':
        result += '\n';
        return;
      case 'r':
        result += '\r';
        return;
      case 't':
        result += '\t';
        return;
      case 'u': {
        unsigned code = 0;
        const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (error == std::errc() && end == digits.data() + 4 && code < 0x80) {
          result += static_cast<char>(code);
          at_ += 4;
          return;
        }
        fail(at, "expected four hexadecimal digits below 0080 after '\\u'; write other characters as UTF-8");
      }
      default:
        expected(at, "an escape (\\\", \\\\, \\n, \\r, \\t, \\u0000)");
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}

  Program parse() {
    reader_.skip_blank_lines();
    if (!reader_.accept_word("program")) reader_.expected("'program' on the first line");
    if (!reader_.at_line_end()) program_.architecture = reader_.name("the program's name");
    end_of_statement();
    for (; !reader_.at_end(); end_of_statement()) statement();
    return std::move(program_);
  }

 private:
  void end_of_statement() {
    reader_.skip_spaces();
    if (!reader_.at_line_end()) reader_.expected("the end of the line");
    reader_.skip_blank_lines();
  }

  void statement() {
    if (reader_.peek() == '%') return node();
    const size_t at = reader_.at();
    if (reader_.accept_word("symbol")) return symbol();
    if (reader_.accept_word("input")) return input();
    if (reader_.accept_word("output")) return output();
    if (reader_.accept_word("in_spec")) return spec(program_.in_spec);
    if (reader_.accept_word("out_spec")) return spec(program_.out_spec);
    const auto op = reader_.word(true);
    if (op.find("::") == std::string_view::npos)
      reader_.expected(at, "symbol, input, output, in_spec, out_spec, '%name: type = op(...)' or 'op(...)'");
    call(op, at, {}, {});
  }

  void spec(TreeSpec& spec) {
    const size_t at = reader_.at();
    const std::string json(reader_.until(""));
    try {
      spec = TreeSpec::loads(json);
    } catch (const Error& error) {
      reader_.fail(at, "expected the JSON of a pytree: " + error.message());
    }
  }

  int64_t integer(const std::string& what) {
    const size_t at = reader_.at();
    const auto text = reader_.until(",] #");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) reader_.expected(at, what);
    return value;
  }

  void symbol() {
    const std::string name = reader_.name("the symbol's name");
    reader_.skip_spaces();
    if (reader_.accept_word("in")) {
      symbolic::Range range;
      reader_.expect('[', "before the range's minimum");
      range.min = integer("the range's minimum, an integer");
      reader_.expect(',', "between the range's minimum and maximum");
      range.max =
          reader_.accept_word("inf") ? symbolic::Range::kInfinity : integer("the range's maximum, an integer or inf");
      reader_.expect(']', "after the range's maximum");
      program_.ranges[name] = range;
    }
    if (reader_.accept_word("hint")) program_.hints[name] = integer("the hint, an integer");
  }

  // A new value's name, after '%'.
  std::string new_name() {
    if (reader_.peek() != '%') reader_.expected("'%' and a name");
    const size_t at = reader_.at();
    reader_.accept('%');
    std::string name = reader_.name("the value's name");
    if (program_.graph->find_value(name) != nullptr) reader_.fail(at, "the value %" + name + " is already defined");
    return name;
  }

  Value* value() {
    const size_t at = reader_.at();
    reader_.accept('%');
    const std::string name = reader_.name("a value's name");
    reader_.skip_spaces();
    if (auto* found = program_.graph->find_value(name)) return found;
    std::vector<std::string> known;
    for (const auto* input : program_.graph->inputs()) known.push_back(input->name());
    for (const auto& node : *program_.graph)
      for (const auto* output : node.outputs()) known.push_back(output->name());
    reader_.fail(at, "expected a value that is defined above, got %" + name + did_you_mean(name, known));
  }

  Expr expression(std::string_view stops, const std::string& what) {
    const size_t at = reader_.at();
    const auto text = reader_.until(stops);
    if (text.empty()) reader_.expected(at, what);
    try {
      return Expr::parse(text);
    } catch (const Error& error) {
      reader_.fail(at, "expected " + what + ", got '" + std::string(text) + "': " + error.message());
    }
  }

  // "[a, b]" with `element` reading each.
  template <typename F>
  void list(const std::string& what, F element) {
    reader_.expect('[', "before " + what);
    if (reader_.accept(']')) return;
    do element();
    while (reader_.accept(','));
    reader_.expect(']', "or ',' in " + what);
  }

  std::vector<Expr> expressions(const std::string& what) {
    std::vector<Expr> exprs;
    list(what, [&] { exprs.push_back(expression(",]", "an integer or a symbolic size")); });
    return exprs;
  }

  ValueType type() {
    const size_t at = reader_.at();
    if (reader_.accept_word("number")) {
      reader_.expect('(', "after 'number'");
      NumberType number{expression(")", "the number's expression")};
      reader_.expect(')', "after the number's expression");
      return number;
    }
    const auto dtype = parse_dtype_text(reader_.word());
    if (!dtype) reader_.expected(at, "a type (f32[2, 3], i64[batch], b8[], number(u0), ...)");
    TensorType tensor{*dtype, expressions("the sizes"), {}};
    if (reader_.accept_word("strides")) {
      const size_t strides_at = reader_.at();
      tensor.strides = expressions("the strides");
      if (tensor.strides.size() != tensor.sizes.size())
        reader_.fail(strides_at, "expected " + std::to_string(tensor.sizes.size()) + " strides, one per size, got " +
                                     std::to_string(tensor.strides.size()));
    }
    return tensor;
  }

  void input() {
    InputSpec spec;
    if (reader_.peek() == '%') {
      const std::string name = new_name();
      reader_.expect(':', "after the input's name");
      spec.value = program_.graph->add_input(name, type());
    } else {
      spec.constant = constant();
    }
    reader_.expect('=', "before the input's role");
    const size_t at = reader_.at();
    if (reader_.accept_word("parameter")) {
      spec.kind = InputKind::Parameter;
    } else if (reader_.accept_word("buffer")) {
      spec.kind = InputKind::Buffer;
    } else if (reader_.accept_word("constant")) {
      spec.kind = InputKind::Constant;
    } else if (!reader_.accept_word("user")) {
      reader_.expected("the input's role (parameter, buffer, constant or user)");
    }
    if (spec.value == nullptr && spec.kind != InputKind::UserInput)
      reader_.expected(at, "'user', as only a user input can be a constant");
    spec.target = reader_.string();
    reader_.skip_spaces();
    spec.persistent = !reader_.accept_word("non_persistent");
    program_.inputs.push_back(std::move(spec));
  }

  void output() {
    OutputSpec spec;
    if (reader_.peek() == '%') {
      spec.value = value();
      program_.graph->add_output(spec.value);
    } else {
      spec.constant = constant();
    }
    reader_.expect('=', "before the output's role");
    if (reader_.accept_word("buffer_mutation")) {
      spec.kind = OutputKind::BufferMutation;
    } else if (reader_.accept_word("input_mutation")) {
      spec.kind = OutputKind::UserInputMutation;
    } else if (!reader_.accept_word("user")) {
      reader_.expected("the output's role (user, buffer_mutation or input_mutation)");
    }
    spec.target = reader_.string();
    program_.outputs.push_back(std::move(spec));
  }

  void node() {
    std::vector<std::string> names;
    std::vector<ValueType> types;
    do {
      const size_t at = reader_.at();
      names.push_back(new_name());
      if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
        reader_.fail(at, "the value %" + names.back() + " is already defined");
      reader_.expect(':', "after the value's name");
      types.push_back(type());
    } while (reader_.accept(','));
    reader_.expect('=', "before the op");
    const size_t at = reader_.at();
    call(reader_.word(true), at, names, std::move(types));
  }

  void call(std::string_view op, size_t at, const std::vector<std::string>& names, std::vector<ValueType> types) {
    if (op.empty()) reader_.expected(at, "an op's name");
    const OpSchema* schema = nullptr;
    try {
      schema = &get_schema(op);
    } catch (const Error& error) {
      reader_.fail(at, error.message());
    }
    reader_.expect('(', "after the op's name");
    std::vector<NamedArgument> arguments;
    if (!reader_.accept(')')) {
      do arguments.push_back(named_argument(*schema, arguments));
      while (reader_.accept(','));
      reader_.expect(')', "or ',' after an argument");
    }
    // A placeholder that no text can hold, so that each output then takes its name as written.
    Node* node = program_.graph->append(op, std::move(arguments), std::move(types), "\n");
    for (size_t i = 0; i < names.size(); ++i) program_.graph->rename(node->outputs()[i], names[i]);
    if (reader_.accept('@')) node->module_path = reader_.name("a module's path");
    reader_.skip_spaces();
    if (reader_.accept_word("from")) node->source = reader_.string();
  }

  NamedArgument named_argument(const OpSchema& schema, const std::vector<NamedArgument>& earlier) {
    const size_t at = reader_.at();
    std::string name(reader_.word());
    if (name.empty()) reader_.expected("an argument's name");
    const auto index = schema.find(name);
    if (!index) {
      std::string known;
      for (const auto& argument : schema.arguments) known += (known.empty() ? "" : ", ") + argument.name;
      reader_.expected(at, "an argument of " + schema.name + " (" + known + ")");
    }
    if (std::any_of(earlier.begin(), earlier.end(), [&](const auto& argument) { return argument.name == name; }))
      reader_.fail(at, "the argument '" + name + "' is given twice");
    reader_.expect('=', "after the argument's name");
    return {std::move(name), argument(schema.arguments[*index].kind)};
  }

  // "None", "True", "1.5" and the like, or an expression.
  Argument number(std::string_view stops, const std::string& what) {
    const size_t at = reader_.at();
    if (reader_.accept_word("True")) return true;
    if (reader_.accept_word("False")) return false;
    const auto text = reader_.until(stops);
    if (text.find_first_of(".en") != std::string_view::npos) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) return value;
    }
    if (text.empty()) reader_.expected(at, what);
    try {
      return Expr::parse(text);
    } catch (const Error& error) {
      reader_.fail(at, "expected " + what + ", got '" + std::string(text) + "': " + error.message());
    }
  }

  // A leaf of the signature that is no tensor.
  Argument constant() {
    if (reader_.accept_word("None")) return None{};
    if (reader_.peek() == '"') return reader_.string();
    return number("=#", "a value, None, a number or a string");
  }

  bool boolean() {
    if (reader_.accept_word("True")) return true;
    if (reader_.accept_word("False")) return false;
    reader_.expected("True or False");
  }

  Argument argument(ArgumentKind kind) {
    if (reader_.peek() == '%') return value();
    if (reader_.accept_word("None")) return None{};
    switch (kind) {
      case ArgumentKind::Tensor:
        return number(",)", "a value or a number");
      case ArgumentKind::Scalar:
        return number(",)", "a number");
      case ArgumentKind::Float:
        return number(",)", "a float");
      case ArgumentKind::Bool:
        return number(",)", "True, False or a condition");
      case ArgumentKind::Int:
        return expression(",)", "an integer or a symbolic size");
      case ArgumentKind::IntList:
        if (reader_.peek() == '[') return expressions("the list of integers");
        return expression(",)", "an integer, a symbolic size or a list of them");
      case ArgumentKind::TensorList:
      case ArgumentKind::OptionalTensorList: {
        Values values;
        list("the list of values", [&] {
          if (reader_.peek() == '%') {
            values.push_back(value());
          } else if (reader_.accept_word("None")) {
            values.push_back(nullptr);
          } else {
            reader_.expected("a value or None");
          }
        });
        return values;
      }
      case ArgumentKind::FloatList: {
        std::vector<double> values;
        list("the list of floats", [&] {
          const size_t at = reader_.at();
          const Argument element = number(",]", "a float");
          const auto* value = std::get_if<double>(&element);
          if (value == nullptr) reader_.expected(at, "a float");
          values.push_back(*value);
        });
        return values;
      }
      case ArgumentKind::BoolList: {
        std::vector<bool> values;
        list("the list of booleans", [&] { values.push_back(boolean()); });
        return values;
      }
      case ArgumentKind::String:
        return reader_.string();
      case ArgumentKind::StringList: {
        std::vector<std::string> values;
        list("the list of strings", [&] { values.push_back(reader_.string()); });
        return values;
      }
      case ArgumentKind::ScalarType: {
        const size_t at = reader_.at();
        const auto dtype = parse_dtype_text(reader_.word());
        if (!dtype) reader_.expected(at, "a dtype (f32, i64, b8, ...)");
        return *dtype;
      }
      case ArgumentKind::Layout:
        return Layout{reader_.name("a layout (strided, ...)")};
      case ArgumentKind::MemoryFormat:
        return MemoryFormat{reader_.name("a memory format (contiguous_format, ...)")};
      case ArgumentKind::Device: {
        const auto name = reader_.word(true);
        if (name.empty()) reader_.expected("a device (cpu, ...)");
        return Device{std::string(name)};
      }
      case ArgumentKind::Other:
        reader_.expected("None, as this argument takes nothing else");
    }
    throw InternalError("unknown argument kind");
  }

  Reader reader_;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(text).parse(); }

}  // namespace transporters
