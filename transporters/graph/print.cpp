// Program::str(). One statement a line, `#` starts a comment:
//
//   program NAME                                 class of the exported module
//   in_spec JSON / out_spec JSON                 pytree of the inputs and of the result; absent for a single leaf
//   symbol NAME in [MIN, MAX] hint N             range and example value; MAX may be inf, either part may be absent
//   input %NAME: TYPE = ROLE "TARGET"            role: parameter, buffer, constant, user; `non_persistent` may follow
//   input CONSTANT = user "TARGET"               a leaf that is no tensor: None, a number, a string
//   %NAME: TYPE, ... = OP(ARGUMENT=VALUE, ...)   `@ MODULE.PATH` and `from "SOURCE"` may follow
//   output %NAME = ROLE "TARGET"                 role: user, buffer_mutation, input_mutation
//
// TYPE is DTYPE[SIZES], with `strides [...]` when they are not contiguous, or number(EXPRESSION). Names that are not
// made of letters, digits, '_' and '.' alone stand in quotes. Bytes of weights and example inputs are not in the text.
#include <array>
#include <charconv>
#include <set>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/text.h"

namespace transporters {
namespace {

struct DtypeRow {
  ScalarType dtype;
  std::string_view text;
};
constexpr std::array<DtypeRow, 28> kDtypes{{{ScalarType::Float, "f32"},
                                            {ScalarType::Double, "f64"},
                                            {ScalarType::Half, "f16"},
                                            {ScalarType::BFloat16, "bf16"},
                                            {ScalarType::Long, "i64"},
                                            {ScalarType::Int, "i32"},
                                            {ScalarType::Short, "i16"},
                                            {ScalarType::Char, "i8"},
                                            {ScalarType::Byte, "u8"},
                                            {ScalarType::Bool, "b8"},
                                            {ScalarType::UInt16, "u16"},
                                            {ScalarType::UInt32, "u32"},
                                            {ScalarType::UInt64, "u64"},
                                            {ScalarType::ComplexHalf, "c32"},
                                            {ScalarType::ComplexFloat, "c64"},
                                            {ScalarType::ComplexDouble, "c128"},
                                            {ScalarType::Float8_e4m3fn, "f8e4m3fn"},
                                            {ScalarType::Float8_e5m2, "f8e5m2"},
                                            {ScalarType::Float8_e4m3fnuz, "f8e4m3fnuz"},
                                            {ScalarType::Float8_e5m2fnuz, "f8e5m2fnuz"},
                                            {ScalarType::Float8_e8m0fnu, "f8e8m0fnu"},
                                            {ScalarType::Float4_e2m1fn_x2, "f4e2m1fnx2"},
                                            {ScalarType::QInt8, "qi8"},
                                            {ScalarType::QUInt8, "qu8"},
                                            {ScalarType::QInt32, "qi32"},
                                            {ScalarType::Bits8, "bits8"},
                                            {ScalarType::Bits16, "b16"},
                                            {ScalarType::Bits1x8, "b1x8"}}};

bool is_plain(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
      return false;
  return true;
}

std::string word(std::string_view name) { return is_plain(name) ? std::string(name) : quoted(name); }

std::string value_text(const Value* value) { return value == nullptr ? "None" : "%" + word(value->name()); }

// The shortest text that reads back as the same float, told from an integer by a point or an exponent.
std::string real_text(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  if (text == "-nan") text = "nan";
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <typename List, typename F>
std::string list_text(const List& list, F element_text) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + element_text(list[i]);
  return text + "]";
}

std::string expr_text(const Expr& expr) { return expr.str(); }

struct ArgumentText {
  std::string operator()(const None&) const { return "None"; }
  std::string operator()(Value* value) const { return value_text(value); }
  std::string operator()(const Values& values) const { return list_text(values, value_text); }
  std::string operator()(const Expr& expr) const { return expr_text(expr); }
  std::string operator()(const std::vector<Expr>& exprs) const { return list_text(exprs, expr_text); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::vector<double>& list) const { return list_text(list, real_text); }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(const std::vector<bool>& list) const {
    return list_text(list, [](bool value) { return std::string(value ? "True" : "False"); });
  }
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(const std::vector<std::string>& list) const { return list_text(list, quoted); }
  std::string operator()(ScalarType dtype) const { return std::string(dtype_text(dtype)); }
  std::string operator()(const Layout& layout) const { return layout.name; }
  std::string operator()(const MemoryFormat& format) const { return format.name; }
  std::string operator()(const Device& device) const { return device.name; }
};

std::string range_text(const symbolic::Range& range) {
  const bool unbounded = range.max == symbolic::Range::kInfinity;
  return "[" + std::to_string(range.min) + ", " + (unbounded ? "inf" : std::to_string(range.max)) + "]";
}

std::string typed_value(const Value* value) { return value_text(value) + ": " + to_text(value->type()); }

std::string input_text(const InputSpec& input) {
  static constexpr std::string_view kRoles[] = {"parameter", "buffer", "constant", "user"};
  std::string text = "input " + (input.value != nullptr ? typed_value(input.value) : to_text(input.constant));
  text += " = " + std::string(kRoles[static_cast<size_t>(input.kind)]) + " " + quoted(input.target);
  return text + (input.persistent ? "" : " non_persistent");
}

std::string output_text(const OutputSpec& output) {
  static constexpr std::string_view kRoles[] = {"user", "buffer_mutation", "input_mutation"};
  std::string text = "output " + (output.value != nullptr ? value_text(output.value) : to_text(output.constant));
  return text + " = " + std::string(kRoles[static_cast<size_t>(output.kind)]) + " " + quoted(output.target);
}

}  // namespace

std::string_view dtype_text(ScalarType dtype) {
  for (const auto& row : kDtypes)
    if (row.dtype == dtype) return row.text;
  throw Error("dtype " + std::string(c10::toString(dtype)) + " is not supported in a graph");
}

std::optional<ScalarType> parse_dtype_text(std::string_view text) {
  for (const auto& row : kDtypes)
    if (row.text == text) return row.dtype;
  return std::nullopt;
}

std::string quoted(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          result += "\\u00";
          result += kHex[static_cast<unsigned char>(c) >> 4];
          result += kHex[static_cast<unsigned char>(c) & 15];
        } else {
          result += c;
        }
    }
  }
  return result + "\"";
}

std::string to_text(const ValueType& type) {
  if (const auto* number = std::get_if<NumberType>(&type)) return "number(" + number->expr.str() + ")";
  const auto& tensor = std::get<TensorType>(type);
  std::string text = std::string(dtype_text(tensor.dtype)) + list_text(tensor.sizes, expr_text);
  if (!tensor.is_contiguous()) text += " strides " + list_text(tensor.strides, expr_text);
  return text;
}

std::string to_text(const Argument& argument) { return std::visit(ArgumentText{}, argument); }

std::string to_text(const Node& node) {
  std::string text;
  for (const auto* output : node.outputs()) text += (text.empty() ? "" : ", ") + typed_value(output);
  text += (text.empty() ? "" : " = ") + node.op() + "(";
  bool first = true;
  for (const auto& argument : node.arguments()) {
    text += (first ? "" : ", ") + argument.name + "=" + to_text(argument.value);
    first = false;
  }
  text += ")";
  if (!node.module_path.empty()) text += "  @ " + word(node.module_path);
  if (!node.source.empty()) text += "  from " + quoted(node.source);
  return text;
}

std::string Program::str() const {
  std::string text = "program" + (architecture.empty() ? "" : " " + word(architecture)) + "\n";
  if (!(in_spec == TreeSpec{})) text += "in_spec " + in_spec.dumps() + "\n";
  if (!(out_spec == TreeSpec{})) text += "out_spec " + out_spec.dumps() + "\n";
  std::set<std::string> symbols;
  for (const auto& [name, range] : ranges) symbols.insert(name);
  for (const auto& [name, hint] : hints) symbols.insert(name);
  for (const auto& name : symbols) {
    text += "symbol " + word(name);
    if (const auto range = ranges.find(name); range != ranges.end()) text += " in " + range_text(range->second);
    if (const auto hint = hints.find(name); hint != hints.end()) text += " hint " + std::to_string(hint->second);
    text += "\n";
  }
  for (const auto& input : inputs) text += input_text(input) + "\n";
  for (const auto& node : *graph) text += to_text(node) + "\n";
  for (const auto& output : outputs) text += output_text(output) + "\n";
  return text;
}

}  // namespace transporters
