// What a ShapeEnv writes down: asserts and facts, replaced symbols, narrowed ranges, specialisations.
#include <algorithm>

#include "transporters/error.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/shape_env.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

bool is_composite(const Expr& e) { return e.kind() != Kind::Symbol && !e.is_constant(); }

// `factor` solved for from a sum that is 0, when the sum has it once, with coefficient 1 or -1, among plain symbols.
struct Solved {
  Expr factor;
  Expr value;
};
std::optional<Solved> solve_for_composite(const Expr& zero) {
  LinearForm form = linear_form(zero);
  const Term* found = nullptr;
  for (const Term& term : form.terms) {
    if (!std::ranges::any_of(term.factors, is_composite)) continue;
    if (found || term.factors.size() != 1 || (term.coefficient != 1 && term.coefficient != -1)) return std::nullopt;
    found = &term;
  }
  if (!found) return std::nullopt;
  Expr rest = zero - make_term(found->coefficient, found->factors);
  return Solved{found->factors[0], scale(rest, -found->coefficient)};
}

}  // namespace

std::string ShapeEnv::place(std::string_view call_site) const {
  std::string place = location_ ? location_() : "";
  if (call_site.empty()) return place;
  return place.empty() ? std::string(call_site) : place + " (" + std::string(call_site) + ")";
}

std::string ShapeEnv::describe(const std::string& symbol) const {
  const SymbolInfo& known = info(symbol);
  std::string text = known.explicit_dim ? "Dim '" : "'";
  text += symbol + "' (";
  if (!known.source.empty()) text += known.source + ", ";
  return text + "range " + known.range.str() + ")";
}

void ShapeEnv::forget_results() {
  cache_ = {};
  oblivious_cache_ = {};
}

void ShapeEnv::add_assert(const Expr& condition, const std::string& where) {
  Expr current = condition.substitute(replacements_);
  if (facts_.truth.contains(current)) return;
  asserts_.push_back({condition, where});
  add_fact(current);
}

void ShapeEnv::add_fact(const Expr& condition) {
  if (condition.kind() == Kind::And) {
    for (const Expr& operand : condition.operands()) add_fact(operand);
    return;
  }
  facts_.conditions.push_back(condition);
  index_fact(condition);
  forget_results();
}

void ShapeEnv::index_fact(const Expr& condition) {
  if (condition.is_constant()) return;
  facts_.truth.emplace(condition, true);
  facts_.truth.emplace(logical_not(condition), false);
  bool equality = condition.kind() == Kind::Equal;
  if (!equality && condition.kind() != Kind::LessEqual) return;
  if (condition.operands()[0].type() != Type::Integer) return;
  Expr difference = condition.operands()[1] - condition.operands()[0];
  int64_t constant = linear_form(difference).constant;
  Expr sum = difference - constant;
  facts_.at_least.emplace_back(sum, -constant);
  if (!equality) return;
  facts_.at_least.emplace_back(-sum, constant);
  // What sizes of the input give can't be told by what the graph computes later.
  if (auto solved = solve_for_composite(difference); solved && (hint(solved->value) || !hint(solved->factor)))
    facts_.values.emplace(solved->factor, solved->value);
}

void ShapeEnv::replace(const std::string& symbol, const Expr& by) {
  std::unordered_map<std::string, Expr> replacement{{symbol, by}};
  std::vector<Expr> conditions;
  for (const Expr& condition : facts_.conditions) {
    Expr changed = condition.substitute(replacement);
    if (changed.as_boolean() == false) {
      throw GuardError("`" + symbol + " == " + by.str() + "` contradicts `" + condition.str() +
                       "`, which was taken for granted before");
    }
    conditions.push_back(changed);
  }
  for (auto& [name, value] : replacements_) value = value.substitute(replacement);
  replacements_.emplace(symbol, by);
  facts_ = {};
  for (const Expr& condition : conditions) {
    if (condition.is_constant()) continue;
    facts_.conditions.push_back(condition);
    index_fact(condition);
  }
  forget_results();
}

void ShapeEnv::set_range(const std::string& symbol, const Range& range, const std::string& where) {
  SymbolInfo& known = infos_.find(symbol)->second;
  if (known.range == range) return;
  if (known.hint && range.min == range.max) return specialize_symbol(symbol, range.min, where);
  known.range = range;
  narrowings_.push_back({symbol, range, where});
  forget_results();
}

void ShapeEnv::specialize_symbol(const std::string& symbol, int64_t value, const std::string& where) {
  replace(symbol, value);
  SymbolInfo& known = infos_.find(symbol)->second;
  known.range = {value, value};
  if (known.hint) known.hint = value;
  specializations_.push_back({symbol, value, where});
}

}  // namespace transporters::symbolic
