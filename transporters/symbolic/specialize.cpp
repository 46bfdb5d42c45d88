// Turning symbols into numbers: the last resort, always recorded.
#include "transporters/error.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {

namespace {

std::string at(const std::string& where) { return where.empty() ? "" : ", at " + where; }

}  // namespace

int64_t ShapeEnv::specialize(const Expr& expr, std::string_view call_site) {
  if (expr.type() != Type::Integer) throw InternalError("only integers are specialised: " + expr.str());
  Expr current = simplify(expr);
  if (!current.as_integer() && !hint(current)) {
    if (const auto value = ask_data(current)) {
      take_for_granted(equal(current, std::get<int64_t>(*value)), place(call_site));
      return std::get<int64_t>(*value);
    }
  }
  if (!current.as_integer() && current.kind() != Kind::Symbol && has_no_explicit_dim(current)) {
    // Many sizes can give one number (the chunks of a sequence): the program asserts the number, the sizes stay open.
    if (const auto value = at_sample(current)) {
      const Expr condition = equal(current, *value);
      std::string dim;
      if (try_unify(condition, place(call_site), dim) != Outcome::Done) add_assert(condition, place(call_site));
      return *value;
    }
  }
  if (!current.as_integer()) {
    specialize_symbols(current, "the code needs `" + current.str() + "` as a plain integer" + at(place(call_site)),
                       place(call_site));
    current = simplify(current);
  }
  if (auto value = current.as_integer()) return *value;
  throw GuardError("`" + expr.str() + "` has no value at the example sizes" + at(place(call_site)));
}

bool ShapeEnv::has_no_explicit_dim(const Expr& expr) const {
  for (const std::string& symbol : expr.symbols())
    if (info(symbol).explicit_dim) return false;
  return true;
}

std::optional<int64_t> ShapeEnv::at_sample(const Expr& expr) const {
  const auto value = expr.evaluate([this](std::string_view name) -> std::optional<int64_t> {
    const SymbolInfo* known = try_info(name);
    if (!known) return std::nullopt;
    return known->sample ? known->sample : known->hint;
  });
  const auto* integer = value ? std::get_if<int64_t>(&*value) : nullptr;
  return integer ? std::optional(*integer) : std::nullopt;
}

bool ShapeEnv::specialize_to_sample(const Expr& expr, std::string_view call_site) {
  Expr current = simplify(expr);
  if (auto value = current.as_integer()) return *value == 1;
  if (at_sample(current) != 1) return false;
  if (current.kind() != Kind::Symbol) {
    // Its symbols may have other values, too: the length of a slice at a place that the data gives.
    const Expr condition = equal(current, 1);
    std::string dim;
    if (try_unify(condition, place(call_site), dim) != Outcome::Done) add_assert(condition, place(call_site));
    return true;
  }
  specialize_symbols(current, "`" + current.str() + "` is broadcast, as the example size 1 is" + at(place(call_site)),
                     place(call_site));
  return true;
}

void ShapeEnv::specialize_symbols(const Expr& expr, const std::string& reason, const std::string& where) {
  for (const std::string& symbol : expr.symbols()) {
    const SymbolInfo& known = info(symbol);
    if (known.explicit_dim) {
      throw GuardError(describe(symbol) + " must be one number: " + reason +
                       ". Leave the axis static, or change what asks for the number");
    }
    if (!known.hint) {
      throw GuardError("data-dependent: " + reason + ", but " + describe(symbol) +
                       " is computed by the model and has no example value");
    }
  }
  for (const std::string& symbol : expr.symbols()) {
    const SymbolInfo& known = info(symbol);
    bool usable = known.sample && known.range.contains(*known.sample);
    specialize_symbol(symbol, usable ? *known.sample : *known.hint, where);
  }
}

}  // namespace transporters::symbolic
