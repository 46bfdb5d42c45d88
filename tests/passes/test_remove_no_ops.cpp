#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/remove_no_ops.h"

using namespace transporters;

namespace {

// Runs the pass over `nodes`, where `%x` is f32[b, 4] and the result `%y` is read by `%out`.
std::string remaining(const std::string& nodes) {
  const std::string head =
      "program\nsymbol b in [1, inf]\ninput %x: f32[b, 4] = user \"x\"\ninput %i: i64[b, 4] = user \"i\"\n"
      "input %m: b8[b, 4] = user \"m\"\ninput %t: f32[4, 4] strides [1, 4] = user \"t\"\n";
  const std::string tail = "%out: f32[] = aten::sum(self=%y)\noutput %out = user \"y\"\n";
  const std::string text = after(remove_no_ops, head + nodes + tail);
  if (!text.starts_with(head)) return text;
  return text.substr(head.size());
}

const std::string kReadsX = "%out: f32[] = aten::sum(self=%x)\noutput %out = user \"y\"\n";

}  // namespace

TEST_CASE("copies, casts and views that change nothing") {
  for (const std::string node : {
           "%y: f32[b, 4] = aten::clone(self=%x)\n",
           "%y: f32[b, 4] = aten::clone(self=%x, memory_format=contiguous_format)\n",
           "%y: f32[b, 4] = aten::contiguous(self=%x)\n",
           "%y: f32[b, 4] = aten::detach(self=%x)\n",
           "%y: f32[b, 4] = aten::alias(self=%x)\n",
           "%y: f32[b, 4] = aten::lift_fresh_copy(self=%x)\n",
           "%y: f32[b, 4] = aten::to.dtype(self=%x, dtype=f32)\n",
           "%y: f32[b, 4] = aten::_to_copy(self=%x, dtype=f32)\n",
           "%y: f32[b, 4] = aten::view(self=%x, size=[b, 4])\n",
           "%y: f32[b, 4] = aten::reshape(self=%x, shape=[-1, 4])\n",
           "%y: f32[b, 4] = aten::expand(self=%x, size=[-1, -1])\n",
           "%y: f32[b, 4] = aten::squeeze.dim(self=%x, dim=1)\n",
           "%y: f32[b, 4] = aten::slice.Tensor(self=%x, dim=1, start=0, end=9223372036854775807)\n",
           "%y: f32[b, 4] = aten::slice.Tensor(self=%x, dim=0, end=b)\n",
           "%y: f32[b, 4] = aten::permute(self=%x, dims=[0, -1])\n",
           "%y: f32[b, 4] = aten::transpose.int(self=%x, dim0=1, dim1=-1)\n",
           "%y: f32[b, 4] = aten::repeat(self=%x, repeats=[1, 1])\n",
           "%y: f32[b, 4] = aten::constant_pad_nd(self=%x, pad=[0, 0])\n",
           "%y: f32[b, 4] = aten::cat(tensors=[%x])\n",
           "%y: f32[b, 4] = aten::split.Tensor(self=%x, split_size=4, dim=1)\n",
           "%y: f32[b, 4] = aten::dropout(input=%x, p=0.5, train=False)\n",
           "%y: f32[b, 4] = aten::dropout(input=%x, p=0.0, train=True)\n",
           "%y: f32[b, 4], %mask: b8[b, 4] = aten::native_dropout(input=%x, p=0.5, train=False)\n",
           "%y: f32[b, 4] = aten::slice_scatter(self=%t, src=%x)\n",
           "%y: f32[b, 4] = aten::copy(self=%x, src=%x)\n",
       })
    CHECK_MESSAGE(remaining(node) == kReadsX, node);
}

TEST_CASE("arithmetic with neutral numbers") {
  for (const std::string node : {
           "%y: f32[b, 4] = aten::add.Scalar(self=%x, other=0)\n",
           "%y: f32[b, 4] = aten::add.Tensor(self=%x, other=0.0)\n",
           "%y: f32[b, 4] = aten::sub.Tensor(self=%x, other=0)\n",
           "%y: f32[b, 4] = aten::mul.Tensor(self=%x, other=1)\n",
           "%y: f32[b, 4] = aten::mul.Scalar(self=%x, other=1.0)\n",
           "%y: f32[b, 4] = aten::div.Tensor(self=%x, other=1)\n",
           "%y: f32[b, 4] = aten::pow.Tensor_Scalar(self=%x, exponent=1)\n",
       })
    CHECK_MESSAGE(remaining(node) == kReadsX, node);
  CHECK(remaining("%one: f32[4] = aten::full(size=[4], fill_value=1.0)\n%y: f32[b, 4] = aten::mul.Tensor(self=%one, "
                  "other=%x)\n") == "%one: f32[4] = aten::full(size=[4], fill_value=1.0)\n" + kReadsX);
  CHECK(remaining(
            "%true: b8[] = aten::full(size=[], fill_value=True)\n%e: b8[b, 4] = aten::expand(self=%true, size=[b, 4])\n"
            "%a: b8[b, 4] = aten::bitwise_and.Tensor(self=%e, other=%m)\n"
            "%y: f32[b, 4] = aten::where.self(condition=%a, self=%x, other=%x)\n")
            .find("bitwise_and") == std::string::npos);
  CHECK(remaining("%false: b8[b, 4] = aten::zeros(size=[b, 4], dtype=b8)\n%a: b8[b, 4] = aten::logical_or(self=%m, "
                  "other=%false)\n"
                  "%y: f32[b, 4] = aten::where.self(condition=%a, self=%x, other=%t)\n")
            .find("logical_or") == std::string::npos);
  CHECK(remaining("%c: b8[] = aten::full(size=[], fill_value=False)\n%y: f32[b, 4] = aten::where.self(condition=%c, "
                  "self=%i, other=%x)\n") == "%c: b8[] = aten::full(size=[], fill_value=False)\n" + kReadsX);
}

TEST_CASE("transposing twice") {
  CHECK(remaining("%a: f32[4, b] strides [1, 4] = aten::transpose.int(self=%x, dim0=0, dim1=1)\n%y: f32[b, 4] = "
                  "aten::t(self=%a)\n") ==
        "%a: f32[4, b] strides [1, 4] = aten::transpose.int(self=%x, dim0=0, dim1=1)\n" + kReadsX);
}

TEST_CASE("what changes dtype, sizes, strides or values stays") {
  for (const std::string node : {
           "%y: f64[b, 4] = aten::to.dtype(self=%x, dtype=f64)\n",
           "%y: f32[b, 4] = aten::add.Scalar(self=%i, other=0.0)\n",
           "%y: f32[4, b, 4] = aten::expand(self=%x, size=[4, b, 4])\n",
           "%y: f32[4, 4] = aten::clone(self=%t, memory_format=contiguous_format)\n",
           "%y: f32[b, 4] = aten::constant_pad_nd(self=%x, pad=[1, -1])\n",
           "%y: f32[b, 4] = aten::repeat(self=%x, repeats=[1, 2])\n",
           "%y: f32[b, 4] = aten::dropout(input=%x, p=0.5, train=True)\n",
           "%y: f32[b, 4] = aten::div.Tensor_mode(self=%x, other=1, rounding_mode=\"floor\")\n",
           "%y: f32[b, 4] = aten::rsub.Scalar(self=%x, other=0)\n",
           "%y: f32[b, 4] = aten::div.Tensor(self=1, other=%x)\n",
           "%y: f32[4, 4] strides [4, 1] = aten::transpose.int(self=%t, dim0=0, dim1=1)\n",
           "%ones: f32[3, 1, 4] = aten::ones(size=[3, 1, 4])\n%y: f32[3, b, 4] = aten::mul.Tensor(self=%x, "
           "other=%ones)\n",
           "%n: f32[b, 4], %mask: b8[b, 4] = aten::native_dropout(input=%x, p=0.5, train=False)\n"
           "%y: f32[b, 4] = aten::where.self(condition=%mask, self=%n, other=%t)\n",
       })
    CHECK_MESSAGE(remaining(node) == "unchanged", node);
}

TEST_CASE("empty parts of a cat are dropped") {
  CHECK(
      remaining(
          "%e: f32[0] = aten::full(size=[0], fill_value=0.0)\n%y: f32[b, 4] = aten::cat(tensors=[%e, %x], dim=-1)\n") ==
      "%e: f32[0] = aten::full(size=[0], fill_value=0.0)\n" + kReadsX);
  CHECK(remaining("%e: f32[b, 0] = aten::full(size=[b, 0], fill_value=0.0)\n%y: f32[b, 8] = aten::cat(tensors=[%x, %e, "
                  "%x], dim=1)\n") ==
        "%e: f32[b, 0] = aten::full(size=[b, 0], fill_value=0.0)\n%y: f32[b, 8] = aten::cat(tensors=[%x, %x], dim=1)\n"
        "%out: f32[] = aten::sum(self=%y)\noutput %out = user \"y\"\n");
  // The empty part decides the dtype.
  CHECK(remaining("%e: f64[0] = aten::full(size=[0], fill_value=0.0, dtype=f64)\n%y: f64[b, 4] = "
                  "aten::cat(tensors=[%e, %x], dim=1)\n") == "unchanged");
}

TEST_CASE("a one-element constant counts by its value") {
  Program program = parse_program(R"(program
input %c: f32[] = constant "c"
input %x: f32[4] = user "x"
%mul: f32[4] = aten::mul.Tensor(self=%x, other=%c)
%neg: f32[4] = aten::neg(self=%mul)
output %neg = user "y"
)");
  static const float kTwo = 2, kOne = 1;
  program.state["c"].data = &kTwo;
  CHECK_FALSE(remove_no_ops(program));
  program.state["c"].data = &kOne;
  CHECK(remove_no_ops(program));
  CHECK(program.graph->front()->is("aten::neg"));
}

TEST_CASE("outputs stay apart from inputs and from each other") {
  CHECK(after(remove_no_ops, R"(program
input %x: f32[4] = user "x"
%clone: f32[4] = aten::clone(self=%x)
%relu: f32[4] = aten::relu(self=%x)
%clone_1: f32[4] = aten::clone(self=%relu)
output %clone = user "a"
output %relu = user "b"
output %clone_1 = user "c"
)") == "unchanged");
  CHECK(after(remove_no_ops, R"(program
input %x: f32[4] = user "x"
%relu: f32[4] = aten::relu(self=%x)
%clone_1: f32[4] = aten::clone(self=%relu)
output %clone_1 = user "c"
)") == R"(program
input %x: f32[4] = user "x"
%relu: f32[4] = aten::relu(self=%x)
output %relu = user "c"
)");
}
