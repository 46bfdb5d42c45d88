// ShapeEnv: symbols, bounds, simplification inside ranges, decisions.
#include "transporters/symbolic/shape_env.h"

#include <doctest/doctest.h>

#include "transporters/error.h"

namespace transporters::symbolic {
namespace {

constexpr int64_t kUnbounded = Range::kInfinity;

struct Sizes {
  ShapeEnv env;
  Expr s = env.add_symbol({.name = "s", .range = {1, kUnbounded}, .hint = 7, .source = "x dim 0"});
  Expr t = env.add_symbol({.name = "t", .range = {0, kUnbounded}, .hint = 5, .source = "x dim 1"});
  Expr b = env.add_symbol({.name = "b", .range = {2, 16}, .hint = 4, .source = "x dim 2"});

  std::string simplify(std::string_view text) { return env.simplify(Expr::parse(text)).str(); }
  Range bounds(std::string_view text) { return env.bounds(Expr::parse(text)); }
  std::optional<bool> decide(std::string_view text) { return env.decide(Expr::parse(text)); }
  std::optional<bool> oblivious(std::string_view text) { return env.decide_size_oblivious(Expr::parse(text)); }
};

TEST_CASE("symbols: names, order, info") {
  ShapeEnv env;
  CHECK(env.add_symbol({.name = "batch", .hint = 4}).str() == "batch");
  CHECK(env.add_symbol({.name = "batch", .hint = 4}).str() == "batch_1");
  CHECK(env.add_unbacked({0, kUnbounded}, "nonzero").str() == "u0");
  CHECK(env.add_unbacked({0, kUnbounded}, "nonzero").str() == "u1");
  CHECK(env.add_unbacked({0, 4}, "item", "i").str() == "i0");
  CHECK(env.symbols() == std::vector<std::string>{"batch", "batch_1", "u0", "u1", "i0"});
  CHECK(env.info("i0").range == Range{0, 4});
  CHECK(env.info("i0").source == "item");
  CHECK_FALSE(env.info("u0").hint);
  CHECK(env.try_info("nope") == nullptr);
  CHECK_THROWS_WITH_AS(env.info("nope"), "no symbolic size is named 'nope'; known: batch, batch_1, u0, u1, i0", Error);
}

TEST_CASE("symbols: what add_symbol refuses") {
  ShapeEnv env;
  CHECK_THROWS_WITH_AS(env.add_symbol({.name = "a", .range = {4, 2}}),
                       "the range of 'a' is empty: min 4 is larger than max 2", Error);
  CHECK_THROWS_WITH_AS(env.add_symbol({.name = "a", .range = {2, 4}, .hint = 5}),
                       "the example size 5 of 'a' is outside its range [2, 4]", Error);
  CHECK_THROWS_AS(env.add_symbol({.name = "a", .range = {0, 4}, .hint = 1}), InternalError);
  CHECK_THROWS_AS(env.add_symbol({.name = "a b"}), Error);
  CHECK(env.symbols().empty());
  CHECK_NOTHROW(env.add_symbol({.name = "a", .range = {0, 1}, .hint = 1}));
}

TEST_CASE("bounds by kind") {
  Sizes z;
  CHECK(z.bounds("3*b + 1") == Range{7, 49});
  CHECK(z.bounds("-b") == Range{-16, -2});
  CHECK(z.bounds("s*b") == Range{2, kUnbounded});
  CHECK(z.bounds("FloorDiv(b, 3)") == Range{0, 5});
  CHECK(z.bounds("FloorDiv(s, b)") == Range{0, kUnbounded});
  CHECK(z.bounds("Mod(s, 8)") == Range{0, 7});
  CHECK(z.bounds("Mod(s, b)") == Range{0, 15});
  CHECK(z.bounds("Min(s, b)") == Range{1, 16});
  CHECK(z.bounds("Max(s, b)") == Range{2, kUnbounded});
  CHECK(z.bounds("b**2") == Range{4, 256});
  CHECK(z.bounds("PowByNatural(2, b)") == Range{4, 65536});
  CHECK(z.bounds("FloorToInt(0.3*ToFloat(b))") == Range{0, 4});
  CHECK(z.bounds("CeilToInt(sqrt(b))") == Range{2, 4});
  CHECK(z.bounds("Where(s <= 4, b, 20)") == Range{2, 20});
  CHECK(z.bounds("9223372036854775807*b") == Range{kUnbounded, kUnbounded});
}

TEST_CASE("bounds of sums whose terms depend on each other") {
  Sizes z;
  CHECK(z.bounds("Max(s, t) - s").min == 0);
  CHECK(z.bounds("s - Min(s, t)").min == 0);
  CHECK(z.bounds("s - 2*FloorDiv(s, 2)") == Range{0, 1});
  CHECK(z.bounds("s - FloorDiv(s, 2)").min == 1);
  CHECK(z.bounds("s - Mod(s, 4)").min == 0);
  CHECK(z.bounds("s - b*FloorDiv(s, b)").min == 0);
  CHECK(z.bounds("s*b - s").min == 1);
  CHECK(z.bounds("s*t + s - 1").min == 0);
  CHECK(z.bounds("Where(s <= t, s, 0) - s").max == 0);
}

TEST_CASE("simplification inside ranges") {
  Sizes z;
  CHECK(z.simplify("Max(s, 1)") == "s");
  CHECK(z.simplify("Max(t, 1)") == "Max(1, t)");
  CHECK(z.simplify("Min(b, 16)") == "b");
  CHECK(z.simplify("Min(b, 20, s)") == "Min(b, s)");
  CHECK(z.simplify("Max(s + t, s)") == "s + t");
  CHECK(z.simplify("Mod(b, 17)") == "b");
  CHECK(z.simplify("Mod(b - 2, 15)") == "b - 2");
  CHECK(z.simplify("FloorDiv(b, 17)") == "0");
  CHECK(z.simplify("FloorDiv(b, b + s)") == "0");
  CHECK(z.simplify("Mod(b, b + s)") == "b");
  CHECK(z.simplify("FloorDiv(FloorDiv(t, b), s)") == "FloorDiv(t, b*s)");
  CHECK(z.simplify("TruncToInt(s / 2)") == "FloorDiv(s, 2)");
  CHECK(z.simplify("Eq(s*t, s*b)") == "Eq(b, t)");
  CHECK(z.simplify("Where(1 <= s, t, b)") == "t");
  CHECK(z.simplify("t*Max(s, 1)*FloorDiv(4*b, 4)") == "b*s*t");
  CHECK(z.simplify("FloorDiv(s*b*t, s*b)") == "t");
}

TEST_CASE("decide answers from the ranges only") {
  Sizes z;
  CHECK(z.decide("0 <= t") == true);
  CHECK(z.decide("1 <= t") == std::nullopt);
  CHECK(z.decide("b <= 16") == true);
  CHECK(z.decide("16 < b") == false);
  CHECK(z.decide("Eq(b, 1)") == false);
  CHECK(z.decide("Eq(s, 1)") == std::nullopt);
  CHECK(z.decide("Ne(s*b, 1)") == true);
  CHECK(z.decide("Eq(2*s, 2*t + 1)") == false);
  CHECK(z.decide("FloorDiv(s, 2)*2 <= s") == true);
  CHECK(z.decide("And(0 <= t, b <= 20)") == true);
  CHECK(z.decide("Or(Eq(s, 1), 17 <= b)") == std::nullopt);
  CHECK(z.decide("s <= s*b") == true);
  CHECK(z.decide("ToFloat(b) < 16.5") == true);
  CHECK(z.decide("sqrt(b) < ToFloat(b)*0.1") == std::nullopt);
  CHECK(z.decide("sqrt(b) < 1.0") == false);
  CHECK(z.env.runtime_asserts().empty());
}

TEST_CASE("size-oblivious decisions take sizes to be at least 2") {
  Sizes z;
  Expr u = z.env.add_unbacked({0, kUnbounded}, "nonzero");
  Expr i = z.env.add_unbacked({Range::kMinusInfinity, kUnbounded}, "item");
  Expr one = z.env.add_symbol({.name = "one", .range = {0, 1}});
  CHECK(z.oblivious("Eq(s, 1)") == false);
  CHECK(z.oblivious("Eq(t, 0)") == false);
  CHECK(z.oblivious("Eq(s*t, 0)") == false);
  CHECK(z.oblivious("Eq(u0, 1)") == false);
  CHECK(z.oblivious("Eq(u1, 1)") == std::nullopt);
  CHECK(z.oblivious("Eq(one, 1)") == std::nullopt);
  CHECK(z.oblivious("Eq(8*Max(1, t), 8*t)") == true);
  CHECK(z.oblivious("Eq(s, 2)") == std::nullopt);
  CHECK(z.oblivious("s <= 1") == false);
  CHECK(z.oblivious("Eq(s*t, s)") == false);
  // What the plain ranges decide stays as it is.
  CHECK(z.decide("Eq(s, 1)") == std::nullopt);
}

TEST_CASE("hints") {
  Sizes z;
  z.env.add_unbacked({0, kUnbounded}, "nonzero");
  CHECK(z.env.hint(Expr::parse("s*t + 1")) == 36);
  CHECK(z.env.hint(Expr::parse("s + u0")) == std::nullopt);
  CHECK(z.env.hint_number(Expr::parse("s / 2")) == Number(3.5));
  CHECK(z.env.hint_number(Expr::parse("s <= 2")) == Number(false));
}

}  // namespace
}  // namespace transporters::symbolic
