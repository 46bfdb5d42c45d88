// Answers that code branches on, and what they take for granted.
#include "transporters/error.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/shape_env.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

std::string at(const std::string& where) { return where.empty() ? "" : ", at " + where; }

// Whether an equality asks if a size is 0 or 1. A remainder is no size: its zero is a property that other sizes lack.
bool asks_for_zero_or_one(const Expr& a, const Expr& b) {
  auto has_mod = [](auto& self, const Expr& e) -> bool {
    if (e.kind() == Kind::Mod) return true;
    for (const Expr& operand : e.operands()) {
      if (self(self, operand)) return true;
    }
    return false;
  };
  auto small = [](const Expr& e) { return e.is(0) || e.is(1); };
  return (small(a) && !has_mod(has_mod, b)) || (small(b) && !has_mod(has_mod, a));
}

}  // namespace

bool ShapeEnv::guard(const Expr& condition, std::string_view call_site) {
  Expr current = simplify(condition);
  if (auto decided = current.as_boolean()) return *decided;
  return guard_condition(current, place(call_site));
}

bool ShapeEnv::guard_condition(const Expr& condition, const std::string& where) {
  if (auto decided = decide_size_oblivious(condition)) return *decided;
  auto hint = hint_number(condition);
  if (const auto answer = hint ? std::nullopt : ask_data(condition)) {
    const bool holds = std::get<bool>(*answer);
    take_for_granted(holds ? condition : logical_not(condition), where);
    return holds;
  }
  if (!hint) {
    std::string sources;
    for (const std::string& symbol : condition.symbols()) {
      const SymbolInfo* known = try_info(symbol);
      if (!known || !known->hint) sources += "; " + (known ? describe(symbol) : "'" + symbol + "'");
    }
    if (sources.empty()) {
      throw GuardError("the code branches on `" + condition.str() + "`" + at(where) +
                       ", which has no value at the example sizes");
    }
    throw GuardError("data-dependent: the code branches on `" + condition.str() + "`" + at(where) +
                     ", which the ranges do not decide" + sources +
                     " is computed by the model and has no example value. State what holds before that line "
                     "(torch._check in Python, ShapeEnv::expect in C++): `" +
                     condition.str() + "` or `" + logical_not(condition).str() + "`");
  }
  switch (condition.kind()) {
    case Kind::And:
    case Kind::Or:
      return guard_junction(condition, where);
    case Kind::Not:
      return !guard_condition(condition.operands()[0], where);
    case Kind::Select:
      return guard_condition(condition.operands()[guard_condition(condition.operands()[0], where) ? 1 : 2], where);
    case Kind::NotEqual:
      return !guard_equal(logical_not(condition), where);
    case Kind::Equal:
      return guard_equal(condition, where);
    case Kind::LessEqual:
      return guard_less_equal(condition, where);
    default: {
      bool answer = std::get<bool>(*hint);
      add_assert(answer ? condition : logical_not(condition), where);
      return answer;
    }
  }
}

std::optional<Number> ShapeEnv::ask_data(const Expr& expr) const {
  return data_oracle_ ? data_oracle_(expr) : std::nullopt;
}

void ShapeEnv::take_for_granted(const Expr& condition, const std::string& where) {
  add_assert(condition, where);
  data_answers_.push_back({condition, where});
}

// One operand that settles the answer is enough; the others are not asked.
bool ShapeEnv::guard_junction(const Expr& condition, const std::string& where) {
  bool settling = condition.kind() == Kind::Or;
  for (const Expr& operand : condition.operands()) {
    auto decided = decide_size_oblivious(operand);
    if (decided == settling) return settling;
  }
  for (const Expr& operand : condition.operands()) {
    auto hint = hint_number(operand);
    if (hint && std::get<bool>(*hint) == settling) return guard_condition(operand, where);
  }
  for (const Expr& operand : condition.operands()) {
    if (guard_condition(operand, where) == settling) return settling;
  }
  return !settling;
}

bool ShapeEnv::guard_equal(const Expr& condition, const std::string& where) {
  std::span<const Expr> sides = condition.operands();
  // Sizes of 1 in the sample have another hint, so that a sum with one of them (a cache and the next token) no longer
  // is what it is in the sample (the length of a mask).
  const auto are_equal_in_sample = [&] {
    if (sides[0].type() != Type::Integer || sides[0].is_constant() || sides[1].is_constant()) return false;
    const auto size = at_sample(sides[0]);
    return size && *size > 1 && size == at_sample(sides[1]);
  };
  bool answer = std::get<bool>(hint_number(condition).value()) || are_equal_in_sample();
  if (!answer) {
    if (sides[0].type() != Type::Integer || !asks_for_zero_or_one(sides[0], sides[1])) {
      add_assert(logical_not(condition), where);
    }
    return false;
  }
  std::string dim;
  Outcome outcome = sides[0].type() == Type::Integer ? try_unify(condition, where, dim) : Outcome::Unsolvable;
  if (outcome == Outcome::Done) return true;
  if (outcome == Outcome::LosesDim && !options_.prefer_deferred_runtime_asserts_over_guards) {
    std::string others;
    for (const std::string& symbol : condition.symbols())
      if (symbol != dim) others += (others.empty() ? ", with " : " and ") + describe(symbol);
    throw GuardError(describe(dim) + " loses values: the code takes `" + condition.str() + "` for granted" + others +
                     at(where) + ". Give equal axes one Dim (a fixed size no Dim), narrow Dim(\"" + dim +
                     "\") to what the code allows, or set prefer_deferred_runtime_asserts_over_guards");
  }
  add_assert(condition, where);
  return true;
}

bool ShapeEnv::guard_less_equal(const Expr& condition, const std::string& where) {
  bool answer = std::get<bool>(hint_number(condition).value());
  Expr holds = answer ? condition : logical_not(condition);
  std::string dim;
  Outcome outcome = holds.kind() == Kind::LessEqual && holds.operands()[0].type() == Type::Integer
                        ? try_narrow(holds, where, dim)
                        : Outcome::Unsolvable;
  if (outcome == Outcome::Done) return answer;
  if (outcome == Outcome::LosesDim && !options_.prefer_deferred_runtime_asserts_over_guards) {
    throw GuardError(describe(dim) + " loses values: the code branches on `" + condition.str() + "`" + at(where) +
                     ", and the traced branch needs `" + holds.str() + "`. Narrow Dim(\"" + dim +
                     "\") or set prefer_deferred_runtime_asserts_over_guards");
  }
  add_assert(holds, where);
  return answer;
}

void ShapeEnv::expect(const Expr& condition, std::string_view message, std::string_view call_site) {
  expect_condition(condition, std::string(message), place(call_site));
}

void ShapeEnv::expect_condition(const Expr& condition, const std::string& message, const std::string& where) {
  Expr current = simplify(condition);
  if (auto decided = current.as_boolean()) {
    if (*decided) return;
    throw GuardError("the expectation `" + condition.str() + "`" + at(where) + " never holds" +
                     (message.empty() ? "" : ": " + message));
  }
  if (current.kind() == Kind::And) {
    for (const Expr& operand : current.operands()) expect_condition(operand, message, where);
    return;
  }
  // At an end of the range, different is smaller or larger.
  if (current.kind() == Kind::NotEqual && current.operands()[0].type() == Type::Integer) {
    Range difference = bounds(current.operands()[1] - current.operands()[0]);
    if (difference.min == 0) current = less(current.operands()[0], current.operands()[1]);
    if (difference.max == 0) current = less(current.operands()[1], current.operands()[0]);
  }
  // An example that contradicts it leaves ranges and symbols alone: the program's user will be told by the assert.
  auto hint = hint_number(current);
  bool contradicted = hint && !std::get<bool>(*hint);
  bool integers = !current.operands().empty() && current.operands()[0].type() == Type::Integer;
  std::string dim;
  size_t before = asserts_.size();
  Outcome outcome = Outcome::Unsolvable;
  if (!contradicted && integers && current.kind() == Kind::Equal) outcome = try_unify(current, where, dim);
  if (!contradicted && integers && current.kind() == Kind::LessEqual) outcome = try_narrow(current, where, dim);
  if (outcome != Outcome::Done) add_assert(current, where);
  for (size_t i = before; i < asserts_.size(); ++i) asserts_[i].message = message;
}

}  // namespace transporters::symbolic
