// Random expressions against plain evaluation: canonical forms, text, substitution; then simplification, bounds and
// decisions inside ranges; then guards and what they record. A failure is shrunk and printed with its seed;
// TRANSPORTERS_FUZZ_SEED and TRANSPORTERS_FUZZ_COUNT run others.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "random_tree.h"
#include "transporters/error.h"
#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {
namespace {

using fuzz::Assignment;
using fuzz::Tree;

const std::vector<std::string> kSymbols = {"a", "b", "c", "d"};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::optional<Number> value_of(const Expr& e, const Assignment& values) {
  return e.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string show(const std::optional<Number>& value) {
  if (!value) return "undefined";
  if (const auto* whole = std::get_if<int64_t>(&*value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&*value)) return std::to_string(*real);
  return std::get<bool>(*value) ? "true" : "false";
}

std::string show(const Assignment& values) {
  std::string text;
  for (const auto& [name, value] : values) text += " " + name + "=" + std::to_string(value);
  return text;
}

// nullopt when the tree passes, else what is wrong.
using Property = std::function<std::optional<std::string>(const Tree&, std::mt19937_64&)>;

// A size that overflows while it is built is an error by contract, nothing to check.
std::optional<std::string> run(const Property& property, const Tree& tree, uint64_t seed) {
  std::mt19937_64 random(seed);
  try {
    return property(tree, random);
  } catch (const OverflowError&) {
    return std::nullopt;
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

void check_property(uint64_t first_seed, uint64_t count, const Property& property) {
  count = setting("TRANSPORTERS_FUZZ_COUNT", count);
  first_seed = setting("TRANSPORTERS_FUZZ_SEED", first_seed);
  static constexpr std::array kTypes = {Type::Integer, Type::Integer, Type::Boolean, Type::Real};
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    std::mt19937_64 random(seed);
    fuzz::Grower grower(random, kSymbols);
    auto tree = grower.grow(kTypes[seed % kTypes.size()], static_cast<int>(grower.pick(1, 5)));
    if (!run(property, *tree, seed)) continue;
    auto smallest = fuzz::shrink(tree, [&](const Tree& t) { return run(property, t, seed).has_value(); });
    FAIL_CHECK("seed " << seed << ": " << fuzz::to_string(*smallest) << ": " << *run(property, *smallest, seed));
    return;
  }
  CHECK(count > 0);
}

// High powers, which collecting factors makes of low ones, overflow on the way to a small value.
bool has_high_power(const Expr& e) {
  if (e.kind() == Kind::Pow && e.type() == Type::Integer && e.operands()[1].as_integer().value_or(9) > 4) return true;
  return std::ranges::any_of(e.operands(), has_high_power);
}

bool is_value(const std::optional<Number>& got, const Number& expected, const Expr& e) {
  return got == expected || (!got && has_high_power(e));
}

std::optional<std::string> compare_values(const Tree& tree, const Expr& e, const Assignment& values) {
  auto expected = fuzz::evaluate(tree, values);
  if (!expected) return std::nullopt;
  auto got = value_of(e, values);
  if (is_value(got, *expected, e)) return std::nullopt;
  return e.str() + " is " + show(got) + ", expected " + show(expected) + " at" + show(values);
}

std::optional<std::string> check_canonical(const Tree& tree, std::mt19937_64& random) {
  Expr e = fuzz::build(tree);
  if (e.type() != tree.type) return "the type changed: " + e.str();
  std::uniform_int_distribution<int64_t> any(-7, 13);
  for (int i = 0; i < 12; ++i) {
    Assignment values;
    for (const std::string& name : kSymbols) values[name] = any(random);
    if (auto wrong = compare_values(tree, e, values)) return wrong;
  }
  Expr parsed = Expr::parse(e.str());
  if (parsed != e) return "text does not read back: " + e.str() + " became " + parsed.str();
  if (parsed.hash() != e.hash()) return "hashes of equal expressions differ: " + e.str();
  return std::nullopt;
}

std::optional<std::string> check_substitution(const Tree& tree, std::mt19937_64& random) {
  Expr e = fuzz::build(tree);
  fuzz::Grower grower(random, kSymbols);
  auto replacement = grower.grow(Type::Integer, 2);
  Expr replaced = e.substitute({{"a", fuzz::build(*replacement)}});
  for (int i = 0; i < 8; ++i) {
    Assignment values;
    for (const std::string& name : kSymbols) values[name] = grower.pick(-7, 13);
    auto inner = fuzz::evaluate(*replacement, values);
    if (!inner) continue;
    Assignment outer = values;
    outer["a"] = std::get<int64_t>(*inner);
    auto expected = fuzz::evaluate(tree, outer);
    auto got = value_of(replaced, values);
    if (expected && !is_value(got, *expected, replaced)) {
      return e.str() + " with a = " + fuzz::to_string(*replacement) + " became " + replaced.str() + ": " + show(got) +
             ", expected " + show(expected) + " at" + show(values);
    }
  }
  return std::nullopt;
}

// Ranges of the four symbols, and a value inside them of at least `smallest`.
std::vector<Range> random_ranges(fuzz::Grower& grower) {
  std::vector<Range> ranges = {{0, Range::kInfinity}, {1, Range::kInfinity}};
  int64_t low = grower.pick(0, 4);
  ranges.push_back({low, low + grower.pick(0, 12)});
  low = grower.pick(-5, 2);
  ranges.push_back({low, low + grower.pick(0, 9)});
  return ranges;
}

Assignment random_values(fuzz::Grower& grower, const std::vector<Range>& ranges, bool at_least_two) {
  Assignment values;
  for (size_t i = 0; i < ranges.size(); ++i) {
    Range range = ranges[i];
    range.max = std::min<int64_t>(range.max, 30);
    if (at_least_two && range.min >= 0 && range.max >= 2) range.min = std::max<int64_t>(range.min, 2);
    values[kSymbols[i]] = grower.pick(range.min, range.max);
  }
  return values;
}

std::optional<std::string> check_ranges(const Tree& tree, std::mt19937_64& random) {
  fuzz::Grower grower(random, kSymbols);
  std::vector<Range> ranges = random_ranges(grower);
  ShapeEnv env;
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i) {
    env.add_symbol({.name = kSymbols[i], .range = ranges[i]});
    text += " " + kSymbols[i] + " in " + ranges[i].str();
  }
  Expr e = fuzz::build(tree);
  Expr simplified = env.simplify(e);
  if (env.simplify(simplified) != simplified) {
    return "simplify is not stable: " + simplified.str() + " became " + env.simplify(simplified).str() + text;
  }
  std::optional<Range> bounds;
  if (e.type() == Type::Integer) bounds = env.bounds(e);
  std::optional<bool> oblivious;
  if (e.type() == Type::Boolean) oblivious = env.decide_size_oblivious(e);
  for (int i = 0; i < 12; ++i) {
    Assignment values = random_values(grower, ranges, false);
    if (auto wrong = compare_values(tree, simplified, values)) return "simplified " + *wrong + text;
    auto expected = fuzz::evaluate(tree, values);
    if (bounds && expected && !bounds->contains(std::get<int64_t>(*expected))) {
      return e.str() + " is " + show(expected) + ", outside " + bounds->str() + " at" + show(values) + text;
    }
    values = random_values(grower, ranges, true);
    expected = fuzz::evaluate(tree, values);
    if (oblivious && expected && *expected != Number(*oblivious)) {
      return e.str() + " was decided " + show(Number(*oblivious)) + " for sizes of at least 2, but is " +
             show(expected) + " at" + show(values) + text;
    }
  }
  return std::nullopt;
}

bool has_equality(const Tree& tree) {
  if (tree.op == fuzz::Op::Equal || tree.op == fuzz::Op::NotEqual) return true;
  return std::ranges::any_of(tree.children, [](const auto& child) { return has_equality(*child); });
}

// Whether values fit everything that `env` recorded.
bool satisfies_records(const ShapeEnv& env, const Assignment& values) {
  for (const auto& [name, value] : values) {
    if (!env.info(name).range.contains(value)) return false;
  }
  for (const RuntimeAssert& record : env.runtime_asserts()) {
    if (value_of(record.condition, values) != Number(true)) return false;
  }
  return std::ranges::all_of(env.equalities(), [&](const Equality& record) {
    return value_of(record.by, values) == Number(values.at(record.symbol));
  });
}

std::optional<std::string> check_guard(const Tree& tree, std::mt19937_64& random) {
  if (tree.type != Type::Boolean) return std::nullopt;
  fuzz::Grower grower(random, kSymbols);
  ShapeEnv env;
  std::vector<Range> ranges;
  Assignment hints;
  for (const std::string& name : kSymbols) {
    ranges.push_back({grower.pick(0, 2), grower.pick(0, 1) == 0 ? Range::kInfinity : 30});
    hints[name] = grower.pick(2, 9);
    env.add_symbol({.name = name, .range = ranges.back(), .hint = hints[name]});
  }
  auto expected = fuzz::evaluate(tree, hints);
  if (!expected) return std::nullopt;
  Expr e = fuzz::build(tree);
  bool answer = env.guard(e);
  if (Number(answer) != *expected) return e.str() + " was answered " + show(Number(answer)) + " at" + show(hints);
  if (!satisfies_records(env, hints)) return e.str() + ": a record does not hold at the hints" + show(hints);
  if (env.guard(e) != answer) return e.str() + " was answered differently when asked again";
  if (has_equality(tree)) return std::nullopt;
  for (int i = 0; i < 20; ++i) {
    Assignment values = random_values(grower, ranges, true);
    auto value = fuzz::evaluate(tree, values);
    if (value && satisfies_records(env, values) && *value != Number(answer)) {
      return e.str() + " was answered " + show(Number(answer)) + " at" + show(hints) +
             ", all that was recorded holds at" + show(values) + ", where it is " + show(value);
    }
  }
  return std::nullopt;
}

TEST_CASE("fuzz: canonical forms have the value of what was written") { check_property(1, 20000, check_canonical); }
TEST_CASE("fuzz: substitution") { check_property(100001, 8000, check_substitution); }
TEST_CASE("fuzz: simplification, bounds and decisions inside ranges") { check_property(200001, 8000, check_ranges); }
TEST_CASE("fuzz: guards answer as the hints do and record what that needs") {
  check_property(300001, 8000, check_guard);
}

TEST_CASE("fuzz: numbers near the ends of int64 overflow into errors, or into no answer") {
  const uint64_t first = setting("TRANSPORTERS_FUZZ_SEED", 400001);
  const uint64_t count = setting("TRANSPORTERS_FUZZ_COUNT", 8000);
  size_t built = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 random(seed);
    fuzz::Grower grower(random, kSymbols, true);
    std::vector<Range> ranges = random_ranges(grower);
    ShapeEnv env;
    for (size_t i = 0; i < ranges.size(); ++i) env.add_symbol({.name = kSymbols[i], .range = ranges[i]});
    auto tree = grower.grow(seed % 2 == 0 ? Type::Integer : Type::Boolean, 3);
    std::optional<Expr> e;
    try {
      e = fuzz::build(*tree);
    } catch (const OverflowError&) {
      continue;
    }
    ++built;
    CAPTURE(seed);
    CAPTURE(fuzz::to_string(*tree));
    CHECK_NOTHROW(env.simplify(*e));
    if (e->type() == Type::Integer) CHECK_NOTHROW(env.bounds(*e));
    if (e->type() == Type::Boolean) CHECK_NOTHROW(env.decide_size_oblivious(*e));
    CHECK_NOTHROW(Expr::parse(e->str()));
    value_of(*e, random_values(grower, ranges, false));
  }
  CHECK(built > count / 3);
}

TEST_CASE("fuzz: a wrong rule is found and shrunk") {
  auto wrong_for_mod = [](const Tree& tree, std::mt19937_64&) -> std::optional<std::string> {
    return fuzz::to_string(tree).find("Mod") != std::string::npos ? std::optional<std::string>("") : std::nullopt;
  };
  std::mt19937_64 random(7);
  fuzz::Grower grower(random, kSymbols);
  fuzz::TreePtr tree;
  do {
    tree = grower.grow(Type::Integer, 5);
  } while (!wrong_for_mod(*tree, random));
  auto smallest = fuzz::shrink(tree, [&](const Tree& t) { return wrong_for_mod(t, random).has_value(); });
  CHECK(smallest->op == fuzz::Op::Mod);
  CHECK(fuzz::size(*smallest) == 3);
}

}  // namespace
}  // namespace transporters::symbolic
