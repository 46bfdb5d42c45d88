#include "transporters/graph/ivalue_torch.h"

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <array>

#include "transporters/error.h"

namespace transporters {
namespace {

struct MemoryFormatRow {
  c10::MemoryFormat format;
  const char* name;
};
constexpr std::array<MemoryFormatRow, 4> kMemoryFormats{{{c10::MemoryFormat::Contiguous, "contiguous_format"},
                                                         {c10::MemoryFormat::Preserve, "preserve_format"},
                                                         {c10::MemoryFormat::ChannelsLast, "channels_last"},
                                                         {c10::MemoryFormat::ChannelsLast3d, "channels_last_3d"}}};

struct LayoutRow {
  c10::Layout layout;
  const char* name;
};
constexpr std::array<LayoutRow, 8> kLayouts{{{c10::Layout::Strided, "strided"},
                                             {c10::Layout::Sparse, "sparse_coo"},
                                             {c10::Layout::SparseCsr, "sparse_csr"},
                                             {c10::Layout::SparseCsc, "sparse_csc"},
                                             {c10::Layout::SparseBsr, "sparse_bsr"},
                                             {c10::Layout::SparseBsc, "sparse_bsc"},
                                             {c10::Layout::Mkldnn, "_mkldnn"},
                                             {c10::Layout::Jagged, "jagged"}}};

template <typename Table>
[[noreturn]] void unknown_name(const std::string& what, const std::string& name, const Table& table) {
  std::string known;
  for (const auto& row : table) known += (known.empty() ? "" : ", ") + std::string(row.name);
  throw Error("unknown " + what + " '" + name + "'; known are " + known);
}

std::vector<Expr> to_exprs(const c10::IValue& value) {
  std::vector<Expr> exprs;
  if (value.isIntList()) {
    for (const int64_t element : value.toIntVector()) exprs.emplace_back(element);
  } else {
    for (const c10::IValue& element : value.toListRef())
      exprs.push_back(std::get<Expr>(to_argument(element, ArgumentKind::Int)));
  }
  return exprs;
}

const std::string& expected_kind(ArgumentKind kind) {
  static const std::string kNames[] = {"Tensor",     "Tensor[]", "Tensor?[]",    "int",    "int[]",       "float",
                                       "float[]",    "bool",     "bool[]",       "Scalar", "str",         "str[]",
                                       "ScalarType", "Layout",   "MemoryFormat", "Device", "another type"};
  return kNames[static_cast<size_t>(kind)];
}

[[noreturn]] void does_not_fit(ArgumentKind kind) {
  throw Error("the argument can't be converted to the schema's type " + expected_kind(kind));
}

int64_t constant_integer(const Expr& expr) {
  if (const auto value = expr.as_integer()) return *value;
  throw Error("expected a constant integer, got the symbolic size " + expr.str());
}

c10::IValue number(const Argument& argument, ArgumentKind kind) {
  if (const auto* real = std::get_if<double>(&argument)) return *real;
  if (const auto* boolean = std::get_if<bool>(&argument)) return *boolean;
  if (const auto* expr = std::get_if<Expr>(&argument)) {
    if (const auto value = expr->as_real()) return *value;
    if (const auto value = expr->as_boolean()) return *value;
    return constant_integer(*expr);
  }
  does_not_fit(kind);
}

template <typename T>
const T& expect(const Argument& argument, ArgumentKind kind) {
  if (const T* value = std::get_if<T>(&argument)) return *value;
  does_not_fit(kind);
}

// An empty list of any element type is an empty list of the wanted one.
bool is_empty_list(const Argument& argument) {
  return std::visit(
      [](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Values> || std::is_same_v<T, std::vector<Expr>> ||
                      std::is_same_v<T, std::vector<double>> || std::is_same_v<T, std::vector<bool>> ||
                      std::is_same_v<T, std::vector<std::string>>)
          return value.empty();
        return false;
      },
      argument);
}

}  // namespace

std::string memory_format_name(c10::MemoryFormat format) {
  for (const auto& row : kMemoryFormats)
    if (row.format == format) return row.name;
  throw InternalError("unknown memory format " + std::to_string(static_cast<int>(format)));
}

c10::MemoryFormat parse_memory_format(const std::string& name) {
  for (const auto& row : kMemoryFormats)
    if (row.name == name) return row.format;
  unknown_name("memory format", name, kMemoryFormats);
}

std::string layout_name(c10::Layout layout) {
  for (const auto& row : kLayouts)
    if (row.layout == layout) return row.name;
  throw InternalError("unknown layout " + std::to_string(static_cast<int>(layout)));
}

c10::Layout parse_layout(const std::string& name) {
  for (const auto& row : kLayouts)
    if (row.name == name) return row.layout;
  unknown_name("layout", name, kLayouts);
}

Argument to_argument(const c10::IValue& value, ArgumentKind kind) {
  if (value.isNone()) return None{};
  switch (kind) {
    case ArgumentKind::Int:
      if (value.isInt()) return Expr(value.toInt());
      if (value.isSymInt() && !value.toSymInt().is_heap_allocated()) return Expr(value.toSymInt().expect_int());
      break;
    case ArgumentKind::IntList:
      if (value.isList()) return to_exprs(value);
      break;
    case ArgumentKind::Float:
      if (value.isDouble()) return value.toDouble();
      if (value.isInt()) return static_cast<double>(value.toInt());
      break;
    case ArgumentKind::FloatList:
      if (value.isDoubleList()) return value.toDoubleVector();
      break;
    case ArgumentKind::Bool:
      if (value.isBool()) return value.toBool();
      break;
    case ArgumentKind::BoolList:
      if (value.isBoolList()) {
        std::vector<bool> list;
        for (const bool element : value.toBoolList()) list.push_back(element);
        return list;
      }
      break;
    case ArgumentKind::Tensor:
    case ArgumentKind::Scalar:
      if (value.isInt()) return Expr(value.toInt());
      if (value.isDouble()) return value.toDouble();
      if (value.isBool()) return value.toBool();
      break;
    case ArgumentKind::String:
      if (value.isString()) return value.toStringRef();
      break;
    case ArgumentKind::StringList:
      if (value.isList()) {
        std::vector<std::string> list;
        for (const c10::IValue& element : value.toListRef()) list.push_back(element.toStringRef());
        return list;
      }
      break;
    case ArgumentKind::ScalarType:
      if (value.isInt()) return value.toScalarType();
      break;
    case ArgumentKind::Layout:
      if (value.isInt()) return Layout{layout_name(value.toLayout())};
      break;
    case ArgumentKind::MemoryFormat:
      if (value.isInt()) return MemoryFormat{memory_format_name(value.toMemoryFormat())};
      break;
    case ArgumentKind::Device:
      if (value.isDevice()) return Device{value.toDevice().str()};
      break;
    case ArgumentKind::TensorList:
    case ArgumentKind::OptionalTensorList:
      if (value.isList() && value.toListRef().empty()) return Values{};
      break;
    case ArgumentKind::Other:
      break;
  }
  throw Error("expected a constant of type " + expected_kind(kind) + ", got " + value.tagKind());
}

c10::IValue to_ivalue(const Argument& argument, ArgumentKind kind) {
  if (std::holds_alternative<None>(argument)) return {};
  const bool empty = is_empty_list(argument);
  switch (kind) {
    case ArgumentKind::Int:
      return constant_integer(expect<Expr>(argument, kind));
    case ArgumentKind::IntList: {
      std::vector<int64_t> list;
      if (!empty)
        for (const auto& expr : expect<std::vector<Expr>>(argument, kind)) list.push_back(constant_integer(expr));
      return list;
    }
    case ArgumentKind::Float: {
      const c10::IValue value = number(argument, kind);
      return value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
    }
    case ArgumentKind::FloatList:
      return empty ? c10::IValue(std::vector<double>{}) : expect<std::vector<double>>(argument, kind);
    case ArgumentKind::Bool: {
      const c10::IValue value = number(argument, kind);
      return value.isInt() ? c10::IValue(value.toInt() != 0) : value;
    }
    case ArgumentKind::BoolList: {
      c10::List<bool> list;
      if (!empty)
        for (const bool element : expect<std::vector<bool>>(argument, kind)) list.push_back(element);
      return list;
    }
    case ArgumentKind::Scalar:
    case ArgumentKind::Tensor:
      return number(argument, kind);
    case ArgumentKind::String:
      return expect<std::string>(argument, kind);
    case ArgumentKind::StringList:
      return empty ? c10::IValue(std::vector<std::string>{}) : expect<std::vector<std::string>>(argument, kind);
    case ArgumentKind::ScalarType:
      return static_cast<int64_t>(expect<ScalarType>(argument, kind));
    case ArgumentKind::Layout:
      return static_cast<int64_t>(parse_layout(expect<Layout>(argument, kind).name));
    case ArgumentKind::MemoryFormat:
      return static_cast<int64_t>(parse_memory_format(expect<MemoryFormat>(argument, kind).name));
    case ArgumentKind::Device:
      return c10::Device(expect<Device>(argument, kind).name);
    case ArgumentKind::TensorList:
      if (empty) return std::vector<at::Tensor>{};
      break;
    case ArgumentKind::OptionalTensorList:
      if (empty) return c10::List<std::optional<at::Tensor>>{};
      break;
    case ArgumentKind::Other:
      break;
  }
  does_not_fit(kind);
}

}  // namespace transporters
