// Symbolic sizes as c10::SymInt, SymFloat and SymBool.
#include "transporters/symbolic/sym_node.h"

#include <c10/core/ConstantSymNodeImpl.h>
#include <doctest/doctest.h>

#include <limits>

#include "transporters/error.h"

namespace transporters::symbolic {
namespace {

constexpr int64_t kUnbounded = Range::kInfinity;

struct Sizes {
  std::shared_ptr<ShapeEnv> env = std::make_shared<ShapeEnv>();
  c10::SymInt s = add({.name = "s", .range = {0, kUnbounded}, .hint = 7, .source = "x dim 0"});
  c10::SymInt t = add({.name = "t", .range = {1, kUnbounded}, .hint = 5, .source = "x dim 1"});

  c10::SymInt add(SymbolInfo info) { return to_sym_int(env->add_symbol(std::move(info)), env); }
  bool recorded_nothing() const {
    return env->runtime_asserts().empty() && env->equalities().empty() && env->specializations().empty() &&
           env->narrowings().empty();
  }
};

template <typename T>
std::string text(const T& value) {
  return to_expr(value).str();
}

TEST_CASE("constants are plain numbers") {
  Sizes z;
  CHECK_FALSE(to_sym_int(3, z.env).is_heap_allocated());
  CHECK(to_sym_int(3, z.env) == 3);
  CHECK_FALSE(to_sym_float(Expr::real(0.5), z.env).is_symbolic());
  CHECK_FALSE(to_sym_bool(Expr::boolean(true), z.env).is_heap_allocated());
  CHECK_FALSE(to_sym_bool(Expr::parse("1 <= t"), z.env).is_heap_allocated());
  CHECK(to_expr(c10::SymInt(3)) == Expr(3));
  CHECK(to_expr(c10::SymFloat(0.5)) == Expr::real(0.5));
  CHECK(to_expr(c10::SymBool(true)) == Expr::boolean(true));
  CHECK(to_expr(c10::SymInt(std::numeric_limits<int64_t>::min())) == Expr(std::numeric_limits<int64_t>::min()));
}

TEST_CASE("arithmetic with numbers on either side") {
  Sizes z;
  CHECK(text(z.s + 1) == "s + 1");
  CHECK(text(1 + z.s) == "s + 1");
  CHECK(text(2 * z.s - z.t) == "2*s - t");
  CHECK(text(3 - z.s) == "-s + 3");
  CHECK(text(-z.s) == "-s");
  CHECK(text(z.s / 2) == "FloorDiv(s, 2)");
  CHECK(text(z.s % 2) == "Mod(s, 2)");
  CHECK(text(z.s * z.t / z.s) == "t");
  CHECK(text(z.s.min(4)) == "Min(4, s)");
  CHECK(text(z.t.max(1)) == "t");
  c10::SymInt total = z.s;
  total += z.t;
  total *= 2;
  CHECK(text(total) == "2*s + 2*t");
  CHECK((z.s - z.s).maybe_as_int() == 0);
  CHECK_FALSE((z.s - z.s).is_symbolic());
  CHECK(z.s.is_symbolic());
  CHECK(text(z.s + c10::SymInt(std::numeric_limits<int64_t>::min())) == "s + -9223372036854775808");
  CHECK(z.recorded_nothing());
}

TEST_CASE("foreign constant nodes take part, foreign symbols do not") {
  Sizes z;
  c10::SymNode three = c10::make_intrusive<c10::ConstantSymNodeImpl<int64_t>>(3);
  CHECK(text(c10::SymInt(z.s.toSymNode()->add(three))) == "s + 3");
  c10::SymNode yes = c10::make_intrusive<c10::ConstantSymNodeImpl<bool>>(true);
  CHECK(text(c10::SymBool(z.s.sym_le(4).toSymNodeImpl()->sym_and(yes))) == "s <= 4");
  Sizes other;
  CHECK_THROWS_AS(z.s + other.s, InternalError);
}

TEST_CASE("comparisons and logic") {
  Sizes z;
  CHECK(text(z.s.sym_eq(z.t)) == "Eq(s, t)");
  CHECK(text(z.s.sym_ne(3)) == "Ne(s, 3)");
  CHECK(text(z.s.sym_lt(3)) == "s <= 2");
  CHECK(text(z.s.sym_gt(z.t)) == "t + 1 <= s");
  CHECK(text(z.s.sym_ge(z.t)) == "t <= s");
  CHECK(text(z.s.sym_lt(3).sym_and(z.t.sym_le(4))) == "And(s <= 2, t <= 4)");
  CHECK(text(z.s.sym_lt(3) | z.t.sym_le(4)) == "Or(s <= 2, t <= 4)");
  CHECK(text(~z.s.sym_lt(3)) == "3 <= s");
  CHECK(text(z.s.sym_eq(3).toSymInt()) == "Where(Eq(s, 3), 1, 0)");
  CHECK(z.recorded_nothing());
}

TEST_CASE("floats") {
  Sizes z;
  c10::SymFloat real = z.s;
  CHECK(text(real) == "ToFloat(s)");
  CHECK(text(real * 0.3) == "0.3*ToFloat(s)");
  CHECK(text(real / 2.0) == "IntTrueDiv(s, 2)");
  CHECK(text(c10::SymFloat(z.s.toSymNode()->int_truediv(z.t.toSymNode()))) == "IntTrueDiv(s, t)");
  CHECK(text(c10::SymInt((real / 2.0).toSymNodeImpl()->ceil())) == "FloorDiv(s + 1, 2)");
  CHECK(text(c10::SymInt((real * 0.3).toSymNodeImpl()->floor())) == "FloorToInt(0.3*ToFloat(s))");
  CHECK(text(c10::SymFloat(real.toSymNodeImpl()->float_pow(real.wrap_node(real.toSymNodeImpl())))) ==
        "FloatPow(ToFloat(s), ToFloat(s))");
  CHECK(text(real.sym_lt(3.5)) == "s <= 3");
  c10::SymNode s = z.s.toSymNode();
  CHECK(text(c10::SymInt(s->pow(s->wrap_int(2)))) == "s**2");
  CHECK(text(c10::SymInt(s->pow_by_natural(z.t.toSymNode()))) == "PowByNatural(s, t)");
  CHECK(text(c10::SymFloat(s->pow(s->wrap_int(-1)))) == "FloatPow(ToFloat(s), -1.0)");
  c10::SymNode half = real.toSymNodeImpl()->mul(s->wrap_float(0.3));
  CHECK(text(c10::SymFloat(half->floordiv(s->wrap_int(2)))) ==
        "ToFloat(FloorToInt(FloatTrueDiv(0.3*ToFloat(s), 2.0)))");
}

TEST_CASE("branches ask the ShapeEnv, with their place") {
  Sizes z;
  z.env->set_location([] { return std::string("aten::view"); });
  CHECK_FALSE(z.s == 1);
  CHECK(z.s != 0);
  CHECK(z.recorded_nothing());
  CHECK(z.s.sym_ge(3).guard_bool("/src/aten/TensorShape.cpp", 12));
  REQUIRE(z.env->narrowings().size() == 1);
  CHECK(z.env->narrowings()[0].where == "aten::view (TensorShape.cpp:12)");
  CHECK(z.s.guard_int("/src/aten/Loops.cpp", 5) == 7);
  REQUIRE(z.env->specializations().size() == 1);
  CHECK(z.env->specializations()[0].where == "aten::view (Loops.cpp:5)");
  // Sizes made before see what was learnt since.
  CHECK_FALSE(z.s.is_symbolic());
  CHECK((z.s + 1).maybe_as_int() == 8);
  c10::SymFloat real = z.t;
  CHECK((real * 0.5).guard_float("f.cpp", 1) == 2.5);
  CHECK(z.t.maybe_as_int() == 5);
}

TEST_CASE("computed sizes are taken to be neither 0 nor 1 where the example's is not") {
  Sizes z;
  c10::SymInt l = z.add({.name = "l", .range = {3, kUnbounded}, .hint = 9, .source = "audio dim 1"});
  c10::SymInt convolved = l - 2;
  CHECK_FALSE(convolved == 1);
  CHECK(convolved > 1);
  CHECK(convolved >= 2);
  CHECK_FALSE((convolved / 2) == 1);
  CHECK((convolved / 2).sym_gt(1).guard_or_false("f.cpp", 1));
  CHECK_FALSE((convolved.sym_eq(1) | convolved.sym_eq(0)).guard_bool("f.cpp", 1));
  CHECK((~convolved.sym_eq(1)).guard_bool("f.cpp", 1));
  CHECK_FALSE((convolved.sym_le(1) & z.s.sym_eq(z.t)).guard_bool("f.cpp", 1));
  CHECK_FALSE(convolved.sym_gt(1).statically_known_true("f.cpp", 1));
  CHECK(z.recorded_nothing());
  // A remainder, a difference of any sign and a size whose example is 1 are asked in earnest.
  CHECK(z.s % 4 != 0);
  CHECK(z.env->runtime_asserts().back().condition.str() == "Ne(Mod(s, 4), 0)");
  CHECK(z.s - z.t > 0);
  CHECK(z.env->runtime_asserts().back().condition.str() == "t + 1 <= s");
  c10::SymInt small = z.add({.name = "k", .range = {2, kUnbounded}, .hint = 3, .source = "y dim 0"});
  CHECK(small - 2 == 1);
  CHECK(z.env->specializations().size() == 1);
}

TEST_CASE("questions that must not be recorded") {
  Sizes z;
  c10::SymBool open = z.s.sym_eq(z.t);
  CHECK_FALSE(open.guard_or_false("f.cpp", 1));
  CHECK(open.guard_or_true("f.cpp", 1));
  CHECK_FALSE(open.statically_known_true("f.cpp", 1));
  CHECK_FALSE(z.s.sym_eq(1).guard_or_true("f.cpp", 1));
  CHECK_FALSE(z.s.sym_eq(1).guard_size_oblivious("f.cpp", 1));
  CHECK(z.s.sym_ne(1).guard_or_false("f.cpp", 1));
  CHECK_FALSE(z.s.sym_ne(1).statically_known_true("f.cpp", 1));
  CHECK(z.t.sym_ge(1).statically_known_true("f.cpp", 1));
  CHECK(z.recorded_nothing());
}

TEST_CASE("checks are expectations") {
  Sizes z;
  c10::SymInt u = to_sym_int(z.env->add_unbacked({0, kUnbounded}, "aten::nonzero"), z.env);
  CHECK_FALSE(u.has_hint());
  CHECK(u.sym_le(z.s).expect_true("f.cpp", 1));
  CHECK(z.env->runtime_asserts().size() == 1);
  CHECK(u.sym_le(z.s).guard_bool("f.cpp", 1));
  CHECK(u.sym_eq(z.t).expect_true("f.cpp", 2));
  CHECK(text(u + 0) == "t");
  // The example says no: the caller reports it.
  CHECK_FALSE(z.s.sym_eq(z.t).expect_true("f.cpp", 3));
  CHECK_FALSE(z.t.sym_le(0).expect_true("f.cpp", 3));
}

TEST_CASE("data-dependent branches are errors") {
  Sizes z;
  c10::SymInt u = to_sym_int(z.env->add_unbacked({0, kUnbounded}, "aten::nonzero"), z.env);
  CHECK_FALSE(u == 0);
  CHECK_THROWS_WITH_AS(u.sym_le(9).guard_bool("Model.cpp", 4), doctest::Contains("at Model.cpp:4"), GuardError);
  CHECK_THROWS_AS(u.guard_int("Model.cpp", 4), GuardError);
}

}  // namespace
}  // namespace transporters::symbolic
