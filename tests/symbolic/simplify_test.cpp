// Canonical forms, one test per kind of node. `from` is what is written, `to` what it becomes; both read back.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "transporters/error.h"
#include "transporters/symbolic/expr.h"

namespace transporters::symbolic {
namespace {

struct Rewrite {
  std::string from;
  std::string to;
};

void check(const std::vector<Rewrite>& rewrites) {
  for (const Rewrite& rewrite : rewrites) {
    CAPTURE(rewrite.from);
    CHECK(Expr::parse(rewrite.from).str() == rewrite.to);
    CHECK(Expr::parse(rewrite.to).str() == rewrite.to);
  }
}

TEST_CASE("sums") {
  check({
      {"a + 0", "a"},
      {"2 + a + 3", "a + 5"},
      {"b + a", "a + b"},
      {"a + b - a", "b"},
      {"2*a + 3*a - 5*a", "0"},
      {"(a + b) + (c + a)", "2*a + b + c"},
      {"a*b + b*a", "2*a*b"},
      {"-(a - b)", "-a + b"},
      {"a - -3", "a + 3"},
      // Reals keep the order of operations.
      {"ToFloat(a) + 0.5 + 0.25", "0.25 + (0.5 + ToFloat(a))"},
      {"0.5 + 0.25", "0.75"},
      {"ToFloat(a) + 0.0", "ToFloat(a)"},
      {"a + 0.5", "0.5 + ToFloat(a)"},
  });
}

TEST_CASE("products") {
  check({
      {"a*1", "a"},
      {"a*0", "0"},
      {"2*a*3", "6*a"},
      {"b*a", "a*b"},
      {"a*b*a", "a**2*b"},
      {"2*(a + 3)", "2*a + 6"},
      {"(a + 1)*(a - 1)", "a**2 - 1"},
      {"(a + b)*(c + 2)", "2*a + 2*b + a*c + b*c"},
      {"-1*a", "-a"},
      {"FloorDiv(a, 2)*2", "2*FloorDiv(a, 2)"},
      {"ToFloat(a)*0.5*0.5", "0.5*(0.5*ToFloat(a))"},
      {"ToFloat(a)*1.0", "ToFloat(a)"},
      {"-(0.5*ToFloat(a))", "-0.5*ToFloat(a)"},
  });
}

TEST_CASE("products of long sums stay products, in one form") {
  Expr sum = 1;
  for (char c = 'a'; c <= 'i'; ++c) sum = sum + Expr::symbol(std::string(1, c));
  Expr square = sum * sum;
  CHECK(square.kind() == Kind::Pow);
  CHECK(square * 2 == (2 * sum) * sum);
  CHECK(square * 2 == (-sum) * (-2 * sum));
  Expr x = Expr::symbol("x");
  CHECK((x * sum) * sum == x * square);
  CHECK(floor_div(square * x, sum) == Expr::parse(floor_div(square * x, sum).str()));
  CHECK(Expr::parse((square * x).str()) == square * x);
}

TEST_CASE("powers") {
  check({
      {"a**0", "1"},
      {"a**1", "a"},
      {"2**10", "1024"},
      {"(2*a*b**2)**3", "8*a**3*b**6"},
      {"(a + 1)**2", "2*a + a**2 + 1"},
      {"1**a", "1"},
      {"2**a", "PowByNatural(2, a)"},
      {"2.0**3", "8.0"},
      {"ToFloat(a)**0.5", "FloatPow(ToFloat(a), 0.5)"},
  });
  CHECK_THROWS_WITH_AS(pow(Expr::symbol("a"), -1), doctest::Contains("a negative power of an integer size"), Error);
}

TEST_CASE("floor division by constants") {
  check({
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"a // 1", "a"},
      {"0 // a", "0"},
      {"(4*a) // 4", "a"},
      {"(4*a) // 2", "2*a"},
      {"(4*a + 8) // 4", "a + 2"},
      {"(4*a + b + 5) // 4", "a + FloorDiv(b + 1, 4) + 1"},
      {"(6*a) // 4", "FloorDiv(3*a, 2)"},
      {"(6*a + 3) // 4", "FloorDiv(3*a + 1, 2)"},
      {"(a // 2) // 3", "FloorDiv(a, 6)"},
      {"(a // 2 + 1) // 3", "FloorDiv(a + 2, 6)"},
      {"(a - 1) // 2", "FloorDiv(a + 1, 2) - 1"},
      {"-(-a // 2)", "FloorDiv(a + 1, 2)"},
      {"CeilDiv(a, 2)", "FloorDiv(a + 1, 2)"},
      {"a // -2", "-FloorDiv(a + 1, 2)"},
      {"(a // 4)*4", "4*FloorDiv(a, 4)"},
      // Two convolutions of stride 2 are one of stride 4.
      {"((a - 1) // 2 + 1 - 1) // 2 + 1", "FloorDiv(a + 3, 4)"},
      {"a // 0", "FloorDiv(a, 0)"},
  });
}

TEST_CASE("floor division by sizes") {
  check({
      {"a // a", "1"},
      {"(a*b) // a", "b"},
      {"(a*b*c) // (a*c)", "b"},
      {"(6*a*b) // (4*a)", "FloorDiv(3*b, 2)"},
      {"(a*b + c) // a", "b + FloorDiv(c, a)"},
      {"(a*b + a) // a", "b + 1"},
      {"(a**2*b) // a", "a*b"},
      {"(a*c + b*c) // (a + b)", "c"},
      {"(a*c + b*c + d) // (a + b)", "c + FloorDiv(d, a + b)"},
      {"(a**2 - b**2) // (a + b)", "a - b"},
      {"a // (a + b)", "FloorDiv(a, a + b)"},
      {"a // -b", "FloorDiv(-a, b)"},
      {"(a // b) // 3", "FloorDiv(a, 3*b)"},
  });
}

TEST_CASE("modulo") {
  check({
      {"7 % 3", "1"},
      {"-7 % 3", "2"},
      {"7 % -3", "-2"},
      {"a % 1", "0"},
      {"(4*a) % 4", "0"},
      {"(4*a + b + 5) % 4", "Mod(b + 1, 4)"},
      {"(5*a) % 4", "Mod(a, 4)"},
      {"-a % 4", "Mod(3*a, 4)"},
      {"(2*a) % 4", "2*Mod(a, 2)"},
      {"(2*a + 1) % 4", "2*Mod(a, 2) + 1"},
      {"(a % 8) % 4", "Mod(a, 4)"},
      {"(a % 4) % 8", "Mod(a, 4)"},
      {"(a % 4 + b) % 2", "Mod(a + b, 2)"},
      {"a % -4", "-Mod(3*a, 4)"},
      {"a % a", "0"},
      {"(a*b) % a", "0"},
      {"(a*b + c) % a", "Mod(c, a)"},
      {"(a*b) % (a*c)", "a*Mod(b, c)"},
      {"a % 0", "Mod(a, 0)"},
  });
}

TEST_CASE("minimum and maximum") {
  check({
      {"Max(2, 3)", "3"},
      {"Min(2, 3)", "2"},
      {"Max(a, a)", "a"},
      {"Max(b, a)", "Max(a, b)"},
      {"Max(a, Max(b, 1), 3)", "Max(3, a, b)"},
      {"Max(a, a + 2)", "a + 2"},
      {"Min(a, a + 2, b)", "Min(a, b)"},
      {"Max(2*a, 4*b)", "2*Max(a, 2*b)"},
      {"Max(a + 1, b + 3)", "Max(a, b + 2) + 1"},
      {"Max(-a, -b)", "-Min(a, b)"},
      {"Max(0, a - 1)", "Max(0, a - 1)"},
      {"Max(2*Max(a, b), 2*c)", "2*Max(a, b, c)"},
      {"Min(a, Max(a, b))", "a"},
      {"Max(ToFloat(a), 0.5, 1.5)", "Max(1.5, ToFloat(a))"},
      {"Max(a, 0.5)", "Max(0.5, ToFloat(a))"},
  });
}

TEST_CASE("comparisons of integers") {
  check({
      {"2 < 3", "True"},
      {"Eq(a, a)", "True"},
      {"Eq(a, a + 1)", "False"},
      {"a + 1 < b + 1", "a + 1 <= b"},
      {"2*a <= 4*b", "a <= 2*b"},
      {"2*a <= 5", "a <= 2"},
      {"5 <= 2*a", "3 <= a"},
      {"-a <= 3", "-3 <= a"},
      {"a - b <= 0", "a <= b"},
      {"Eq(a + b, b + 3)", "Eq(a, 3)"},
      {"Eq(2*a, 6*b)", "Eq(a, 3*b)"},
      {"Eq(2*a, 4*b + 1)", "False"},
      {"Ne(2*a, 4*b + 1)", "True"},
      {"Eq(b, a)", "Eq(a, b)"},
      {"Eq(3, a)", "Eq(a, 3)"},
      {"a // 4 <= 2", "a <= 11"},
      {"3 <= a // 4", "12 <= a"},
      {"a > b", "b + 1 <= a"},
      {"a >= 2", "2 <= a"},
  });
}

TEST_CASE("comparisons of reals and booleans") {
  check({
      {"0.5 < 0.75", "True"},
      {"ToFloat(a) < 2.5", "a <= 2"},
      {"ToFloat(a) <= 2.0", "a <= 2"},
      {"2.5 < ToFloat(a)", "3 <= a"},
      {"Eq(ToFloat(a), 2.5)", "False"},
      {"Eq(ToFloat(a), 2.0)", "Eq(a, 2)"},
      {"sqrt(a) < 2.5", "sqrt(ToFloat(a)) < 2.5"},
      {"Eq(a <= 2, True)", "a <= 2"},
      {"Eq(a <= 2, False)", "3 <= a"},
      {"Eq(a <= 2, a <= 2)", "True"},
      {"Eq(a <= 2, 3 <= a)", "False"},
  });
}

TEST_CASE("and, or, not") {
  check({
      {"a <= 2 and True", "a <= 2"},
      {"a <= 2 and False", "False"},
      {"a <= 2 or True", "True"},
      {"a <= 2 and a <= 2", "a <= 2"},
      {"b <= 2 and (a <= 2 and c <= 2)", "And(a <= 2, b <= 2, c <= 2)"},
      {"a <= 2 and 3 <= a", "False"},
      {"a <= 2 or 3 <= a", "True"},
      {"not a <= 2", "3 <= a"},
      {"not not a <= 2", "a <= 2"},
      {"not Eq(a, 2)", "Ne(a, 2)"},
      {"not (a <= 2 and Eq(b, 1))", "Or(Ne(b, 1), 3 <= a)"},
      {"not sqrt(a) < 2.5", "2.5 <= sqrt(ToFloat(a))"},
      {"not Where(a <= 2, Eq(b, 1), Eq(c, 1))", "Where(3 <= a, Ne(c, 1), Ne(b, 1))"},
  });
}

TEST_CASE("select") {
  check({
      {"Where(True, a, b)", "a"},
      {"Where(False, a, b)", "b"},
      {"Where(a <= 2, b, b)", "b"},
      {"Where(a <= 2, True, False)", "a <= 2"},
      {"Where(a <= 2, False, True)", "3 <= a"},
      {"Where(a <= b, a, b)", "Min(a, b)"},
      {"Where(a < b, a, b)", "Min(a, b)"},
      {"Where(a >= b, a, b)", "Max(a, b)"},
      {"Where(Ne(a, 2), b, c)", "Where(Eq(a, 2), c, b)"},
      {"Where(Eq(a, 2), b, 0.5)", "Where(Eq(a, 2), ToFloat(b), 0.5)"},
  });
}

TEST_CASE("true division, conversion, square root") {
  check({
      {"3 / 2", "1.5"},
      {"a / 1", "ToFloat(a)"},
      {"(2*a) / 4", "IntTrueDiv(a, 2)"},
      {"(a*b) / a", "ToFloat(b)"},
      {"a / a", "1.0"},
      {"a / -2", "IntTrueDiv(-a, 2)"},
      {"ToFloat(a) / ToFloat(b)", "IntTrueDiv(a, b)"},
      {"ToFloat(a) / 2.0", "IntTrueDiv(a, 2)"},
      {"ToFloat(a) / 0.5", "FloatTrueDiv(ToFloat(a), 0.5)"},
      {"sqrt(4.0)", "2.0"},
      {"sqrt(a)", "sqrt(ToFloat(a))"},
      {"ToFloat(3)", "3.0"},
  });
}

TEST_CASE("rounding") {
  check({
      {"FloorToInt(2.5)", "2"},
      {"CeilToInt(2.5)", "3"},
      {"TruncToInt(-2.5)", "-2"},
      {"RoundToInt(2.5)", "2"},
      {"RoundToInt(3.5)", "4"},
      {"FloorToInt(a)", "a"},
      {"FloorToInt(ToFloat(a))", "a"},
      {"RoundToInt(ToFloat(a))", "a"},
      {"FloorToInt(a / 2)", "FloorDiv(a, 2)"},
      {"CeilToInt(a / 2)", "FloorDiv(a + 1, 2)"},
      {"FloorToInt(a / b)", "FloorDiv(a, b)"},
      {"TruncToInt(a / 2)", "TruncToInt(IntTrueDiv(a, 2))"},
      {"FloorToInt(ToFloat(a)*2.0)", "2*a"},
      {"FloorToInt(ToFloat(a)*0.75)", "FloorDiv(3*a, 4)"},
      {"FloorToInt(ToFloat(a)*0.3)", "FloorToInt(0.3*ToFloat(a))"},
      {"FloorToInt(inf)", "FloorToInt(inf)"},
  });
}

}  // namespace

TEST_CASE("rounding an integer plus a fraction rounds the fraction") {
  CHECK(ceil(to_real(Expr::symbol("s")) + Expr::real(-0.5)).str() == "s");
  CHECK(ceil(to_real(Expr::symbol("s")) + Expr::real(0.5)).str() == "s + 1");
  CHECK(floor(to_real(Expr::symbol("s")) + Expr::real(-0.5)).str() == "s - 1");
}

}  // namespace transporters::symbolic
