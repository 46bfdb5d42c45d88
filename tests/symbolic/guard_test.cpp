// ShapeEnv: what guards, expectations and specialisations answer and record.
#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {
namespace {

constexpr int64_t kUnbounded = Range::kInfinity;

struct Trace {
  ShapeEnv env;
  Expr s, t, batch, u;

  explicit Trace(ShapeEnv::Options options = {}) : env(options) {
    s = env.add_symbol({.name = "s", .range = {0, kUnbounded}, .hint = 7, .sample = 7, .source = "x dim 1"});
    t = env.add_symbol({.name = "t", .range = {0, kUnbounded}, .hint = 5, .sample = 1, .source = "y dim 1"});
    batch = env.add_symbol(
        {.name = "batch", .range = {1, 64}, .hint = 4, .sample = 4, .source = "x dim 0", .explicit_dim = true});
    u = env.add_unbacked({0, kUnbounded}, "aten::nonzero");
    env.set_location([] { return std::string("aten::view at model.layers.0"); });
  }

  bool guard(std::string_view text) { return env.guard(Expr::parse(text)); }
  std::string guard_error(std::string_view text) {
    try {
      env.guard(Expr::parse(text), "TensorShape.cpp:123");
    } catch (const GuardError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string simplify(std::string_view text) { return env.simplify(Expr::parse(text)).str(); }
  std::vector<std::string> asserts() const {
    std::vector<std::string> texts;
    for (const RuntimeAssert& record : env.runtime_asserts()) texts.push_back(record.condition.str());
    return texts;
  }
  bool recorded_nothing() const {
    return env.runtime_asserts().empty() && env.equalities().empty() && env.specializations().empty() &&
           env.narrowings().empty();
  }
};

using Texts = std::vector<std::string>;

TEST_CASE("guard: what ranges or larger sizes decide is not recorded") {
  Trace z;
  CHECK(z.guard("0 <= s"));
  CHECK_FALSE(z.guard("Eq(s, 1)"));
  CHECK_FALSE(z.guard("Eq(batch, 1)"));
  CHECK(z.guard("Ne(s*t, 0)"));
  CHECK(z.guard("1 < s"));
  CHECK_FALSE(z.guard("Eq(u0, 0)"));
  CHECK(z.recorded_nothing());
}

TEST_CASE("guard: an equality unifies, the younger symbol is replaced") {
  Trace z;
  Expr v = z.env.add_symbol({.name = "v", .range = {3, 100}, .hint = 7, .source = "z dim 0"});
  CHECK(z.env.guard(equal(v, z.s), "TensorShape.cpp:123"));
  REQUIRE(z.env.equalities().size() == 1);
  CHECK(z.env.equalities()[0].symbol == "v");
  CHECK(z.env.equalities()[0].by == z.s);
  CHECK(z.env.equalities()[0].where == "aten::view at model.layers.0 (TensorShape.cpp:123)");
  CHECK(z.simplify("v + 2*s") == "3*s");
  // Ranges are intersected.
  CHECK(z.env.info("s").range == Range{3, 100});
  CHECK(z.env.narrowings().size() == 1);
  CHECK(z.asserts().empty());
  // Asked again it is known.
  CHECK(z.guard("Eq(v, s)"));
  CHECK(z.env.equalities().size() == 1);
}

TEST_CASE("guard: an equality is solved for a symbol that occurs once") {
  Trace z;
  z.env.add_symbol({.name = "total", .hint = 12, .source = "mask dim 1"});
  CHECK(z.guard("Eq(total, s + t)"));
  CHECK(z.simplify("total - s") == "t");
  z.env.add_symbol({.name = "flat", .hint = 70, .source = "z dim 0"});
  CHECK(z.guard("Eq(3*flat, 6*s*t)"));
  CHECK(z.simplify("FloorDiv(flat, s)") == "2*t");
  // Replacements are transitive.
  z.env.add_symbol({.name = "w", .hint = 7, .source = "w dim 0"});
  CHECK(z.guard("Eq(w, s)"));
  z.env.add_symbol({.name = "r", .hint = 12, .source = "r dim 0"});
  CHECK(z.guard("Eq(r, total)"));
  CHECK(z.simplify("r + w") == "2*s + t");
}

TEST_CASE("guard: an equality that cannot be solved is a runtime assert, and known from then on") {
  Trace z;
  z.env.add_symbol({.name = "v", .hint = 8, .source = "z dim 0"});
  CHECK(z.guard("Eq(Mod(v, 4), 0)"));
  CHECK(z.asserts() == Texts{"Eq(Mod(v, 4), 0)"});
  CHECK(z.env.runtime_asserts()[0].where == "aten::view at model.layers.0");
  CHECK(z.simplify("Mod(v, 4)") == "0");
  CHECK(z.simplify("4*FloorDiv(v, 4)*s") == "s*v");
  CHECK(z.simplify("Mod(v, 2)") == "0");
  CHECK_FALSE(z.guard("Ne(Mod(v, 4), 0)"));
  CHECK(z.asserts().size() == 1);
}

TEST_CASE("guard: an equality that fails is asserted to fail, but not against 0 and 1") {
  Trace z;
  CHECK_FALSE(z.guard("Eq(s, t)"));
  CHECK(z.asserts() == Texts{"Ne(s, t)"});
  CHECK_FALSE(z.guard("Eq(FloorDiv(s, 2), 1)"));
  CHECK_FALSE(z.guard("Eq(s - 3, 0)"));
  CHECK(z.asserts() == Texts{"Ne(s, t)", "Ne(s, 3)"});
  CHECK(z.guard("Ne(Mod(s, 4), 0)"));
  CHECK(z.asserts().back() == "Ne(Mod(s, 4), 0)");
}

TEST_CASE("guard: an equality with a number specialises, but never to 0 or 1") {
  Trace z;
  CHECK(z.guard("Eq(s, 7)"));
  REQUIRE(z.env.specializations().size() == 1);
  CHECK(z.env.specializations()[0].symbol == "s");
  CHECK(z.env.specializations()[0].value == 7);
  CHECK(z.env.specializations()[0].where == "aten::view at model.layers.0");
  CHECK(z.simplify("s + 1") == "8");

  z.env.add_symbol({.name = "flag", .range = {0, 1}, .hint = 1, .source = "f dim 0"});
  CHECK(z.guard("Eq(flag, 1)"));
  CHECK(z.env.specializations().size() == 1);
  CHECK(z.asserts() == Texts{"Eq(flag, 1)"});
}

TEST_CASE("guard: inequalities narrow the range of a symbol") {
  Trace z;
  CHECK(z.guard("3 <= s"));
  CHECK_FALSE(z.guard("s > 512"));
  CHECK(z.env.info("s").range == Range{3, 512});
  CHECK(z.guard("FloorDiv(t, 2) <= 4"));
  CHECK(z.env.info("t").range == Range{0, 9});
  CHECK(z.asserts().empty());
  REQUIRE(z.env.narrowings().size() == 3);
  CHECK(z.env.narrowings()[0].symbol == "s");
  CHECK(z.env.narrowings()[0].range == Range{3, kUnbounded});
  // A range of one value is a specialisation.
  CHECK(z.guard("s <= 7"));
  CHECK(z.guard("7 <= s"));
  REQUIRE(z.env.specializations().size() == 1);
  CHECK(z.env.specializations()[0].value == 7);
}

TEST_CASE("guard: other conditions become runtime asserts of what the hints made true") {
  Trace z;
  CHECK_FALSE(z.guard("s <= t"));
  CHECK(z.asserts() == Texts{"t + 1 <= s"});
  // What follows from it is known.
  CHECK(z.guard("t <= s"));
  CHECK(z.guard("t < s + 4"));
  CHECK(z.simplify("Max(s, t)") == "s");
  CHECK(z.guard("t <= s + batch"));
  CHECK(z.asserts().size() == 1);
  CHECK(z.guard("sqrt(s) < 3.5"));
  CHECK(z.asserts().size() == 2);
}

TEST_CASE("guard: only the operand that settles a conjunction is recorded") {
  Trace z;
  CHECK_FALSE(z.guard("And(3 <= s, Eq(s, t))"));
  CHECK(z.asserts() == Texts{"Ne(s, t)"});
  CHECK(z.env.narrowings().empty());
  CHECK(z.guard("Or(Eq(s, 3), 3 <= t)"));
  CHECK(z.env.info("t").range.min == 3);
  CHECK(z.asserts().size() == 1);
  CHECK_FALSE(z.guard("Or(s <= 4, Eq(s, 40))"));
  CHECK(z.env.info("s").range.min == 5);
  CHECK(z.asserts().back() == "Ne(s, 40)");
}

TEST_CASE("guard: an explicit Dim is neither narrowed nor fixed") {
  Trace z;
  CHECK(z.guard_error("batch <= 32") ==
        "Dim 'batch' (x dim 0, range [1, 64]) loses values: the code branches on `batch <= 32`, at aten::view at "
        "model.layers.0 (TensorShape.cpp:123), and the traced branch needs `batch <= 32`. Narrow Dim(\"batch\") or set "
        "prefer_deferred_runtime_asserts_over_guards");
  CHECK(z.guard_error("batch > 32").find("needs `batch <= 32`") != std::string::npos);
  CHECK(
      z.guard_error("Eq(batch, 4)") ==
      "Dim 'batch' (x dim 0, range [1, 64]) loses values: the code takes `Eq(batch, 4)` for granted, at aten::view at "
      "model.layers.0 (TensorShape.cpp:123). Give equal axes one Dim (a fixed size no Dim), narrow Dim(\"batch\") to "
      "what the code allows, or set prefer_deferred_runtime_asserts_over_guards");
  CHECK(z.recorded_nothing());

  Trace deferred({.prefer_deferred_runtime_asserts_over_guards = true});
  CHECK(deferred.guard("batch <= 32"));
  CHECK(deferred.guard("Eq(batch, 4)"));
  CHECK(deferred.asserts() == Texts{"batch <= 32", "Eq(batch, 4)"});
  CHECK(deferred.env.info("batch").range == Range{1, 64});
}

TEST_CASE("guard: an explicit Dim unifies where it loses nothing") {
  Trace z;
  z.env.add_symbol({.name = "v", .hint = 4, .source = "z dim 0"});
  CHECK(z.guard("Eq(batch, v)"));
  CHECK(z.simplify("v") == "batch");
  CHECK(z.env.info("batch").range == Range{1, 64});

  z.env.add_symbol({.name = "same", .range = {1, 64}, .hint = 4, .source = "q dim 0", .explicit_dim = true});
  CHECK(z.guard("Eq(batch, same)"));
  CHECK(z.simplify("same") == "batch");

  z.env.add_symbol({.name = "small", .range = {1, 8}, .hint = 4, .source = "w dim 0", .explicit_dim = true});
  const std::string message = z.guard_error("Eq(batch, small)");
  CHECK(message.find("Dim 'batch' (x dim 0, range [1, 64]) loses values") == 0);
  CHECK(message.find("for granted, with Dim 'small' (w dim 0, range [1, 8])") != std::string::npos);
}

TEST_CASE("guard: a Dim that must be even loses values") {
  Trace z;
  z.env.add_symbol({.name = "half", .hint = 2, .source = "h dim 0"});
  CHECK(z.guard_error("Eq(batch, 2*half)").find("Dim 'batch'") == 0);
}

TEST_CASE("guard: data-dependent conditions") {
  Trace z;
  CHECK(z.guard_error("u0 <= 10") ==
        "data-dependent: the code branches on `u0 <= 10`, at aten::view at model.layers.0 (TensorShape.cpp:123), which "
        "the ranges do not decide; 'u0' (aten::nonzero, range [0, unbounded]) is computed by the model and has no "
        "example "
        "value. State what holds before that line (torch._check in Python, ShapeEnv::expect in C++): `u0 <= 10` or "
        "`11 <= u0`");
  CHECK(z.guard_error("Eq(Mod(u0, s), 2)").find("data-dependent") == 0);
  CHECK(z.guard_error("Eq(FloorDiv(4, s - 7), 2)").find("no value at the example sizes") != std::string::npos);
  CHECK(z.recorded_nothing());
}

TEST_CASE("expect: makes later questions decidable") {
  Trace z;
  z.env.expect(Expr::parse("u0 <= 10"), "at most ten boxes");
  CHECK(z.env.info("u0").range == Range{0, 10});
  REQUIRE(z.asserts() == Texts{"u0 <= 10"});
  CHECK(z.env.runtime_asserts()[0].message == "at most ten boxes");
  CHECK(z.guard("u0 <= 10"));
  CHECK_FALSE(z.guard("20 <= u0"));

  z.env.expect(Expr::parse("Eq(u0, s)"));
  CHECK(z.simplify("u0") == "s");
  CHECK(z.asserts().back() == "Eq(s, u0)");
  CHECK(z.env.info("s").range == Range{0, 10});

  z.env.add_unbacked({0, kUnbounded}, "aten::item");
  z.env.expect(Expr::parse("Ne(u1, 0)"));
  CHECK(z.env.info("u1").range.min == 1);
  z.env.expect(Expr::parse("And(u1 <= t, Eq(Mod(u1, 2), 0))"));
  CHECK(z.guard("u1 <= t"));
  CHECK(z.simplify("2*FloorDiv(u1, 2)") == "u1");
}

TEST_CASE("expect: sizes of the input are not told by what the graph computes") {
  Trace z;
  z.env.expect(Expr::parse("Eq(2*u0, FloorDiv(s, 3))"));
  CHECK(z.simplify("FloorDiv(s, 3)") == "FloorDiv(s, 3)");
  z.env.expect(Expr::parse("Eq(2*t, FloorDiv(s, 5))"));
  CHECK(z.simplify("FloorDiv(s, 5)") == "2*t");
}

TEST_CASE("expect: decided, false and contradicted expectations") {
  Trace z;
  z.env.expect(Expr::parse("0 <= s"));
  CHECK(z.recorded_nothing());
  CHECK_THROWS_WITH_AS(
      z.env.expect(Expr::parse("s < 0"), "size of x", "model.cpp:3"),
      "the expectation `s <= -1`, at aten::view at model.layers.0 (model.cpp:3) never holds: size of x", GuardError);
  // The example contradicts it: asserted, nothing else is changed.
  z.env.expect(Expr::parse("s <= 3"));
  CHECK(z.env.info("s").range == Range{0, kUnbounded});
  CHECK(z.asserts() == Texts{"s <= 3"});
  // A Dim keeps its range.
  z.env.expect(Expr::parse("batch <= 32"));
  CHECK(z.env.info("batch").range == Range{1, 64});
  CHECK(z.asserts().back() == "batch <= 32");
  CHECK(z.guard("batch <= 40"));
}

TEST_CASE("specialize") {
  Trace z;
  CHECK(z.env.specialize(Expr(3)) == 3);
  CHECK(z.recorded_nothing());
  CHECK(z.env.specialize(Expr::parse("2*s + 1"), "Loops.cpp:9") == 15);
  REQUIRE(z.env.specializations().size() == 1);
  CHECK(z.env.specializations()[0].where == "aten::view at model.layers.0 (Loops.cpp:9)");
  CHECK(z.env.hint(z.s) == 7);
  // The sample's size, where it differs from the hint.
  CHECK(z.env.specialize(z.t) == 1);
  CHECK(z.env.hint(z.t) == 1);
  CHECK_THROWS_WITH_AS(z.env.specialize(z.batch),
                       "Dim 'batch' (x dim 0, range [1, 64]) must be one number: the code needs `batch` as a plain "
                       "integer, at aten::view at model.layers.0. Leave the axis static, or change what asks for the "
                       "number",
                       GuardError);
  CHECK_THROWS_WITH_AS(z.env.specialize(z.u), doctest::Contains("data-dependent: the code needs `u0`"), GuardError);
}

TEST_CASE("a number of the graph is not told by a later one") {
  Trace z;
  const Expr later = z.env.add_unbacked({0, kUnbounded}, "aten::nonzero");
  z.env.expect(equal(z.u, later * 2));
  CHECK(z.env.equalities().empty());
  CHECK(z.asserts().size() == 1);
}

TEST_CASE("specialize takes the value of an expression for granted, not its symbols") {
  Trace z;
  // The chunks of 4 that 7 elements make: 5 to 8 elements make as many.
  CHECK(z.env.specialize(Expr::parse("FloorDiv(s + 3, 4)")) == 2);
  CHECK(z.env.specializations().empty());
  CHECK(z.asserts() == Texts{"Eq(FloorDiv(s + 3, 4), 2)"});
  CHECK(z.env.specialize(Expr::parse("FloorDiv(s + 3, 4)")) == 2);
  CHECK(z.asserts().size() == 1);
}

TEST_CASE("with an oracle, the data of the sample answers, and an assert remembers it") {
  Trace z;
  z.env.set_data_oracle([](const Expr& expr) {
    return expr.evaluate(
        [](std::string_view symbol) { return symbol == "u0" ? std::optional<int64_t>(3) : std::nullopt; });
  });
  CHECK(z.guard("u0 <= 10"));
  CHECK(z.asserts() == Texts{"u0 <= 10"});
  CHECK_FALSE(z.guard("20 <= u0"));
  CHECK(z.env.specialize(z.u) == 3);
  CHECK(z.asserts() == Texts{"u0 <= 10", "Eq(u0, 3)"});
  CHECK(z.env.data_answers().size() == 2);
  CHECK_THROWS_WITH_AS(z.env.guard(Expr::parse("u0 <= u9")), doctest::Contains("data-dependent"), GuardError);
}

TEST_CASE("specialize_to_sample fixes an axis of sample size 1") {
  Trace z;
  CHECK_FALSE(z.env.specialize_to_sample(z.s));
  CHECK(z.recorded_nothing());
  CHECK(z.env.specialize_to_sample(z.t));
  REQUIRE(z.env.specializations().size() == 1);
  CHECK(z.env.specializations()[0].value == 1);
  CHECK(z.simplify("t").compare("1") == 0);
  CHECK(z.env.specialize_to_sample(1));
  CHECK_FALSE(z.env.specialize_to_sample(2));
  CHECK_FALSE(z.env.specialize_to_sample(z.u));
  Expr dim = z.env.add_symbol({.name = "dim", .hint = 2, .sample = 1, .source = "y dim 2", .explicit_dim = true});
  CHECK_THROWS_WITH_AS(z.env.specialize_to_sample(dim),
                       doctest::Contains("`dim` is broadcast, as the example size 1 is"), GuardError);
}

TEST_CASE("specialize_to_sample takes only the value of an expression for granted") {
  Trace z;
  const Expr length = Expr::parse("Min(s, t + 6) - 6");  // of a slice
  CHECK(z.env.specialize_to_sample(length));
  CHECK(z.env.specializations().empty());
  CHECK(z.asserts().size() == 1);
  CHECK(z.simplify(length.str()).compare("1") == 0);
}

TEST_CASE("sizes that are equal in the sample are equal, also where one of 1 has another hint") {
  Trace z;
  // A cache of 7 tokens, a new one, and a mask of 8.
  z.env.add_symbol({.name = "m", .range = {0, 64}, .hint = 8, .sample = 8, .source = "mask dim 1"});
  CHECK(z.guard("Eq(s + t, m)"));
  REQUIRE(z.env.equalities().size() == 1);
  CHECK(z.env.specializations().empty());
  // Two axes of 1 say nothing about each other.
  z.env.add_symbol({.name = "w", .range = {0, 64}, .hint = 9, .sample = 1, .source = "w dim 0"});
  CHECK_FALSE(z.guard("Eq(t, w)"));
}

TEST_CASE("a specialisation that contradicts an earlier record is an error") {
  Trace z;
  z.env.expect(Expr::parse("Ne(t, 1)"));
  CHECK_THROWS_WITH_AS(z.env.specialize(z.t), "`t == 1` contradicts `Ne(t, 1)`, which was taken for granted before",
                       GuardError);
}

}  // namespace
}  // namespace transporters::symbolic
