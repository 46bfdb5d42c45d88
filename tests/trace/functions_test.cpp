// Small functions with dynamic axes: views, mutation, broadcasting, data-dependent sizes, constants.
#include "tests/trace/trace_check.h"

namespace transporters::test {
namespace {

const Dim kBatch("batch"), kLength("length");

template <typename Function>
void check(Function function, const Tensors& samples, const std::vector<std::vector<Dim>>& dims,
           const std::vector<Tensors>& runs) {
  FunctionModule module(function);
  const Program program = trace_module(module, samples, dims);
  CAPTURE(program.str());
  check_against_eager(program, module, runs);
}

Tensors one(at::IntArrayRef sizes) { return {at::randn(sizes)}; }

}  // namespace

TEST_CASE("one dynamic dim of three survives a view by the size of another (pytorch#126607)") {
  check([](const at::Tensor& x) { return at::softmax(x.view_symint({x.sym_size(1), -1}), 0); }, one({6, 4, 2}),
        {{kBatch}}, {one({8, 4, 2}), one({1, 4, 2})});
}

TEST_CASE("a size of 1 in the sample freezes nothing (optimum#2219)") {
  const auto function = [](const at::Tensor& x) { return at::matmul(x, x.transpose(0, 1)) + x.sum({1}, true); };
  check(function, one({1, 1}), {{kBatch, kLength}}, {one({2, 7}), one({1, 3}), one({3, 1}), one({1, 1})});
}

TEST_CASE("writes through views become functional") {
  check(
      [](const at::Tensor& x) {
        auto y = x * 2;
        y.select(1, 0).add_(1);
        y.narrow_symint(0, 0, 1).zero_();
        return y;
      },
      one({4, 3}), {{kBatch}}, {one({6, 3}), one({1, 3})});
}

TEST_CASE("a mutated input is a mutation of the program") {
  FunctionModule module([](const at::Tensor& x) {
    x.add_(1);
    return x * 3;
  });
  const Program program = trace_module(module, one({2, 3}), {{kBatch}});
  REQUIRE(program.outputs.size() == 2);
  CHECK(program.outputs[0].kind == OutputKind::UserInputMutation);
  CHECK(program.outputs[0].target == "x0");
  at::Tensor x = at::zeros({5, 3});
  const auto outputs = Interpreter(program).run({x});
  CHECK(x.eq(1).all().item<bool>());
  CHECK(outputs[0].toTensor().eq(3).all().item<bool>());
}

TEST_CASE("inputs are independent even when the sample is one tensor (pytorch#139646)") {
  FunctionModule module(
      [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) { return a + b * 10 + c * 100; });
  const at::Tensor same = at::ones({3});
  const Program program = trace_module(module, {same, same, same}, {{kBatch}, {kBatch}, {kBatch}});
  check_against_eager(program, module, {{at::full({2}, 1.0), at::full({2}, 2.0), at::full({2}, 3.0)}});
}

TEST_CASE("unused inputs stay in the signature") {
  FunctionModule module([](const at::Tensor& a, const at::Tensor&) { return a * 2; });
  const Program program = trace_module(module, {at::ones({3}), at::ones({2})}, {});
  CHECK(program.graph->inputs().size() == 2);
}

TEST_CASE("reductions, concatenation, slices and expressions of sizes") {
  check(
      [](const at::Tensor& x) {
        const auto n = x.sym_size(1);
        auto y = at::cat({x, x.flip({1})}, 1);
        y = y.slice_symint(1, 1, 2 * n - 1);
        return at::cumsum(y, 1) / (y.sum(1, true).abs() + 1) +
               at::arange(y.sym_size(1).guard_int(__FILE__, __LINE__) * 0 + 1);
      },
      one({2, 5}), {{kBatch}}, {one({3, 5}), one({1, 5})});
}

TEST_CASE("data-dependent sizes get symbols of their own") {
  FunctionModule module([](const at::Tensor& x) {
    auto kept = x.masked_select(x > 0);
    return at::cat({kept, kept * 2}, 0);
  });
  const Program program = trace_module(module, one({3, 4}), {{kBatch, kLength}});
  check_against_eager(program, module, {one({5, 6}), {at::full({2, 2}, -1.0)}, one({1, 1})});
}

TEST_CASE("real tensors that the code reads become constants") {
  const at::Tensor table = at::randn({4});
  check([table](const at::Tensor& x) { return x * table + at::tensor({1.0f, 2.0f, 3.0f, 4.0f}); }, one({2, 4}),
        {{kBatch}}, {one({5, 4}), one({1, 4})});
}

TEST_CASE("a branch on data is an error that names the op") {
  FunctionModule module([](const at::Tensor& x) { return x.sum().item<double>() > 0 ? x : -x; });
  CHECK_THROWS_WITH_AS(trace_module(module, one({3}), {}), doctest::Contains("data-dependent"), Error);
}

TEST_CASE("an explicit Dim that the code fixes is an error that names the Dim") {
  FunctionModule module([](const at::Tensor& x) { return x + at::ones({4}); });
  CHECK_THROWS_WITH_AS(trace_module(module, one({4}), {{kBatch}}), doctest::Contains("batch"), Error);
}

TEST_CASE("an automatic axis that the code fixes is noted") {
  FunctionModule module([](const at::Tensor& x) { return x + at::ones({4}); });
  TraceNotes notes;
  const Program program = trace_module(module, one({4}), {{Dim::automatic()}}, &notes);
  CHECK(program.graph->inputs()[0]->sizes()[0].is(4));
  REQUIRE(!notes.empty());
  CHECK(notes[0].find("4") != std::string::npos);
}

TEST_CASE("axes that must agree become one symbol") {
  FunctionModule module([](const at::Tensor& a, const at::Tensor& b) { return a + b; });
  const Program program =
      trace_module(module, {at::randn({3, 2}), at::randn({3, 2})}, {{Dim::automatic()}, {Dim::automatic()}});
  CHECK(program.graph->inputs()[0]->sizes()[0] == program.graph->inputs()[1]->sizes()[0]);
  check_against_eager(program, module, {{at::randn({7, 2}), at::randn({7, 2})}});
  CHECK_THROWS_AS(Interpreter(program).run({at::randn({7, 2}), at::randn({6, 2})}), Error);
}

TEST_CASE("patched ops are replaced while tracing, and only then") {
  FunctionModule module([](const at::Tensor& x) { return at::relu(x); });
  TraceOptions options;
  options.patches.push_back({"aten::relu", [](BoxedOp) -> BoxedOp {
                               return [](torch::jit::Stack& stack) {
                                 const at::Tensor x = torch::jit::pop(stack).toTensor();
                                 stack.emplace_back(at::clamp(x, 0));
                               };
                             }});
  const Program program = trace_module(module, one({3}), {{kBatch}}, nullptr, options);
  for (const Node& node : *program.graph) CHECK(node.op() != "aten::relu");
  check_against_eager(program, module, {one({6})});
}

TEST_CASE("numbers that depend on constants alone are known while tracing") {
  check(
      [](const at::Tensor& x) {
        const auto steps = at::arange(4, at::kLong).cumsum(0);
        return x * steps.select(0, 3).item<int64_t>();
      },
      one({2, 3}), {{kBatch}}, {one({5, 3}), one({1, 3})});
}

TEST_CASE("a question to the data is answered by the samples, and asserted") {
  FunctionModule module([](const at::Tensor& x) { return x.gt(0).all().item<bool>() ? x * 2 : x - 1; });
  CHECK_THROWS_WITH(trace_module(module, {at::ones({2, 3})}, {{kBatch}}), doctest::Contains("data-dependent"));
  TraceNotes notes;
  const Program program =
      trace_module(module, {at::ones({2, 3})}, {{kBatch}}, &notes, TraceOptions{.answer_from_samples = true});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].starts_with("the data decides"));
  check_against_eager(program, module, {{at::ones({5, 3})}, {at::ones({1, 3}) * 4}});
  CHECK_THROWS_WITH(Interpreter(program).run({at::zeros({2, 3})}), doctest::Contains("expected"));
}

TEST_CASE("pointwise results lie in memory as their operands do, so that writes through their views work") {
  check(
      [](const at::Tensor& x) {
        auto y = x.transpose(0, 1) * 2;
        y.mul_(at::ones({4}));
        return y.transpose(0, 1).reshape_symint({-1});
      },
      one({3, 5, 4}), {{kBatch}}, {one({2, 5, 4}), one({1, 5, 4})});
}

}  // namespace transporters::test
