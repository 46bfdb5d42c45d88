#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/error.h"
#include "transporters/passes/decompose.h"
#include "transporters/runners/interpreter.h"

using namespace transporters;

namespace {

const auto nothing_supported = [](const std::string&) { return false; };

bool decompose_all(Program& program) { return decompose(program, nothing_supported); }

// One op on inputs of given types, as a program with a symbolic batch.
struct Case {
  std::string op;
  std::string arguments;
  std::vector<std::string> inputs;   // "%a: f32[b, 4]"
  std::vector<std::string> outputs;  // "%y: f32[b, 4]"
};

const std::vector<Case> kCases = {
    {"aten::addmm", "self=%a, mat1=%m, mat2=%n", {"%a: f32[4]", "%m: f32[b, 3]", "%n: f32[3, 4]"}, {"%y: f32[b, 4]"}},
    {"aten::addmm",
     "self=%a, mat1=%m, mat2=%n, beta=0, alpha=2",
     {"%a: f32[4]", "%m: f32[b, 3]", "%n: f32[3, 4]"},
     {"%y: f32[b, 4]"}},
    {"aten::addmm",
     "self=%a, mat1=%m, mat2=%n, beta=0.5",
     {"%a: f32[b, 4]", "%m: f32[b, 3]", "%n: f32[3, 4]"},
     {"%y: f32[b, 4]"}},
    {"aten::addmv", "self=%a, mat=%m, vec=%v, alpha=3", {"%a: f32[b]", "%m: f32[b, 3]", "%v: f32[3]"}, {"%y: f32[b]"}},
    {"aten::addr", "self=%a, vec1=%v, vec2=%w", {"%a: f32[b, 3]", "%v: f32[b]", "%w: f32[3]"}, {"%y: f32[b, 3]"}},
    {"aten::baddbmm",
     "self=%a, batch1=%m, batch2=%n, beta=2",
     {"%a: f32[b, 2, 4]", "%m: f32[b, 2, 3]", "%n: f32[b, 3, 4]"},
     {"%y: f32[b, 2, 4]"}},
    {"aten::addbmm",
     "self=%a, batch1=%m, batch2=%n",
     {"%a: f32[2, 4]", "%m: f32[b, 2, 3]", "%n: f32[b, 3, 4]"},
     {"%y: f32[2, 4]"}},
    {"aten::addcmul",
     "self=%a, tensor1=%v, tensor2=%w, value=0.5",
     {"%a: f32[b, 3]", "%v: f32[b, 1]", "%w: f32[3]"},
     {"%y: f32[b, 3]"}},
    {"aten::addcdiv",
     "self=%a, tensor1=%v, tensor2=%w",
     {"%a: f32[b, 3]", "%v: f32[b, 1]", "%w: f32[3]"},
     {"%y: f32[b, 3]"}},
    {"aten::rsub.Tensor", "self=%a, other=%v, alpha=2", {"%a: f32[b, 3]", "%v: f32[3]"}, {"%y: f32[b, 3]"}},
    {"aten::rsub.Scalar", "self=%a, other=1.5", {"%a: f32[b, 3]"}, {"%y: f32[b, 3]"}},
    {"aten::rsub.Scalar", "self=%i, other=1, alpha=2", {"%i: i64[b]"}, {"%y: i64[b]"}},
    {"aten::lerp.Tensor",
     "self=%a, end=%v, weight=%w",
     {"%a: f32[b, 3]", "%v: f32[b, 3]", "%w: f32[b, 3]"},
     {"%y: f32[b, 3]"}},
    {"aten::lerp.Scalar", "self=%a, end=%v, weight=0.3", {"%a: f32[b, 3]", "%v: f32[b, 3]"}, {"%y: f32[b, 3]"}},
    {"aten::square", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::square", "self=%i", {"%i: i64[b]"}, {"%y: i64[b]"}},
    {"aten::rsqrt", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::frac", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::expm1", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::log1p", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::silu", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::mish", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::softplus", "self=%a, beta=2, threshold=1", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::log_sigmoid", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::hardsigmoid", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::hardswish", "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}},
    {"aten::glu", "self=%a", {"%a: f32[b, 6]"}, {"%y: f32[b, 3]"}},
    {"aten::logaddexp", "self=%a, other=%v", {"%a: f32[b, 3]", "%v: f32[3]"}, {"%y: f32[b, 3]"}},
    {"aten::xlogy.Tensor", "self=%a, other=%v", {"%a: f32[b]", "%v: f32[b]"}, {"%y: f32[b]"}},
    {"aten::hypot", "self=%a, other=%v", {"%a: f32[b]", "%v: f32[b]"}, {"%y: f32[b]"}},
    {"aten::roll", "self=%a, shifts=[1, -2], dims=[0, 1]", {"%a: f32[b, 6]"}, {"%y: f32[b, 6]"}},
    {"aten::roll", "self=%a, shifts=[9], dims=[-1]", {"%a: f32[b, 6]"}, {"%y: f32[b, 6]"}},
    {"aten::var.correction", "self=%a, dim=[-1]", {"%a: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::var.correction", "self=%a, dim=[0, 1], correction=0, keepdim=True", {"%a: f32[b, 6]"}, {"%y: f32[1, 1]"}},
    {"aten::std.correction", "self=%a, dim=None, correction=2", {"%a: f32[b, 6]"}, {"%y: f32[]"}},
    {"aten::var_mean.correction", "self=%a, dim=[1], correction=0.5", {"%a: f32[b, 6]"}, {"%y: f32[b]", "%z: f32[b]"}},
    {"aten::linalg_vector_norm", "self=%a, dim=[1]", {"%a: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::linalg_vector_norm", "self=%a, ord=1, keepdim=True", {"%a: f32[b, 6]"}, {"%y: f32[1, 1]"}},
    {"aten::linalg_vector_norm", "self=%a, ord=inf, dim=[-1]", {"%a: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::linalg_vector_norm", "self=%a, ord=-inf, dim=[-1]", {"%a: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::linalg_vector_norm", "self=%a, ord=3, dim=[0], dtype=f64", {"%a: f32[b, 6]"}, {"%y: f64[6]"}},
    {"aten::cosine_similarity", "x1=%a, x2=%v, dim=-1", {"%a: f32[b, 6]", "%v: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::cosine_similarity", "x1=%a, x2=%v, eps=0.5", {"%a: f32[b, 3, 2]", "%v: f32[b, 3, 2]"}, {"%y: f32[b, 2]"}},
    {"aten::pairwise_distance", "x1=%a, x2=%v", {"%a: f32[b, 6]", "%v: f32[b, 6]"}, {"%y: f32[b]"}},
    {"aten::pairwise_distance", "x1=%a, x2=%v, p=1, keepdim=True", {"%a: f32[b, 6]", "%v: f32[6]"}, {"%y: f32[b, 1]"}},
    {"aten::_weight_norm", "v=%a, g=%v", {"%a: f32[4, 3, 2]", "%v: f32[4, 1, 1]"}, {"%y: f32[4, 3, 2]"}},
    {"aten::_weight_norm", "v=%a, g=%v, dim=-1", {"%a: f32[4, 3]", "%v: f32[]"}, {"%y: f32[4, 3]"}},
    {"aten::_trilinear",
     "i1=%a, i2=%v, i3=%w, expand1=[1, 3], expand2=[0], expand3=[1, 2], sumdim=[2, 3]",
     {"%a: f32[b, 2]", "%v: f32[4, 2, 3]", "%w: f32[b, 3]"},
     {"%y: f32[b, 4]"}},
    {"aten::fft_fft", "self=%a", {"%a: f32[b, 6]"}, {"%y: c64[b, 6]"}},
    {"aten::fft_fft", "self=%z, n=4, norm=\"ortho\"", {"%z: c64[b, 6]"}, {"%y: c64[b, 4]"}},
    {"aten::fft_fft", "self=%i, dim=0", {"%i: i64[b, 6]"}, {"%y: c64[b, 6]"}},
    {"aten::fft_ifft", "self=%z, n=9, dim=-1", {"%z: c64[b, 6]"}, {"%y: c64[b, 9]"}},
    {"aten::fft_ifft", "self=%a, norm=\"forward\"", {"%a: f32[b, 6]"}, {"%y: c64[b, 6]"}},
    {"aten::fft_fft2", "self=%z", {"%z: c64[b, 3, 4]"}, {"%y: c64[b, 3, 4]"}},
    {"aten::fft_ifft2", "self=%z, s=[-1, 5]", {"%z: c64[b, 3, 4]"}, {"%y: c64[b, 3, 5]"}},
    {"aten::fft_fftn", "self=%z, dim=[0, 1], norm=\"forward\"", {"%z: c64[b, 3, 4]"}, {"%y: c64[b, 3, 4]"}},
    {"aten::fft_fftn", "self=%a, s=[2, 4]", {"%a: f32[b, 3, 4]"}, {"%y: c64[b, 2, 4]"}},
    {"aten::fft_ifftn", "self=%z", {"%z: c64[b, 3]"}, {"%y: c64[b, 3]"}},
    {"aten::fft_rfft", "self=%a, n=5", {"%a: f32[b, 6]"}, {"%y: c64[b, 3]"}},
    {"aten::fft_rfft", "self=%a, n=b, dim=0", {"%a: f32[b, 6]"}, {"%y: c64[FloorDiv(b, 2) + 1, 6]"}},
    {"aten::fft_rfft2", "self=%a", {"%a: f32[b, 6]"}, {"%y: c64[b, 4]"}},
    {"aten::fft_rfftn", "self=%a, dim=[1, 0], norm=\"ortho\"", {"%a: f32[4, 6]"}, {"%y: c64[3, 6]"}},
    {"aten::fft_irfft", "self=%z", {"%z: c64[b, 4]"}, {"%y: f32[b, 6]"}},
    {"aten::fft_irfft", "self=%z, n=9", {"%z: c64[b, 4]"}, {"%y: f32[b, 9]"}},
    {"aten::fft_irfft2", "self=%z, norm=\"ortho\"", {"%z: c64[b, 3, 4]"}, {"%y: f32[b, 3, 6]"}},
    {"aten::fft_irfftn", "self=%z, s=[3, 5]", {"%z: c64[b, 3, 4]"}, {"%y: f32[b, 3, 5]"}},
};

Program build(const Case& test) {
  std::string text = "program\nsymbol b in [1, inf] hint 5\n", outputs;
  for (const auto& input : test.inputs)
    text += "input " + input + " = user \"" + input.substr(1, input.find(':') - 1) + "\"\n";
  for (const auto& output : test.outputs) {
    text += (outputs.empty() ? "" : ", ") + output;
    outputs += "output " + output.substr(0, output.find(':')) + " = user \"" + output.substr(1, 1) + "\"\n";
  }
  Program program = parse_program(text + " = " + test.op + "(" + test.arguments + ")  @ model.head\n" + outputs);
  verify(program);
  return program;
}

std::vector<at::Tensor> inputs_of(const Program& program, int64_t batch) {
  std::vector<at::Tensor> inputs;
  for (const auto* input : program.graph->inputs()) {
    std::vector<int64_t> sizes;
    for (const auto& size : input->sizes()) sizes.push_back(size.as_integer().value_or(batch));
    if (input->dtype() == at::kComplexFloat)
      inputs.push_back(at::randn(sizes, at::kComplexFloat));
    else
      inputs.push_back(input->dtype() == at::kLong ? at::randint(-9, 9, sizes) : at::rand(sizes) * 2 + 0.05);
  }
  return inputs;
}

}  // namespace

TEST_CASE("each decomposition computes what its op computes") {
  at::manual_seed(0);
  for (const auto& test : kCases) {
    CAPTURE(test.op + "(" + test.arguments + ")");
    Program program = build(test);
    Interpreter before(program);
    REQUIRE(decompose_all(program));
    verify(program);
    CAPTURE(program.str());
    for (const auto& node : *program.graph) {
      CHECK(node.op() != test.op);
      CHECK(node.module_path == "model.head");
    }
    Interpreter after(program);
    for (const int64_t batch : {5, 1}) {
      const auto inputs = inputs_of(program, batch);
      const auto expected = before.run(inputs), got = after.run(inputs);
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(at::allclose(got[i].toTensor(), expected[i].toTensor(), 1e-4, 1e-5, /*equal_nan=*/true));
    }
  }
}

TEST_CASE("every row of the table has a case") {
  for (const auto& row : decomposition_table())
    CHECK_MESSAGE(std::any_of(kCases.begin(), kCases.end(), [&](const Case& test) { return test.op == row.op; }),
                  std::string(row.op));
}

TEST_CASE("special values") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto a = at::tensor({0.0f, 0.0f, 1.0f, inf, -inf, nan, 100.0f});
  const auto v = at::tensor({0.0f, nan, 0.0f, inf, -inf, 1.0f, -100.0f});
  for (const std::string op : {"aten::xlogy.Tensor", "aten::logaddexp", "aten::softplus", "aten::log_sigmoid"}) {
    const bool binary = op == "aten::xlogy.Tensor" || op == "aten::logaddexp";
    Case test{op, binary ? "self=%a, other=%v" : "self=%a", {"%a: f32[b]"}, {"%y: f32[b]"}};
    if (binary) test.inputs.push_back("%v: f32[b]");
    Program program = build(test);
    Interpreter before(program);
    decompose_all(program);
    const std::vector<at::Tensor> inputs = binary ? std::vector{a, v} : std::vector{a};
    CHECK_MESSAGE(at::allclose(Interpreter(program).run(inputs)[0].toTensor(), before.run(inputs)[0].toTensor(), 1e-4,
                               1e-5, true),
                  op);
  }
}

TEST_CASE("only unsupported ops are rewritten, and the results again") {
  const std::string text = R"(program
symbol b in [1, inf]
input %x: f32[b, 4] = user "x"
%mish: f32[b, 4] = aten::mish(self=%x)  @ act
%square: f32[b, 4] = aten::square(self=%mish)
output %square = user "y"
)";
  Program program = parse_program(text);
  CHECK(decompose(program, [](const std::string& op) { return op != "aten::mish" && op != "aten::square"; }));
  verify(program);
  CHECK(program.str() == R"(program
symbol b in [1, inf]
input %x: f32[b, 4] = user "x"
%softplus: f32[b, 4] = aten::softplus(self=%x)  @ act
%tanh: f32[b, 4] = aten::tanh(self=%softplus)  @ act
%mish: f32[b, 4] = aten::mul.Tensor(self=%x, other=%tanh)  @ act
%square: f32[b, 4] = aten::mul.Tensor(self=%mish, other=%mish)
output %square = user "y"
)");
  program = parse_program(text);
  CHECK(decompose(program, [](const std::string& op) { return op != "aten::mish" && op != "aten::softplus"; }));
  CHECK(program.str().find("aten::softplus") == std::string::npos);
  CHECK_FALSE(decompose(program, [](const std::string&) { return true; }));
}

TEST_CASE("a decomposition of the wrong type is a bug that is named") {
  const DecompositionRow wrong[] = {{"aten::square", [](const Node& node, NodeBuilder& build) {
                                       return std::vector<Value*>{build("aten::sum", {{"self", node.get("self")}})};
                                     }}};
  Program program = parse_program(
      "program\ninput %x: f32[4] = user \"x\"\n%y: f32[4] = aten::square(self=%x)\noutput %y = user \"y\"\n");
  CHECK_THROWS_WITH_AS(decompose(program, nothing_supported, wrong),
                       "the decomposition of 'aten::square' gives f32[] in place of f32[4]", InternalError);
}
