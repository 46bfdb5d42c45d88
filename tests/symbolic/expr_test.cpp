// Expressions: text, order, substitution, evaluation.
#include "transporters/symbolic/expr.h"

#include <doctest/doctest.h>

#include <limits>

#include "transporters/error.h"

namespace transporters::symbolic {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::string canonical(std::string_view text) { return Expr::parse(text).str(); }

std::string parse_error(std::string_view text) {
  try {
    Expr::parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("equal sizes written differently compare equal") {
  Expr batch = Expr::symbol("batch");
  CHECK(batch * 2 + batch == 3 * batch);
  CHECK((batch * 2 + batch).hash() == (3 * batch).hash());
  CHECK(batch - batch == Expr(0));
  CHECK_FALSE(batch == Expr::symbol("Batch"));
  CHECK(Expr() == Expr(0));
  CHECK(Expr(5000).node() != Expr(5000).node());
  CHECK(Expr(5000) == Expr(5000));
}

TEST_CASE("types and constants") {
  CHECK(Expr(3).as_integer() == 3);
  CHECK(Expr(3).is(3));
  CHECK_FALSE(Expr(3).as_real());
  CHECK(Expr::real(0.5).as_real() == 0.5);
  CHECK(Expr::boolean(true).as_boolean() == true);
  CHECK(Expr::symbol("s").type() == Type::Integer);
  CHECK(Expr::symbol("s").name() == "s");
  CHECK(Expr(1).name().empty());
  CHECK(true_div(Expr::symbol("s"), 2).type() == Type::Real);
}

TEST_CASE("names of symbols are identifiers") {
  CHECK_THROWS_WITH_AS(Expr::symbol("batch size"), doctest::Contains("'batch size' cannot name a symbolic size"),
                       Error);
  CHECK_THROWS_AS(Expr::symbol(""), Error);
  CHECK_THROWS_AS(Expr::symbol("2x"), Error);
  CHECK_THROWS_AS(Expr::symbol("True"), Error);
  CHECK(Expr::symbol("länge_2").str() == "länge_2");
}

TEST_CASE("text") {
  CHECK(canonical("1 + batch*2") == "2*batch + 1");
  CHECK(canonical("batch - 3") == "batch - 3");
  CHECK(canonical("3 - batch") == "-batch + 3");
  CHECK(canonical("-2*a*b") == "-2*a*b");
  CHECK(canonical("a*a*b") == "a**2*b");
  CHECK(canonical("sequence // 2") == "FloorDiv(sequence, 2)");
  CHECK(canonical("sequence % 2") == "Mod(sequence, 2)");
  CHECK(canonical("a < 5") == "a <= 4");
  CHECK(canonical("a > 1") == "2 <= a");
  CHECK(canonical("a == b and not a >= c") == "And(Eq(a, b), a + 1 <= c)");
  CHECK(canonical("a / 2") == "IntTrueDiv(a, 2)");
  CHECK(canonical("ToFloat(a) * 0.3 - 1e-07") == "-1e-07 + 0.3*ToFloat(a)");
  CHECK(canonical("2**62 + a") == "a + 4611686018427387904");
  CHECK(Expr(kMin).str() == "-9223372036854775808");
  CHECK(Expr::parse("-9223372036854775808") == Expr(kMin));
  CHECK(canonical("a + -9223372036854775808") == "a + -9223372036854775808");
  CHECK(canonical("-2**2") == "-4");
  CHECK(canonical("True") == "True");
}

TEST_CASE("text reads back") {
  for (std::string_view text :
       {"2*batch + 1", "FloorDiv(a + 1, 2)*b", "Max(a, b, 4)", "Min(a, FloorDiv(b, 3))", "Mod(a, b)", "a**3 - 2*a*b**2",
        "PowByNatural(2, a)", "Eq(a, b + 1)", "Ne(a*b, 3)", "Or(And(a <= b, 2 <= c), Eq(c, 5))", "Where(a <= b, c, 4)",
        "FloorToInt(0.3*ToFloat(a))", "CeilToInt(sqrt(ToFloat(a)))", "TruncToInt(IntTrueDiv(a, b))",
        "RoundToInt(FloatTrueDiv(0.5, ToFloat(a)))", "FloatPow(ToFloat(a), 0.5) < ToFloat(b)",
        "(-0.5 + ToFloat(a))*(0.25 + ToFloat(b))", "inf + ToFloat(a)", "Eq(a <= b, c <= d)"}) {
    CAPTURE(text);
    Expr e = Expr::parse(text);
    CHECK(Expr::parse(e.str()) == e);
    CHECK(Expr::parse(e.str()).str() == e.str());
  }
}

TEST_CASE("torch's spellings are read") {
  CHECK(canonical("CeilDiv(a, 2)") == "FloorDiv(a + 1, 2)");
  CHECK(canonical("PythonMod(a, 2)") == "Mod(a, 2)");
  CHECK(canonical("OpaqueUnaryFn_sqrt(ToFloat(a))") == "sqrt(ToFloat(a))");
  CHECK(canonical("(a <= 4) & (2 <= a) | ~(b <= 1)") == "Or(2 <= b, And(2 <= a, a <= 4))");
}

TEST_CASE("errors of the parser name the column") {
  CHECK(parse_error("a + * b") ==
        "cannot read the expression \"a + * b\": column 5: expected a number, a name or '(', got '*'");
  CHECK(parse_error("") == "cannot read the expression \"\": column 1: expected a number, a name or '(', got the end");
  CHECK(parse_error("Foo(a)") ==
        "cannot read the expression \"Foo(a)\": column 1: expected a function of symbolic expressions, 'Foo' is none, "
        "got 'F'");
  CHECK(parse_error("Max(a").find("column 6: expected ')', got the end") != std::string::npos);
  CHECK(parse_error("Mod(a)").find("expected 2 arguments of Mod (1 given)") != std::string::npos);
  CHECK(parse_error("99999999999999999999").find("column 1: expected an integer that fits 64 bits") !=
        std::string::npos);
  CHECK(parse_error("a <= b + True").find("column 8: addition expects numbers, got a boolean: True") !=
        std::string::npos);
  CHECK(parse_error("a b").find("column 3: expected an operator or the end, got 'b'") != std::string::npos);
  CHECK(parse_error(std::string(100000, '(')).find("levels of nesting") != std::string::npos);
}

TEST_CASE("symbols inside") {
  Expr e = Expr::parse("b*FloorDiv(a, c) + Max(a, 2)");
  CHECK(e.symbols() == std::vector<std::string>{"a", "b", "c"});
  CHECK(e.contains("c"));
  CHECK_FALSE(e.contains("d"));
}

TEST_CASE("substitution makes the result canonical again") {
  Expr e = Expr::parse("2*a + FloorDiv(b, 4) + c");
  CHECK(e.substitute({{"b", Expr::parse("8*a")}}) == Expr::parse("4*a + c"));
  CHECK(e.substitute({{"a", 1}, {"b", 9}, {"c", -4}}).is(0));
  CHECK(e.substitute({{"z", 1}}).node() == e.node());
  // All at once, not one after the other.
  CHECK(Expr::parse("a + 2*b").substitute({{"a", Expr::symbol("b")}, {"b", Expr::symbol("a")}}) ==
        Expr::parse("b + 2*a"));
}

TEST_CASE("evaluation") {
  auto at = [](std::string_view text, int64_t a) -> std::optional<Number> {
    return Expr::parse(text).evaluate(
        [&](std::string_view name) { return name == "a" ? std::optional(a) : std::nullopt; });
  };
  CHECK(at("FloorDiv(a, 2)", -3) == Number(int64_t{-2}));
  CHECK(at("Mod(a, 2)", -3) == Number(int64_t{1}));
  CHECK(at("a / 2", 3) == Number(1.5));
  CHECK(at("a <= 3", 3) == Number(true));
  CHECK(at("RoundToInt(a / 2)", 5) == Number(int64_t{2}));
  CHECK(at("RoundToInt(a / 2)", 7) == Number(int64_t{4}));
  CHECK(at("FloorDiv(4, a)", 0) == std::nullopt);
  CHECK(at("a + b", 0) == std::nullopt);
  CHECK(at("a*a", kMax) == std::nullopt);
  CHECK(at("Where(a <= 0, 1, FloorDiv(4, a))", 0) == Number(int64_t{1}));
  CHECK(at("Or(a <= 0, Eq(b, 1))", 0) == Number(true));
}

TEST_CASE("the order is total and does not depend on addresses") {
  std::vector<Expr> sorted = {-1,
                              3,
                              Expr::real(-2.0),
                              Expr::real(1.0),
                              Expr::boolean(false),
                              Expr::symbol("a"),
                              Expr::symbol("b"),
                              Expr::parse("a + 1"),
                              Expr::parse("2*a"),
                              Expr::parse("a*b"),
                              Expr::parse("Min(a, b)"),
                              Expr::parse("FloorDiv(a, 2)")};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      int order = Expr::compare(sorted[i], Expr::parse(sorted[j].str()));
      CHECK((order < 0) == (i < j));
      CHECK((order == 0) == (i == j));
    }
  }
}

TEST_CASE("sizes that overflow are an error, comparisons near the ends are not") {
  CHECK_THROWS_WITH_AS(Expr(kMax) + 1, doctest::Contains("overflows int64"), Error);
  CHECK_THROWS_AS(Expr(kMin) * -1, Error);
  CHECK_THROWS_AS(Expr::symbol("a") * kMax * 2, Error);
  CHECK_THROWS_AS(floor_div(kMin, -1), Error);
  CHECK(less_equal(Expr::symbol("a"), kMax).str() == "a <= 9223372036854775807");
  CHECK(less_equal(kMin, Expr::symbol("a")).str() == "-9223372036854775808 <= a");
}

TEST_CASE("mixing booleans into arithmetic is a bug of the caller") {
  CHECK_THROWS_AS(Expr::boolean(true) + 1, InternalError);
  CHECK_THROWS_AS(logical_and(Expr(1), Expr(2)), InternalError);
  CHECK_THROWS_AS(floor_div(Expr::real(1.0), 2), InternalError);
}

}  // namespace
}  // namespace transporters::symbolic
