#include "transporters/symbolic/shape_env.h"

#include <algorithm>

#include "transporters/error.h"
#include "transporters/symbolic/reasoner.h"

namespace transporters::symbolic {

namespace {

void check_range(const SymbolInfo& info) {
  if (info.range.min > info.range.max) {
    throw Error("the range of '" + info.name + "' is empty: min " + std::to_string(info.range.min) +
                " is larger than max " + std::to_string(info.range.max));
  }
  if (info.hint && !info.range.contains(*info.hint)) {
    throw Error("the example size " + std::to_string(*info.hint) + " of '" + info.name + "' is outside its range " +
                info.range.str());
  }
  bool forced = info.range.max < 2 || info.range.min < 0;
  if (info.hint && *info.hint < 2 && !forced) {
    throw InternalError("the hint of '" + info.name + "' is " + std::to_string(*info.hint) +
                        ": sizes 0 and 1 must not stand for a dynamic size");
  }
}

}  // namespace

std::string Range::str() const {
  std::string low = min == kMinusInfinity ? "unbounded" : std::to_string(min);
  std::string high = max == kInfinity ? "unbounded" : std::to_string(max);
  return "[" + low + ", " + high + "]";
}

Expr ShapeEnv::add_symbol(SymbolInfo info) {
  check_range(info);
  std::string name = info.name;
  for (int suffix = 1; infos_.contains(name); ++suffix) name = info.name + "_" + std::to_string(suffix);
  Expr symbol = Expr::symbol(name);
  info.name = name;
  infos_.emplace(name, std::move(info));
  order_.push_back(name);
  forget_results();
  return symbol;
}

Expr ShapeEnv::add_unbacked(Range range, std::string source, std::string_view prefix) {
  int& next = next_unbacked_[std::string(prefix)];
  std::string name;
  do {
    name = std::string(prefix) + std::to_string(next++);
  } while (infos_.contains(name));
  return add_symbol({.name = name, .range = range, .source = std::move(source)});
}

const SymbolInfo* ShapeEnv::try_info(std::string_view symbol) const {
  auto it = infos_.find(symbol);
  return it == infos_.end() ? nullptr : &it->second;
}

const SymbolInfo& ShapeEnv::info(std::string_view symbol) const {
  if (const SymbolInfo* found = try_info(symbol)) return *found;
  std::string known;
  for (const std::string& name : order_) known += (known.empty() ? "" : ", ") + name;
  throw Error("no symbolic size is named '" + std::string(symbol) + "'; known: " + (known.empty() ? "none" : known));
}

std::vector<std::string> ShapeEnv::symbols() const { return order_; }

Expr ShapeEnv::simplify(const Expr& expr) const { return Reasoner(*this).simplify(expr); }

Range ShapeEnv::bounds(const Expr& expr) const {
  if (expr.type() != Type::Integer) throw InternalError("bounds of an expression that is no integer: " + expr.str());
  Reasoner reasoner(*this);
  return reasoner.bounds(reasoner.simplify(expr));
}

std::optional<Number> ShapeEnv::hint_number(const Expr& expr) const {
  return expr.substitute(replacements_).evaluate([this](std::string_view name) -> std::optional<int64_t> {
    const SymbolInfo* found = try_info(name);
    return found ? found->hint : std::nullopt;
  });
}

std::optional<int64_t> ShapeEnv::hint(const Expr& expr) const {
  auto number = hint_number(expr);
  const auto* value = number ? std::get_if<int64_t>(&*number) : nullptr;
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<bool> ShapeEnv::decide(const Expr& condition) const { return simplify(condition).as_boolean(); }

std::optional<bool> ShapeEnv::decide_size_oblivious(const Expr& condition) const {
  Expr simplified = simplify(condition);
  if (auto decided = simplified.as_boolean()) return decided;
  return Reasoner(*this, true).simplify(simplified).as_boolean();
}

}  // namespace transporters::symbolic
