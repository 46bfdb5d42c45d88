#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/eliminate_dead_code.h"

using namespace transporters;

TEST_CASE("chains that nothing reads go, with the state that only they read; user inputs stay") {
  CHECK(after(eliminate_dead_code, R"(program
input %w: f32[4] = parameter "w"
input %v: f32[4] = parameter "v"
input %k: f32[4] = constant "k"
input %x: f32[4] = user "x"
input %unused: f32[4] = user "unused"
input None = user "mask"
%mul: f32[4] = aten::mul.Tensor(self=%x, other=%w)
%dead: f32[4] = aten::mul.Tensor(self=%x, other=%v)
%deader: f32[4] = aten::relu(self=%dead)
output %mul = user "y"
)") == R"(program
input %w: f32[4] = parameter "w"
input %x: f32[4] = user "x"
input %unused: f32[4] = user "unused"
input None = user "mask"
%mul: f32[4] = aten::mul.Tensor(self=%x, other=%w)
output %mul = user "y"
)");
}

TEST_CASE("erased inputs lose their state") {
  Program program = parse_program(
      "program\ninput %a: f32[1] = parameter \"a\"\ninput %b: f32[1] = parameter \"b\"\n"
      "output %b = user \"y\"\n");
  program.state["a"].sizes = program.state["a"].strides = {1};
  program.state["b"] = program.state["a"];
  CHECK(eliminate_dead_code(program));
  CHECK(program.state.count("a") == 0);
  CHECK(program.state.count("b") == 1);
}

TEST_CASE("asserts and what they read stay") {
  CHECK(after(eliminate_dead_code, R"(program
symbol u0 in [0, 8]
input %x: i64[] = user "x"
input %flag: b8[] = user "flag"
%item: number(u0) = aten::item(self=%x)
%not: b8[] = aten::logical_not(self=%flag)
aten::_assert_scalar(self=u0 <= 5, assert_msg="small")
aten::_assert_async.msg(self=%not, assert_msg="flag")
output %x = user "y"
)") == "unchanged");
}

TEST_CASE("a node that a symbol in use comes from stays, though nothing reads its output") {
  CHECK(after(eliminate_dead_code, R"(program
symbol u0 in [0, 8]
symbol u1 in [0, 8]
input %x: i64[] = user "x"
input %z: i64[] = user "z"
%a: number(u0) = aten::item(self=%x)
%b: number(u1) = aten::item(self=%z)
%full: f32[2*u0] = aten::full(size=[2*u0], fill_value=1.0)
output %full = user "y"
)") == R"(program
symbol u0 in [0, 8]
input %x: i64[] = user "x"
input %z: i64[] = user "z"
%a: number(u0) = aten::item(self=%x)
%full: f32[2*u0] = aten::full(size=[2*u0], fill_value=1.0)
output %full = user "y"
)");
  CHECK(after(eliminate_dead_code, R"(program
symbol u0 in [0, 8]
input %x: i64[] = user "x"
%a: number(u0) = aten::item(self=%x)
output u0 + 1 = user "n"
)") == "unchanged");
}

TEST_CASE("a buffer that is written to stays") {
  CHECK(after(eliminate_dead_code, R"(program
input %c: f32[1] = buffer "c"
input %x: f32[1] = user "x"
%neg: f32[1] = aten::neg(self=%x)
output %neg = buffer_mutation "c"
)") == "unchanged");
}

TEST_CASE("one live output keeps a node") {
  CHECK(after(eliminate_dead_code, R"(program
input %x: f32[4] = user "x"
%a: f32[2], %b: f32[2] = aten::split.Tensor(self=%x, split_size=2)
output %b = user "y"
)") == "unchanged");
}
