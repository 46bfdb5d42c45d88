#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/relax_views.h"

using namespace transporters;

TEST_CASE("views of what a node computes become reshapes; views of inputs stay") {
  CHECK(after(relax_views, R"(program
symbol b in [1, inf]
input %x: f32[b, 6] = user "x"
%a: f32[b, 2, 3] = aten::view(self=%x, size=[b, 2, 3])
%c: f32[b, 2, 3] = aten::relu(self=%a)
%d: f32[b, 6] = aten::view(self=%c, size=[b, 6])  @ model.head
output %d = user "y"
)") == R"(program
symbol b in [1, inf]
input %x: f32[b, 6] = user "x"
%a: f32[b, 2, 3] = aten::view(self=%x, size=[b, 2, 3])
%c: f32[b, 2, 3] = aten::relu(self=%a)
%d: f32[b, 6] = aten::reshape(self=%c, shape=[b, 6])  @ model.head
output %d = user "y"
)");
}
