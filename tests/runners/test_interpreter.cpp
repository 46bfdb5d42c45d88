#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/runners/interpreter.h"

using namespace transporters;

namespace {

Program parse(const std::string& text, const std::map<std::string, at::Tensor>& state = {}) {
  Program program = parse_program(text);
  for (const auto& [name, tensor] : state) program.state[name] = to_tensor_data(tensor);
  verify(program);
  return program;
}

std::string failure(Interpreter& interpreter, const std::vector<at::Tensor>& inputs) {
  try {
    interpreter.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const char* const kLinear = R"(program
symbol batch in [1, 4]
symbol sequence in [2, inf]
input %w: f32[3, 5] = parameter "w"
input %b: f32[3] = parameter "b"
input %x: f32[batch, sequence, 5] = user "x"
input %scale: f32[batch, sequence] = user "scale"
%linear: f32[batch, sequence, 3] = aten::linear(input=%x, weight=%w, bias=%b)
%unsqueeze: f32[batch, sequence, 1] = aten::unsqueeze(self=%scale, dim=-1)
%mul: f32[batch, sequence, 3] = aten::mul.Tensor(self=%linear, other=%unsqueeze)
%view: f32[batch*sequence, 3] = aten::view(self=%mul, size=[batch*sequence, 3])
output %view = user "y"
output batch*sequence = user "tokens"
output None = user "loss"
)";

}  // namespace

TEST_CASE("a program computes what direct calls compute, at every size in range") {
  at::manual_seed(0);
  const auto w = at::randn({3, 5}), b = at::randn({3});
  Interpreter interpreter(parse(kLinear, {{"w", w}, {"b", b}}));
  CHECK((interpreter.input_names() == std::vector<std::string>{"x", "scale"}));
  CHECK((interpreter.output_names() == std::vector<std::string>{"y", "tokens", "loss"}));
  for (const int64_t batch : {1, 2, 4}) {
    const auto x = at::randn({batch, 7, 5}), scale = at::randn({batch, 7});
    const auto results = interpreter.run({x, scale});
    const auto expected = (at::linear(x, w, b) * scale.unsqueeze(-1)).view({batch * 7, 3});
    CHECK(at::equal(results.at(0).toTensor(), expected));
    CHECK(results.at(1).toInt() == batch * 7);
    CHECK(results.at(2).isNone());
    const auto named = interpreter.run_named({{"scale", scale}, {"x", x}});
    CHECK(at::equal(named.at("y").toTensor(), expected));
  }
}

TEST_CASE("inputs that do not fit are refused by name, dim, expected and got") {
  Interpreter interpreter(parse(kLinear, {{"w", at::zeros({3, 5})}, {"b", at::zeros({3})}}));
  const auto scale = at::zeros({2, 7});
  CHECK(failure(interpreter, {at::zeros({2, 7, 5})}) == "[run] expected 2 inputs (x, scale), got 1");
  CHECK(failure(interpreter, {at::zeros({5, 7, 5}), at::zeros({5, 7})}) ==
        "[run] input 'x' dim 0: expected batch in [1, 4], got 5");
  CHECK(failure(interpreter, {at::zeros({2, 1, 5}), scale}) ==
        "[run] input 'x' dim 1: expected sequence in [2, inf], got 1");
  CHECK(failure(interpreter, {at::zeros({2, 7, 6}), scale}) == "[run] input 'x' dim 2: expected 5, got 6");
  CHECK(failure(interpreter, {at::zeros({2, 8, 5}), scale}) ==
        "[run] input 'scale' dim 1: expected sequence = 8, got 7; sequence = 8 (input 'x' dim 1)");
  CHECK(failure(interpreter, {at::zeros({2, 7, 5}, at::kLong), scale}) ==
        "[run] input 'x': expected dtype f32, got i64");
  CHECK(failure(interpreter, {at::zeros({7, 5}), scale}) ==
        "[run] input 'x': expected 3 dimensions (f32[batch, sequence, 5]), got 2 ([7, 5])");
  CHECK(failure(interpreter, {at::Tensor(), scale}).starts_with("[run] input 'x': expected f32[batch, sequence, 5]"));
  CHECK_THROWS_WITH_AS(interpreter.run_named({{"x", scale}, {"scal", scale}}),
                       "[run] there is no input 'scal'; did you mean 'scale'?", Error);
  CHECK_THROWS_WITH_AS(interpreter.run_named({{"x", scale}}), "[run] the input 'scale' is missing", Error);
  // A failed run leaves it usable.
  CHECK(failure(interpreter, {at::zeros({2, 7, 5}), scale}) == "no error");
}

TEST_CASE("a symbol inside a linear size is solved") {
  Interpreter interpreter(parse(R"(program
symbol n in [1, 5]
input %x: f32[2*n + 1] = user "x"
%full: f32[n] = aten::full(size=[n], fill_value=1.0)
output %full = user "y"
)"));
  CHECK(interpreter.run({at::zeros({7})})[0].toTensor().size(0) == 3);
  CHECK(failure(interpreter, {at::zeros({8})}) == "[run] input 'x' dim 0: expected 2*n + 1 for an integer n, got 8");
  CHECK(failure(interpreter, {at::zeros({13})}) ==
        "[run] input 'x' dim 0: expected n in [1, 5] with a size of 2*n + 1, got 13");
}

TEST_CASE("lists of tensors in and out, and optional ones") {
  Interpreter interpreter(parse(R"(program
input %x: f32[4, 6] = user "x"
input %i: i64[2] = user "i"
%a: f32[4, 4], %b: f32[4, 2] = aten::split.Tensor(self=%x, split_size=4, dim=1)
%cat: f32[4, 6] = aten::cat(tensors=[%b, %a], dim=1)
%index: f32[4, 2] = aten::index.Tensor(self=%cat, indices=[None, %i])
%values: f32[4], %indices: i64[4] = aten::max.dim(self=%index, dim=1)
output %index = user "index"
output %indices = user "indices"
)"));
  at::manual_seed(1);
  const auto x = at::randn({4, 6});
  const auto i = at::tensor({5, 0}, at::kLong);
  const auto results = interpreter.run({x, i});
  const auto expected = at::cat({x.slice(1, 4), x.slice(1, 0, 4)}, 1).index_select(1, i);
  CHECK(at::equal(results[0].toTensor(), expected));
  CHECK(at::equal(results[1].toTensor(), expected.argmax(1)));
}

TEST_CASE("a number in a tensor's place promotes as a number") {
  Interpreter interpreter(parse(R"(program
symbol n in [0, inf]
input %x: i64[n] = user "x"
input %h: f16[2] = user "h"
%add: i64[n] = aten::add.Tensor(self=%x, other=n)
%mul: f16[2] = aten::mul.Tensor(self=%h, other=0.5)
%flag: i64[n] = aten::mul.Tensor(self=%x, other=True)
output %add = user "a"
output %mul = user "b"
output %flag = user "c"
)"));
  const auto results = interpreter.run({at::arange(3), at::ones({2}, at::kHalf)});
  CHECK(at::equal(results[0].toTensor(), at::arange(3) + 3));
  CHECK((results[1].toTensor().scalar_type() == at::kHalf));
  CHECK((results[2].toTensor().scalar_type() == at::kLong));
}

TEST_CASE("every kind of constant reaches its op") {
  Interpreter interpreter(parse(R"(program
input %x: f32[1, 2, 3] = user "x"
%gelu: f32[1, 2, 3] = aten::gelu(self=%x, approximate="tanh")
%to: f64[1, 2, 3] = aten::to.dtype(self=%gelu, dtype=f64)
%clone: f64[1, 2, 3] = aten::clone(self=%to, memory_format=contiguous_format)
%up: f64[1, 2, 6] = aten::upsample_nearest1d.vec(input=%clone, output_size=None, scale_factors=[2.0])
%ones: f64[1, 2, 6] = aten::full(size=[1, 2, 6], fill_value=1, dtype=f64, layout=strided, device=cpu, pin_memory=False)
%add: f64[1, 2, 6] = aten::add.Tensor(self=%up, other=%ones, alpha=3)
%pool: f64[1, 2, 3] = aten::avg_pool1d(self=%add, kernel_size=[2])
output %pool = user "y"
)"));
  const auto x = at::randn({1, 2, 3});
  CHECK(at::allclose(interpreter.run({x})[0].toTensor(), at::gelu(x, "tanh").to(at::kDouble) + 3));
}

TEST_CASE("symbols that a node computes are bound when it runs, and checked") {
  Interpreter interpreter(parse(R"(program
symbol u0 in [1, 3]
symbol u1 in [0, 100]
input %x: f32[4] = user "x"
%nonzero: i64[u0, 1] = aten::nonzero(self=%x)
%sum: f32[] = aten::sum(self=%x)
%long: i64[] = aten::to.dtype(self=%sum, dtype=i64)
%item: number(u1) = aten::item(self=%long)
aten::_assert_scalar(self=u1 < 10, assert_msg="u1 must be below 10")
%full: f32[u0, u1] = aten::full(size=[u0, u1], fill_value=2.0)
%plus: f32[u0, u1] = aten::add.Scalar(self=%full, other=%item)
output %plus = user "y"
output u0 + u1 = user "n"
)"));
  const auto results = interpreter.run({at::tensor({0.0f, 3.0f, 2.0f, 0.0f})});
  CHECK(at::equal(results[0].toTensor(), at::full({2, 5}, 7.0)));
  CHECK(results[1].toInt() == 7);
  CHECK(failure(interpreter, {at::zeros({4})}) ==
        "[run] op 'aten::nonzero': output %nonzero dim 0: expected u0 in [1, 3], got 0");
  CHECK(failure(interpreter, {at::full({4}, -1.0f)}).starts_with("[run] op 'aten::nonzero'"));
  CHECK(failure(interpreter, {at::tensor({0.0f, -1.0f, 0.0f, 0.0f})}) ==
        "[run] op 'aten::item': output %item: expected u1 in [0, 100], got -1");
  CHECK(failure(interpreter, {at::tensor({0.0f, 11.0f, 0.0f, 0.0f})})
            .starts_with("[run] op 'aten::_assert_scalar': u1 must be below 10"));
}

TEST_CASE("an op that fails is named with its module and its inputs") {
  Interpreter interpreter(parse(R"(program
symbol n in [0, inf]
symbol m in [0, inf]
input %x: f32[2, n] = user "x"
input %y: f32[m, 2] = user "y"
%mm: f32[2, 2] = aten::mm(self=%x, mat2=%y)  @ model.head
output %mm = user "z"
)"));
  CHECK(failure(interpreter, {at::zeros({2, 3}), at::zeros({3, 2})}) == "no error");
  const auto message = failure(interpreter, {at::zeros({2, 3}), at::zeros({4, 2})});
  CHECK(message.starts_with("[run] op 'aten::mm' at model.head: "));
  CHECK(message.ends_with("[inputs: self f32[2, 3], mat2 f32[4, 2]]"));
}

TEST_CASE("a mutated buffer keeps its value between runs, the program's bytes stay") {
  const auto c = at::full({1}, 4.0f);
  Interpreter interpreter(parse(R"(program
input %c: f32[1] = buffer "c"
input %x: f32[1] = user "x"
%add: f32[1] = aten::add.Scalar(self=%c, other=1)
%add_1: f32[1] = aten::add.Tensor(self=%x, other=%add)
output %add = buffer_mutation "c"
output %add_1 = user "y"
)",
                                {{"c", c}}));
  const auto x = at::zeros({1});
  CHECK(interpreter.run({x})[0].toTensor().item<float>() == 5);
  CHECK(interpreter.run({x})[0].toTensor().item<float>() == 6);
  CHECK(interpreter.buffer("c").item<float>() == 6);
  CHECK(c.item<float>() == 4);
  CHECK_THROWS_WITH_AS(interpreter.buffer("d"), doctest::Contains("there is no buffer 'd'"), Error);
}

TEST_CASE("buffers that swap, and a new value that a caller also holds") {
  Interpreter interpreter(parse(R"(program
input %a: f32[2] = buffer "a"
input %b: f32[2] = buffer "b"
input %c: f32[2] = buffer "c"
input %x: f32[2] = user "x"
%neg: f32[2] = aten::neg(self=%x)
output %b = buffer_mutation "a"
output %a = buffer_mutation "b"
output %neg = buffer_mutation "c"
output %neg = user "y"
output %a = user "old_a"
)",
                                {{"a", at::zeros({2})}, {"b", at::ones({2})}, {"c", at::zeros({2})}}));
  const auto results = interpreter.run({at::ones({2})});
  results[0].toTensor().fill_(9);  // the caller's to write
  results[1].toTensor().fill_(9);
  CHECK(at::equal(interpreter.buffer("a"), at::ones({2})));
  CHECK(at::equal(interpreter.buffer("b"), at::zeros({2})));
  CHECK(at::equal(interpreter.buffer("c"), -at::ones({2})));
  interpreter.run({at::ones({2})});
  CHECK(at::equal(interpreter.buffer("a"), at::zeros({2})));
}

TEST_CASE("a mutated user input is written into the caller's tensor; outputs of its old value stay") {
  Interpreter interpreter(parse(R"(program
input %x: f32[2, 3] = user "x"
%add: f32[2, 3] = aten::add.Scalar(self=%x, other=1)
output %add = input_mutation "x"
output %x = user "before"
output %add = user "after"
)"));
  const auto storage = at::zeros({3, 2});
  const auto x = storage.t();  // not contiguous
  const auto results = interpreter.run({x});
  CHECK(at::equal(storage, at::ones({3, 2})));
  CHECK(at::equal(results[0].toTensor(), at::zeros({2, 3})));
  CHECK(at::equal(results[1].toTensor(), at::ones({2, 3})));
}

TEST_CASE("a cache that is written to needs no second buffer, and is what the program returns") {
  Interpreter interpreter(parse(R"(program
symbol new in [1, 8]
input %cache: f32[2, 8] = user "cache"
input %place: i64[new] = user "place"
input %states: f32[2, new] = user "states"
%index_copy: f32[2, 8] = aten::index_copy(self=%cache, dim=1, index=%place, source=%states)
%sum: f32[2] = aten::sum.dim_IntList(self=%index_copy, dim=[1])
output %index_copy = input_mutation "cache"
output %index_copy = user "cache"
output %sum = user "sum"
)"));
  const void* written = nullptr;
  interpreter.observe([&](size_t node, const std::vector<c10::IValue>& outputs) {
    if (node == 0) written = outputs[0].toTensor().data_ptr();
  });
  const auto place = at::arange(2, 4), states = at::ones({2, 2});
  auto cache = at::zeros({2, 8});
  auto results = interpreter.run({cache, place, states});
  CHECK(written == cache.data_ptr());
  CHECK(results[0].toTensor().is_same(cache));
  CHECK(at::equal(cache.slice(1, 2, 4), states));
  CHECK(at::equal(results[1].toTensor(), at::full({2}, 2.0f)));

  // Given with other strides, or lying in another input: through a buffer of its own.
  const auto storage = at::zeros({8, 2});
  results = interpreter.run({storage.t(), place, states});
  CHECK(written != storage.data_ptr());
  CHECK(at::equal(storage.t().slice(1, 2, 4), states));
  const auto both = at::zeros({2, 10});
  cache = both.slice(1, 0, 8).contiguous();
  const auto inside = cache.view({16}).slice(0, 0, 4).view({2, 2});
  results = interpreter.run({cache, place, inside});
  CHECK(written != cache.data_ptr());
  CHECK(results[0].toTensor().is_same(cache));
}

TEST_CASE("an output that is state is a copy") {
  const auto w = at::ones({2});
  Interpreter interpreter(parse("program\ninput %w: f32[2] = parameter \"w\"\noutput %w = user \"w\"\n", {{"w", w}}));
  interpreter.run({})[0].toTensor().fill_(3);
  CHECK(at::equal(w, at::ones({2})));
}

TEST_CASE("inputs with other strides than the graph was made for") {
  Interpreter interpreter(parse(R"(program
input %x: f32[2, 3] = user "x"
input %t: f32[2, 3] strides [1, 2] = user "t"
%view: f32[6] = aten::view(self=%x, size=[6])
%permute: f32[3, 2] = aten::permute(self=%t, dims=[1, 0])
%view_1: f32[6] = aten::view(self=%permute, size=[6])
output %view = user "a"
output %view_1 = user "b"
)"));
  const auto base = at::arange(6, at::kFloat).view({3, 2});
  const auto results = interpreter.run({base.t(), base.t().contiguous()});
  CHECK(at::equal(results[0].toTensor(), base.t().reshape({6})));
  CHECK(at::equal(results[1].toTensor(), at::arange(6, at::kFloat)));
}

TEST_CASE("runs are without gradients, and a number can be an input") {
  Interpreter interpreter(parse(R"(program
symbol k in [0, 9]
input %x: f32[2] = user "x"
input %k: number(k) = user "k"
%mul: f32[2] = aten::mul.Scalar(self=%x, other=k)
output %mul = user "y"
)"));
  const auto results = interpreter.run({at::ones({2}).requires_grad_(), at::scalar_tensor(3, at::kLong)});
  CHECK_FALSE(results[0].toTensor().requires_grad());
  CHECK(at::equal(results[0].toTensor(), at::full({2}, 3.0f)));
  CHECK(failure(interpreter, {at::ones({2}), at::scalar_tensor(12, at::kLong)}) ==
        "[run] input 'k': expected k in [0, 9], got 12");
}

TEST_CASE("a program without its weights is refused") {
  CHECK_THROWS_WITH_AS(Interpreter(parse_program("program\ninput %w: f32[2] = parameter \"w\"\n")),
                       "[run] the program has no data for 'w'; load its state first", Error);
}
