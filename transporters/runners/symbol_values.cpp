#include "transporters/runners/symbol_values.h"

namespace transporters {
namespace {

std::string range_text(const symbolic::Range& range) {
  const std::string max = range.max == symbolic::Range::kInfinity ? "inf" : std::to_string(range.max);
  return "[" + std::to_string(range.min) + ", " + max + "]";
}

std::string dim_text(std::optional<size_t> dim) { return dim ? " dim " + std::to_string(*dim) : ""; }

int64_t read(const SymbolBinding& binding, const c10::IValue& value, const ErrorContext& context,
             const std::string& what) {
  if (binding.dim) return value.toTensor().size(static_cast<int64_t>(*binding.dim));
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool() ? 1 : 0;
  throw Error(context, what + ": expected an integer " + binding.expr.str() + ", got a " + value.tagKind());
}

}  // namespace

SymbolValues::SymbolValues(const Program& program) {
  for (const auto& [name, source] : find_symbol_sources(program)) {
    const auto range = program.ranges.find(name);
    symbol_index_[name] = symbols_.size();
    const Expr expr = Expr(source.scale) * Expr::symbol(name) + Expr(source.offset);
    bindings_[source.value].push_back({symbols_.size(), source.dim, source.scale, source.offset, expr});
    symbols_.push_back({name, range == program.ranges.end() ? symbolic::Range{} : range->second});
  }
}

const std::vector<SymbolBinding>& SymbolValues::bindings(const Value* value) const {
  static const std::vector<SymbolBinding> kNone;
  const auto found = bindings_.find(value);
  return found == bindings_.end() ? kNone : found->second;
}

size_t SymbolValues::add(const Expr& expr) {
  const auto [entry, added] = expr_index_.try_emplace(expr, exprs_.size());
  if (added) {
    exprs_.push_back(expr);
    values_.emplace_back();
  }
  return entry->second;
}

void SymbolValues::reset() {
  for (auto& symbol : symbols_) symbol.value.reset();
  values_.assign(values_.size(), std::nullopt);
}

void SymbolValues::bind(const std::vector<SymbolBinding>& bindings, const c10::IValue& value,
                        const ErrorContext& context, const std::string& what) {
  for (const auto& binding : bindings) {
    Symbol& symbol = symbols_[binding.symbol];
    const int64_t got = read(binding, value, context, what);
    const int64_t scaled = got - binding.offset;
    const std::string where = what + dim_text(binding.dim);
    if (scaled % binding.scale != 0)
      throw Error(context, where + ": expected " + binding.expr.str() + " for an integer " + symbol.name + ", got " +
                               std::to_string(got));
    const int64_t solved = scaled / binding.scale;
    if (!symbol.range.contains(solved)) {
      std::string message = where + ": expected " + symbol.name + " in " + range_text(symbol.range);
      if (binding.scale != 1 || binding.offset != 0) message += " with a size of " + binding.expr.str();
      throw Error(context, message + ", got " + std::to_string(got));
    }
    symbol.value = solved;
    symbol.origin = where;
  }
}

const symbolic::Number& SymbolValues::value(size_t index) {
  auto& value = values_[index];
  if (!value) {
    value = exprs_[index].evaluate([this](std::string_view name) -> std::optional<int64_t> {
      const auto found = symbol_index_.find(name);
      return found == symbol_index_.end() ? std::nullopt : symbols_[found->second].value;
    });
    if (!value)
      throw Error({.stage = "run"}, "the size " + exprs_[index].str() + " can't be computed" +
                                        (exprs_[index].is_constant() ? "" : ": " + explain(exprs_[index])));
  }
  return *value;
}

int64_t SymbolValues::integer(size_t index) {
  const auto& number = value(index);
  if (const auto* integer = std::get_if<int64_t>(&number)) return *integer;
  throw Error({.stage = "run"}, "the size " + exprs_[index].str() + " is no integer");
}

std::string SymbolValues::explain(const Expr& expr) const {
  std::string text;
  for (const auto& name : expr.symbols()) {
    const auto found = symbol_index_.find(name);
    text += (text.empty() ? "" : ", ") + name;
    if (found == symbol_index_.end() || !symbols_[found->second].value) {
      text += " is unknown";
    } else {
      const Symbol& symbol = symbols_[found->second];
      text += " = " + std::to_string(*symbol.value) + " (" + symbol.origin + ")";
    }
  }
  return text;
}

}  // namespace transporters
