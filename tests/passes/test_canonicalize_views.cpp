#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/canonicalize_views.h"
#include "transporters/passes/eliminate_dead_code.h"

using namespace transporters;

namespace {

bool canonicalize(Program& program) {
  const bool changed = canonicalize_views(program);
  return eliminate_dead_code(program) || changed;
}

}  // namespace

TEST_CASE("permutations compose") {
  CHECK(after(canonicalize, R"(program
symbol b in [1, inf]
input %x: f32[b, 2, 3] = user "x"
%a: f32[3, b, 2] strides [1, 6, 3] = aten::permute(self=%x, dims=[2, 0, 1])
%b: f32[b, 3, 2] strides [6, 1, 3] = aten::transpose.int(self=%a, dim0=0, dim1=1)  @ model.attention
%c: f32[b, 3, 2] = aten::relu(self=%b)
output %c = user "y"
)") == R"(program
symbol b in [1, inf]
input %x: f32[b, 2, 3] = user "x"
%b: f32[b, 3, 2] strides [6, 1, 3] = aten::permute(self=%x, dims=[0, 2, 1])  @ model.attention
%c: f32[b, 3, 2] = aten::relu(self=%b)
output %c = user "y"
)");
}

TEST_CASE("views compose, with squeezes and unsqueezes beside them") {
  CHECK(after(canonicalize, R"(program
symbol b in [1, inf]
input %x: f32[b, 6] = user "x"
%a: f32[b, 1, 6] = aten::unsqueeze(self=%x, dim=1)
%b: f32[b, 2, 3] = aten::view(self=%a, size=[b, 2, 3])
%c: f32[6*b] = aten::view(self=%b, size=[-1])
%d: f32[1, 6*b] = aten::unsqueeze(self=%c, dim=0)
%e: f32[1, 6*b] = aten::relu(self=%d)
output %e = user "y"
)") == R"(program
symbol b in [1, inf]
input %x: f32[b, 6] = user "x"
%d: f32[1, 6*b] = aten::view(self=%x, size=[1, 6*b])
%e: f32[1, 6*b] = aten::relu(self=%d)
output %e = user "y"
)");
}

TEST_CASE("a chain that comes back to a value is that value") {
  CHECK(after(canonicalize, R"(program
input %x: f32[2, 6] = user "x"
%r: f32[2, 6] = aten::relu(self=%x)
%a: f32[2, 1, 6] = aten::unsqueeze(self=%r, dim=1)
%b: f32[2, 6] = aten::squeeze.dim(self=%a, dim=1)
%c: f32[2, 6] = aten::neg(self=%b)
output %c = user "y"
)") == R"(program
input %x: f32[2, 6] = user "x"
%r: f32[2, 6] = aten::relu(self=%x)
%c: f32[2, 6] = aten::neg(self=%r)
output %c = user "y"
)");
}

TEST_CASE("a reshape that may copy stays one where the source is not contiguous") {
  CHECK(after(canonicalize, R"(program
input %x: f32[2, 6] strides [1, 2] = user "x"
%a: f32[12] = aten::reshape(self=%x, shape=[12])
%b: f32[3, 4] = aten::view(self=%a, size=[3, 4])
%c: f32[3, 4] = aten::relu(self=%b)
output %c = user "y"
)") == R"(program
input %x: f32[2, 6] strides [1, 2] = user "x"
%b: f32[3, 4] = aten::reshape(self=%x, shape=[3, 4])
%c: f32[3, 4] = aten::relu(self=%b)
output %c = user "y"
)");
}

TEST_CASE("expands compose") {
  CHECK(after(canonicalize, R"(program
symbol b in [1, inf]
input %x: f32[1, 1, 3] = user "x"
input %k: f32[b] = user "k"
%a: f32[1, 2, 3] strides [3, 0, 1] = aten::expand(self=%x, size=[-1, 2, -1])
%b: f32[b, 2, 3] strides [0, 0, 1] = aten::expand(self=%a, size=[b, -1, -1])
%c: f32[b, 2, 3] = aten::relu(self=%b)
output %c = user "y"
)") == R"(program
symbol b in [1, inf]
input %x: f32[1, 1, 3] = user "x"
input %k: f32[b] = user "k"
%b: f32[b, 2, 3] strides [0, 0, 1] = aten::expand(self=%x, size=[b, 2, 3])
%c: f32[b, 2, 3] = aten::relu(self=%b)
output %c = user "y"
)");
}

TEST_CASE("lone views, chains of unsqueezes, outputs that would become inputs, and what lies between stay") {
  CHECK(after(canonicalize, R"(program
input %x: f32[2, 6] = user "x"
%a: f32[12] = aten::view(self=%x, size=[12])
%n: f32[12] = aten::neg(self=%a)
%b: f32[3, 4] = aten::view(self=%n, size=[3, 4])
%c: f32[3, 1, 4] = aten::unsqueeze(self=%b, dim=1)
%d: f32[2, 1, 6] = aten::unsqueeze(self=%x, dim=1)
%e: f32[2, 1, 6, 1] = aten::unsqueeze(self=%d, dim=-1)
%f: f32[2, 6] = aten::squeeze.dim(self=%d, dim=1)
%v: i32[2, 6] = aten::view.dtype(self=%x, dtype=i32)
%w: i32[12] = aten::view(self=%v, size=[12])
output %e = user "e"
output %f = user "f"
output %w = user "w"
output %b = user "b"
)") == R"(program
input %x: f32[2, 6] = user "x"
%a: f32[12] = aten::view(self=%x, size=[12])
%n: f32[12] = aten::neg(self=%a)
%b: f32[3, 4] = aten::view(self=%n, size=[3, 4])
%d: f32[2, 1, 6] = aten::unsqueeze(self=%x, dim=1)
%e: f32[2, 1, 6, 1] = aten::unsqueeze(self=%d, dim=-1)
%f: f32[2, 6] = aten::squeeze.dim(self=%d, dim=1)
%v: i32[2, 6] = aten::view.dtype(self=%x, dtype=i32)
%w: i32[12] = aten::view(self=%v, size=[12])
output %e = user "e"
output %f = user "f"
output %w = user "w"
output %b = user "b"
)");
}
