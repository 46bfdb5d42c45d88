#include "transporters/graph/symbol_sources.h"

#include <algorithm>
#include <set>

namespace transporters {
namespace {

struct Linear {
  std::string symbol;
  int64_t scale;
  int64_t offset;
};

// expr as scale * symbol + offset; nullopt when it has another form. A boolean that a node reads is Eq(symbol, 1).
std::optional<Linear> as_linear(const Expr& expr) {
  if (expr.kind() == symbolic::Kind::Equal) {
    const auto operands = expr.operands();
    for (size_t i = 0; i < 2; ++i)
      if (operands[i].kind() == symbolic::Kind::Symbol && operands[1 - i].is(1))
        return Linear{operands[i].name(), 1, 0};
  }
  if (expr.is_constant() || expr.type() != symbolic::Type::Integer) return std::nullopt;
  if (expr.kind() == symbolic::Kind::Symbol) return Linear{expr.name(), 1, 0};
  if (expr.kind() != symbolic::Kind::Add && expr.kind() != symbolic::Kind::Mul) return std::nullopt;
  const auto symbols = expr.symbols();
  if (symbols.size() != 1) return std::nullopt;
  const auto value_at = [&](int64_t x) -> std::optional<int64_t> {
    const auto number = expr.evaluate([x](std::string_view) { return x; });
    if (!number || !std::holds_alternative<int64_t>(*number)) return std::nullopt;
    return std::get<int64_t>(*number);
  };
  const auto offset = value_at(0);
  const auto at_one = value_at(1);
  if (!offset || !at_one || *at_one == *offset) return std::nullopt;
  const int64_t scale = *at_one - *offset;
  if (!(expr == Expr(scale) * Expr::symbol(symbols.front()) + Expr(*offset))) return std::nullopt;
  return Linear{symbols.front(), scale, *offset};
}

void add_sources(Value* value, bool plain, std::map<std::string, SymbolSource>& sources) {
  const auto add = [&](const Expr& expr, std::optional<size_t> dim) {
    const auto linear = as_linear(expr);
    if (!linear || (linear->scale == 1 && linear->offset == 0) != plain) return;
    sources.try_emplace(linear->symbol, SymbolSource{value, dim, linear->scale, linear->offset});
  };
  if (const auto* number = std::get_if<NumberType>(&value->type())) return add(number->expr, std::nullopt);
  for (size_t dim = 0; dim < value->rank(); ++dim) add(value->sizes()[dim], dim);
}

void collect(const Expr& expr, std::set<std::string>& symbols) {
  if (expr.is_constant()) return;
  for (auto& name : expr.symbols()) symbols.insert(std::move(name));
}

}  // namespace

std::map<std::string, SymbolSource> find_symbol_sources(const Program& program) {
  std::map<std::string, SymbolSource> sources;
  for (const bool plain : {true, false})
    for (const auto& input : program.inputs)
      if (input.kind == InputKind::UserInput && input.value != nullptr) add_sources(input.value, plain, sources);
  for (const auto& node : *program.graph)
    for (const bool plain : {true, false})
      for (auto* output : node.outputs()) add_sources(output, plain, sources);
  return sources;
}

std::vector<std::string> symbols_of(const ValueType& type) {
  std::set<std::string> symbols;
  if (const auto* number = std::get_if<NumberType>(&type)) {
    collect(number->expr, symbols);
  } else {
    const auto& tensor = std::get<TensorType>(type);
    for (const auto& size : tensor.sizes) collect(size, symbols);
    for (const auto& stride : tensor.strides) collect(stride, symbols);
  }
  return {symbols.begin(), symbols.end()};
}

std::vector<std::string> symbols_of(const Argument& argument) {
  std::set<std::string> symbols;
  for_each_expr(argument, [&](const Expr& expr) { collect(expr, symbols); });
  return {symbols.begin(), symbols.end()};
}

}  // namespace transporters
