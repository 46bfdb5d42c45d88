#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/passes/eliminate_dead_code.h"
#include "transporters/passes/fold_constants.h"
#include "transporters/runners/interpreter.h"

using namespace transporters;

namespace {

Program parse(const std::string& text, const std::map<std::string, at::Tensor>& state) {
  Program program = parse_program(text);
  for (const auto& [name, tensor] : state) program.state[name] = to_tensor_data(tensor);
  verify(program);
  return program;
}

}  // namespace

TEST_CASE("what depends on constants alone becomes a constant") {
  const std::string text = R"(program
symbol n in [1, inf]
input %w: f32[4] = parameter "w"
input %c: f32[4] = constant "c"
input %x: f32[n, 4] = user "x"
%arange: i64[4] = aten::arange(end=4)
%to: f32[4] = aten::to.dtype(self=%arange, dtype=f32)
%mul: f32[4] = aten::mul.Tensor(self=%to, other=%c)
%a: f32[2], %b: f32[2] = aten::split.Tensor(self=%mul, split_size=2)
%cat: f32[4] = aten::cat(tensors=[%b, %a])
%weighted: f32[4] = aten::mul.Tensor(self=%w, other=%cat)
%y: f32[n, 4] = aten::mul.Tensor(self=%x, other=%weighted)
output %y = user "y"
)";
  const std::map<std::string, at::Tensor> state = {{"w", at::arange(4, at::kFloat)}, {"c", at::full({4}, 2.0f)}};
  Program program = parse(text, state);
  CHECK(fold_constants(program));
  eliminate_dead_code(program);
  verify(program);
  CHECK(program.str() == R"(program
symbol n in [1, inf]
input %w: f32[4] = parameter "w"
input %c_folded_cat: f32[4] = constant "folded_cat"
input %x: f32[n, 4] = user "x"
%weighted: f32[4] = aten::mul.Tensor(self=%w, other=%c_folded_cat)
%y: f32[n, 4] = aten::mul.Tensor(self=%x, other=%weighted)
output %y = user "y"
)");
  CHECK(at::equal(to_tensor(program.state.at("folded_cat")), at::tensor({4.0f, 6.0f, 0.0f, 2.0f})));
  const auto x = at::randn({3, 4});
  CHECK(at::equal(Interpreter(program).run({x})[0].toTensor(), Interpreter(parse(text, state)).run({x})[0].toTensor()));
}

TEST_CASE("lone fills, random ops, symbolic sizes, parameters, buffers and asserts stay") {
  Program program = parse(R"(program
symbol n in [1, inf]
input %w: f32[2, 4] = parameter "w"
input %b: f32[4] = buffer "b"
input %x: f32[n] = user "x"
%full: f32[4] = aten::full(size=[4], fill_value=1.0)
%rand: f32[4] = aten::rand(size=[4])
%neg: f32[4] = aten::neg(self=%rand)
%ones: f32[n] = aten::full(size=[n], fill_value=1.0)
%t: f32[4, 2] strides [1, 4] = aten::t(self=%w)
%exp: f32[4] = aten::exp(self=%b)
output %full = user "a"
output %neg = user "b"
output %ones = user "c"
output %t = user "d"
output %exp = user "e"
)",
                          {{"w", at::zeros({2, 4})}, {"b", at::zeros({4})}});
  const std::string before = program.str();
  CHECK_FALSE(fold_constants(program));
  CHECK(program.str() == before);
}

TEST_CASE("a result larger than the cap and its sources stays, but what it comes from is folded") {
  Program program = parse(R"(program
input %c: f32[1] = constant "c"
input %x: f32[1000, 1000] = user "x"
%exp: f32[1] = aten::exp(self=%c)
%neg: f32[1] = aten::neg(self=%exp)
%repeat: f32[1000, 1000] = aten::repeat(self=%neg, repeats=[1000, 1000])
%add: f32[1000, 1000] = aten::add.Tensor(self=%x, other=%repeat)
output %add = user "y"
)",
                          {{"c", at::ones({1})}});
  CHECK(fold_constants(program));
  eliminate_dead_code(program);
  verify(program);
  CHECK(program.graph->front()->is("aten::repeat"));
  CHECK(program.state.size() == 1);
  CHECK(program.state.contains("folded_neg"));
}

TEST_CASE("a strided view of constants stays a view of the folded rest") {
  Program program = parse(R"(program
input %c: f32[2, 3] = constant "c"
input %x: f32[3, 2] = user "x"
%exp: f32[2, 3] = aten::exp(self=%c)
%t: f32[3, 2] strides [1, 3] = aten::t(self=%exp)
%add: f32[3, 2] strides [1, 3] = aten::add.Tensor(self=%x, other=%t)
output %add = user "y"
)",
                          {{"c", at::zeros({2, 3})}});
  CHECK(fold_constants(program));
  verify(program);
  CHECK(program.state.contains("folded_exp"));
  CHECK_FALSE(program.state.contains("folded_t"));
}

TEST_CASE("a result may come from a value that itself stays") {
  const std::string text = R"(program
symbol n in [1, inf]
input %c: f32[4, 3] = constant "c"
input %x: f32[n, 3] = user "x"
%t: f32[3, 4] strides [1, 3] = aten::t(self=%c)
%product: f32[n, 4] = aten::mm(self=%x, mat2=%t)
%sum: f32[4] = aten::sum.dim_IntList(self=%t, dim=[0])
%y: f32[n, 4] = aten::add.Tensor(self=%product, other=%sum)
output %y = user "y"
)";
  const std::map<std::string, at::Tensor> state = {{"c", at::randn({4, 3})}};
  Program program = parse(text, state);
  CHECK(fold_constants(program));
  eliminate_dead_code(program);
  verify(program);
  CHECK(program.str().find("aten::sum") == std::string::npos);
  CHECK(program.str().find("aten::t(self=%c)") != std::string::npos);
  const auto x = at::randn({2, 3});
  CHECK(at::allclose(Interpreter(program).run({x})[0].toTensor(),
                     Interpreter(parse(text, state)).run({x})[0].toTensor()));
}
