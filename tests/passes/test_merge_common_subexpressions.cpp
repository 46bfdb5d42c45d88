#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/merge_common_subexpressions.h"

using namespace transporters;

TEST_CASE("equal nodes merge, and so do nodes that become equal by that") {
  CHECK(after(merge_common_subexpressions, R"(program
symbol n in [0, inf]
input %x: f32[n] = user "x"
%a: f32[n] = aten::add.Scalar(self=%x, other=1)
%b: f32[n] = aten::add.Scalar(self=%x, other=1)
%c: f32[n] = aten::relu(self=%a)  @ first
%d: f32[n] = aten::relu(self=%b)  @ second
%s: f32[n] = aten::add.Tensor(self=%c, other=%d)
output %s = user "y"
output %d = user "z"
)") == R"(program
symbol n in [0, inf]
input %x: f32[n] = user "x"
%a: f32[n] = aten::add.Scalar(self=%x, other=1)
%c: f32[n] = aten::relu(self=%a)  @ first
%s: f32[n] = aten::add.Tensor(self=%c, other=%c)
output %s = user "y"
output %c = user "z"
)");
}

TEST_CASE("all outputs of a list merge") {
  CHECK(after(merge_common_subexpressions, R"(program
input %x: f32[4] = user "x"
%a: f32[2], %b: f32[2] = aten::split.Tensor(self=%x, split_size=2)
%c: f32[2], %d: f32[2] = aten::split.Tensor(self=%x, split_size=2)
output %d = user "y"
output %a = user "z"
)") == R"(program
input %x: f32[4] = user "x"
%a: f32[2], %b: f32[2] = aten::split.Tensor(self=%x, split_size=2)
output %b = user "y"
output %a = user "z"
)");
}

TEST_CASE("other arguments, integers beside floats, randomness, asserts and fresh symbols keep nodes apart") {
  CHECK(after(merge_common_subexpressions, R"(program
symbol u0 in [0, 4]
symbol u1 in [0, 4]
input %x: f32[4] = user "x"
input %i: i64[4] = user "i"
%a: f32[4] = aten::mul.Scalar(self=%x, other=2)
%b: f32[4] = aten::mul.Scalar(self=%x, other=2.0)
%c: f32[4] = aten::rand_like(self=%x)
%d: f32[4] = aten::rand_like(self=%x)
%e: i64[u0, 1] = aten::nonzero(self=%x)
%f: i64[u1, 1] = aten::nonzero(self=%x)
%g: f32[4] = aten::add.Tensor(self=%a, other=%b)
%h: f32[4] = aten::add.Tensor(self=%b, other=%a)
aten::_assert_scalar(self=u0 <= 5, assert_msg="small")
aten::_assert_scalar(self=u0 <= 5, assert_msg="small")
)") == "unchanged");
}
