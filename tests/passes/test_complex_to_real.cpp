#include <doctest/doctest.h>

#include "tests/passes/text.h"
#include "transporters/passes/complex_to_real.h"
#include "transporters/passes/eliminate_dead_code.h"
#include "transporters/runners/interpreter.h"

using namespace transporters;

namespace {

// Without the parts that nothing reads.
bool rewritten(Program& program) {
  const bool changed = complex_to_real(program);
  if (changed) eliminate_dead_code(program);
  return changed;
}

}  // namespace

TEST_CASE("rotary positions become real arithmetic") {
  CHECK(after(rewritten, R"(program
symbol s in [1, inf]
input %x: f32[s, 4, 2] = user "x"
input %angle: f32[s, 4] = user "angle"
%ones_like: f32[s, 4] = aten::ones_like(self=%angle)
%polar: c64[s, 4] = aten::polar(abs=%ones_like, angle=%angle)  @ rotary
%z: c64[s, 4] = aten::view_as_complex(self=%x)  @ attention
%mul: c64[s, 4] = aten::mul.Tensor(self=%z, other=%polar)  @ attention
%out: f32[s, 4, 2] = aten::view_as_real(self=%mul)  @ attention
output %out = user "y"
)") == R"(program
symbol s in [1, inf]
input %x: f32[s, 4, 2] = user "x"
input %angle: f32[s, 4] = user "angle"
%ones_like: f32[s, 4] = aten::ones_like(self=%angle)
%cos: f32[s, 4] = aten::cos(self=%angle)  @ rotary
%mul_1: f32[s, 4] = aten::mul.Tensor(self=%ones_like, other=%cos)  @ rotary
%sin: f32[s, 4] = aten::sin(self=%angle)  @ rotary
%mul_2: f32[s, 4] = aten::mul.Tensor(self=%ones_like, other=%sin)  @ rotary
%select: f32[s, 4] strides [8, 2] = aten::select.int(self=%x, dim=-1, index=0)  @ attention
%select_1: f32[s, 4] strides [8, 2] = aten::select.int(self=%x, dim=-1, index=1)  @ attention
%mul_3: f32[s, 4] = aten::mul.Tensor(self=%select, other=%mul_1)  @ attention
%mul_4: f32[s, 4] = aten::mul.Tensor(self=%select_1, other=%mul_2)  @ attention
%sub: f32[s, 4] = aten::sub.Tensor(self=%mul_3, other=%mul_4)  @ attention
%mul_5: f32[s, 4] = aten::mul.Tensor(self=%select_1, other=%mul_1)  @ attention
%mul_6: f32[s, 4] = aten::mul.Tensor(self=%select, other=%mul_2)  @ attention
%add: f32[s, 4] = aten::add.Tensor(self=%mul_5, other=%mul_6)  @ attention
%out: f32[s, 4, 2] = aten::stack(tensors=[%sub, %add], dim=-1)  @ attention
output %out = user "y"
)");
}

TEST_CASE("a transform of real numbers keeps no imaginary part before it") {
  CHECK(after(rewritten, R"(program
symbol b in [1, inf]
input %x: f32[b, 8] = user "x"
%z: c64[b, 8] = aten::_to_copy(self=%x, dtype=c64)
%fft: c64[b, 8] = aten::_fft_c2c(self=%z, dim=[0, 1], normalization=0, forward=True)
%real: f32[b, 8] strides [16, 2] = aten::real(self=%fft)
output %real = user "y"
)") == R"(program
symbol b in [1, inf]
input %x: f32[b, 8] = user "x"
%_to_copy: f32[b, 8] = aten::_to_copy(self=%x, dtype=f32)
%_fft_r2c: c64[b, 8] = aten::_fft_r2c(self=%_to_copy, dim=[0, 1], normalization=0, onesided=False)
%view_as_real: f32[b, 8, 2] = aten::view_as_real(self=%_fft_r2c)
%select: f32[b, 8] strides [16, 2] = aten::select.int(self=%view_as_real, dim=-1, index=0)
output %select = user "y"
)");
}

TEST_CASE("ops without a formula read whole complex tensors again") {
  CHECK(after(rewritten, R"(program
input %x: f32[4] = user "x"
%z: c64[4] = aten::complex(real=%x, imag=%x)
%neg: c64[4] = aten::neg(self=%z)
%tan: c64[4] = aten::tan(self=%neg)
%abs: f32[4] = aten::abs(self=%tan)
output %abs = user "y"
)") == R"(program
input %x: f32[4] = user "x"
%neg_1: f32[4] = aten::neg(self=%x)
%neg_2: f32[4] = aten::neg(self=%x)
%stack: f32[4, 2] = aten::stack(tensors=[%neg_1, %neg_2], dim=-1)
%view_as_complex: c64[4] = aten::view_as_complex(self=%stack)
%tan: c64[4] = aten::tan(self=%view_as_complex)
%view_as_real: f32[4, 2] = aten::view_as_real(self=%tan)
%select: f32[4] strides [2] = aten::select.int(self=%view_as_real, dim=-1, index=0)
%select_1: f32[4] strides [2] = aten::select.int(self=%view_as_real, dim=-1, index=1)
%mul: f32[4] = aten::mul.Tensor(self=%select, other=%select)
%mul_1: f32[4] = aten::mul.Tensor(self=%select_1, other=%select_1)
%add: f32[4] = aten::add.Tensor(self=%mul, other=%mul_1)
%abs: f32[4] = aten::sqrt(self=%add)
output %abs = user "y"
)");
}

TEST_CASE("real programs and transforms between real tensors stay") {
  CHECK(after(rewritten, R"(program
input %x: f32[8] = user "x"
%fft: c64[5] = aten::_fft_r2c(self=%x, dim=[0], normalization=0, onesided=True)
%pairs: f32[5, 2] = aten::view_as_real(self=%fft)
output %pairs = user "y"
)") == "unchanged");
}

TEST_CASE("complex state is seen as two real tensors without a copy") {
  Program program = parse_program(R"(program
input %b_table: c64[2, 3] = buffer "table"
input %x: f32[3] = user "x"
%mul: c64[2, 3] = aten::mul.Tensor(self=%b_table, other=%x)
%imag: f32[2, 3] strides [6, 2] = aten::imag(self=%mul)
output %imag = user "y"
)");
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  program.state["table"] = {.dtype = ScalarType::ComplexFloat,
                            .sizes = {2, 3},
                            .strides = {3, 1},
                            .data = numbers.data(),
                            .owner = nullptr,
                            .file = "table.safetensors",
                            .file_offset = 100};
  REQUIRE(rewritten(program));
  verify(program);
  CHECK(program.str() == R"(program
input %b_table_imag: f32[2, 3] strides [6, 2] = buffer "table.imag"
input %x: f32[3] = user "x"
%mul_2: f32[2, 3] = aten::mul.Tensor(self=%b_table_imag, other=%x)
output %mul_2 = user "y"
)");
  CHECK_FALSE(program.state.contains("table"));
  const TensorData& imag = program.state.at("table.imag");
  CHECK(imag.data == numbers.data() + 1);
  CHECK(imag.strides == std::vector<int64_t>{6, 2});
  CHECK(imag.file_offset == 104);
  const at::Tensor y = Interpreter(program).run({at::tensor({1.0f, 2.0f, 3.0f})})[0].toTensor();
  CHECK(at::equal(y, at::tensor({2.0f, 8.0f, 18.0f, 8.0f, 20.0f, 36.0f}).view({2, 3})));
}

namespace {

struct Case {
  std::string node;  // reads %z: c64[2, 3], %w: c64[2, 3], %x: f32[3]
  std::string type = "c64[2, 3]";
};

const std::vector<Case> kCases = {
    {"aten::mul.Tensor(self=%z, other=%w)"},
    {"aten::mul.Tensor(self=%x, other=%z)"},
    {"aten::mul.Tensor(self=%z, other=2.5)"},
    {"aten::add.Tensor(self=%z, other=%w, alpha=2)"},
    {"aten::add.Tensor(self=%x, other=%w)"},
    {"aten::sub.Tensor(self=%z, other=%w)"},
    {"aten::sub.Tensor(self=%x, other=%w, alpha=3)"},
    {"aten::sub.Tensor(self=%z, other=1.5)"},
    {"aten::rsub.Scalar(self=%z, other=1, alpha=2)"},
    {"aten::rsub.Tensor(self=%z, other=%w)"},
    {"aten::rsub.Tensor(self=%x, other=%w)"},
    {"aten::div.Tensor(self=%z, other=%w)"},
    {"aten::div.Tensor(self=%x, other=%w)"},
    {"aten::div.Tensor(self=%z, other=%x)"},
    {"aten::reciprocal(self=%z)"},
    {"aten::pow.Tensor_Scalar(self=%z, exponent=2)"},
    {"aten::neg(self=%z)"},
    {"aten::exp(self=%z)"},
    {"aten::_conj_physical(self=%z)"},
    {"aten::abs(self=%z)", "f32[2, 3]"},
    {"aten::angle(self=%z)", "f32[2, 3]"},
    {"aten::real(self=%z)", "f32[2, 3] strides [6, 2]"},
    {"aten::imag(self=%z)", "f32[2, 3] strides [6, 2]"},
    {"aten::polar(abs=%x, angle=%x)", "c64[3]"},
    {"aten::cat(tensors=[%z, %w], dim=1)", "c64[2, 6]"},
    {"aten::stack(tensors=[%z, %w])", "c64[2, 2, 3]"},
    {"aten::sum.dim_IntList(self=%z, dim=[0])", "c64[3]"},
    {"aten::constant_pad_nd(self=%z, pad=[1, 0], value=2.0)", "c64[2, 4]"},
    {"aten::transpose.int(self=%z, dim0=0, dim1=1)", "c64[3, 2] strides [1, 3]"},
    {"aten::slice.Tensor(self=%z, dim=1, start=1)", "c64[2, 2] strides [3, 1]"},
    {"aten::zeros_like(self=%z)"},
    {"aten::full(size=[2, 3], fill_value=2.5, dtype=c64)"},
    {"aten::_to_copy(self=%z, dtype=c128)", "c128[2, 3]"},
    {"aten::_to_copy(self=%z, dtype=f32)", "f32[2, 3]"},
};

}  // namespace

TEST_CASE("each formula computes what its op computes") {
  at::manual_seed(0);
  const auto z = at::randn({2, 3}, at::kComplexFloat), w = at::randn({2, 3}, at::kComplexFloat);
  const auto x = at::randn({3});
  for (const auto& test : kCases) {
    CAPTURE(test.node);
    Program program = parse_program(
        "program\ninput %z: c64[2, 3] = user \"z\"\ninput %w: c64[2, 3] = user \"w\"\n"
        "input %x: f32[3] = user \"x\"\n%y: " +
        test.type + " = " + test.node + "\noutput %y = user \"y\"\n");
    verify(program);
    const at::Tensor expected = Interpreter(program).run({z, w, x})[0].toTensor();
    REQUIRE(complex_to_real(program));
    verify(program);
    CAPTURE(program.str());
    // Only the conversions at the program's ends know complex numbers.
    for (const auto& node : *program.graph) {
      bool is_complex = false;
      for (const auto* output : node.outputs()) is_complex = is_complex || c10::isComplexType(output->dtype());
      CHECK((!is_complex || node.is("aten::view_as_complex")));
    }
    const at::Tensor got = Interpreter(program).run({z, w, x})[0].toTensor();
    CHECK((got.scalar_type() == expected.scalar_type()));
    CHECK(at::allclose(got, expected, 1e-4, 1e-5));
  }
}
