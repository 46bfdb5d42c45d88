#include "tests/dynamo/support.h"
#include "transporters/dynamo/functionalize.h"

namespace transporters::dynamo {
namespace {

// The nodes and outputs of the functional program.
std::string functional(const std::string& text) {
  Program program = parse_program("program Net\n" + text);
  functionalize(program);
  verify(program);
  const std::string printed = program.str();
  return printed.substr(printed.find('\n', printed.rfind("input %")) + 1);
}

std::string error(const std::string& text) {
  return error_of([&] { functional(text); });
}

TEST_CASE("a graph without writes stays as it is") {
  CHECK(functional("input %x: f32[2, 3] = user \"x\"\n"
                   "%t: f32[3, 2] strides [1, 3] = aten::t(self=%x)\n"
                   "output %t = user \"y\"\n") ==
        "%t: f32[3, 2] strides [1, 3] = aten::t(self=%x)\noutput %t = user \"y\"\n");
}

TEST_CASE("a buffer that changes becomes an output, and readers after the write see it") {
  CHECK(functional("input %b: f32[3] = buffer \"count\"\n"
                   "input %x: f32[3] = user \"x\"\n"
                   "%before: f32[3] = aten::mul.Tensor(self=%b, other=2)\n"
                   "%w: f32[3] = aten::add_.Tensor(self=%b, other=%x, alpha=3)\n"
                   "%after: f32[3] = aten::mul.Tensor(self=%b, other=%w)\n"
                   "output %before = user \"0\"\n"
                   "output %after = user \"1\"\n") ==
        "%before: f32[3] = aten::mul.Tensor(self=%b, other=2)\n"
        "%add: f32[3] = aten::add.Tensor(self=%b, other=%x, alpha=3)\n"
        "%after: f32[3] = aten::mul.Tensor(self=%add, other=%add)\n"
        "output %add = buffer_mutation \"count\"\n"
        "output %before = user \"0\"\n"
        "output %after = user \"1\"\n");
}

TEST_CASE("a write through views goes into the viewed tensor, and other views are taken again") {
  CHECK(functional("input %x: f32[4, 6] = user \"x\"\n"
                   "%row: f32[6] = aten::select.int(self=%x, dim=0, index=1)\n"
                   "%flat: f32[24] = aten::view(self=%x, size=[24])\n"
                   "%part: f32[2] = aten::slice.Tensor(self=%row, start=2, end=4)\n"
                   "%z: f32[2] = aten::zero_(self=%part)\n"
                   "%sum: f32[24] = aten::relu(self=%flat)\n"
                   "output %sum = user \"sum\"\n"
                   "output %part = user \"part\"\n") ==
        "%row: f32[6] = aten::select.int(self=%x, dim=0, index=1)\n"
        "%flat: f32[24] = aten::view(self=%x, size=[24])\n"
        "%part: f32[2] = aten::slice.Tensor(self=%row, start=2, end=4)\n"
        "%zero: f32[2] = aten::zero(self=%part)\n"
        "%slice_scatter: f32[6] = aten::slice_scatter(self=%row, src=%zero, start=2, end=4)\n"
        "%select_scatter: f32[4, 6] = aten::select_scatter(self=%x, src=%slice_scatter, dim=0, index=1)\n"
        "%view: f32[24] = aten::view(self=%select_scatter, size=[24])\n"
        "%sum: f32[24] = aten::relu(self=%view)\n"
        "output %select_scatter = input_mutation \"x\"\n"
        "output %sum = user \"sum\"\n"
        "output %zero = user \"part\"\n");
}

TEST_CASE("results are cast to the type of the tensor that is written") {
  CHECK(functional("input %x: i64[3] = user \"x\"\n"
                   "input %y: f32[3] = user \"y\"\n"
                   "%n: i64[3] = aten::clone(self=%x)\n"
                   "%w: i64[3] = aten::copy_(self=%n, src=%y)\n"
                   "%e: i64[3] = aten::eq_.Scalar(self=%w, other=1)\n"
                   "output %e = user \"e\"\n") ==
        "%n: i64[3] = aten::clone(self=%x)\n"
        "%copy: i64[3] = aten::copy(self=%n, src=%y)\n"
        "%eq: b8[3] = aten::eq.Scalar(self=%copy, other=1)\n"
        "%_to_copy: i64[3] = aten::_to_copy(self=%eq, dtype=i64)\n"
        "output %_to_copy = user \"e\"\n");
}

TEST_CASE("batch norm in training mode moves its statistics, which its schema does not say") {
  const std::string inputs =
      "input %m: f32[3] = buffer \"mean\"\ninput %v: f32[3] = buffer \"var\"\ninput %x: f32[2, 3] = user \"x\"\n";
  CHECK(functional(inputs + "%y: f32[2, 3] = aten::batch_norm(input=%x, weight=None, bias=None, running_mean=%m, "
                            "running_var=%v, training=True, momentum=0.1, eps=1e-05, cudnn_enabled=True)\n"
                            "%t: f32[3, 2] strides [1, 3] = aten::t(self=%y)\n"
                            "%s: f32[3] = aten::relu(self=%m)\n"
                            "output %y = user \"y\"\noutput %t = user \"t\"\noutput %s = user \"s\"\n") ==
        "%_native_batch_norm_legit_functional_0: f32[2, 3], %_native_batch_norm_legit_functional_1: f32[3], "
        "%_native_batch_norm_legit_functional_2: f32[3], %_native_batch_norm_legit_functional_3: f32[3], "
        "%_native_batch_norm_legit_functional_4: f32[3] = aten::_native_batch_norm_legit_functional(input=%x, "
        "weight=None, "
        "bias=None, running_mean=%m, running_var=%v, training=True, momentum=0.1, eps=1e-05)\n"
        "%t: f32[3, 2] strides [1, 3] = aten::t(self=%_native_batch_norm_legit_functional_0)\n"
        "%s: f32[3] = aten::relu(self=%_native_batch_norm_legit_functional_3)\n"
        "output %_native_batch_norm_legit_functional_3 = buffer_mutation \"mean\"\n"
        "output %_native_batch_norm_legit_functional_4 = buffer_mutation \"var\"\n"
        "output %_native_batch_norm_legit_functional_0 = user \"y\"\n"
        "output %t = user \"t\"\noutput %s = user \"s\"\n");
  const std::string evaluating =
      "%y: f32[2, 3] = aten::batch_norm(input=%x, weight=None, bias=None, running_mean=%m, running_var=%v, "
      "training=False, momentum=0.1, eps=1e-05, cudnn_enabled=True)\noutput %y = user \"y\"\n";
  CHECK(functional(inputs + evaluating) == evaluating);
  CHECK(error(inputs + "%y: f32[2, 3] = aten::instance_norm(input=%x, weight=None, bias=None, running_mean=%m, "
                       "running_var=%v, use_input_stats=True, momentum=0.1, eps=1e-05, cudnn_enabled=True)\n"
                       "output %y = user \"y\"\n") ==
        "[dynamo] op 'aten::instance_norm': changes its running statistics, which is not supported; call eval() on the "
        "module before exporting it");
}

TEST_CASE("what can't be made functional is told") {
  CHECK(error("input %w: f32[3] = parameter \"w\"\n%a: f32[3] = aten::relu_(self=%w)\noutput %a = user \"a\"\n") ==
        "[dynamo] the program writes to 'w'; only buffers and inputs can change, register it as a buffer");
  CHECK(error("input %x: f32[3] = user \"x\"\n%e: f32[2, 3] strides [0, 1] = aten::expand(self=%x, size=[2, 3])\n"
              "%a: f32[2, 3] strides [0, 1] = aten::relu_(self=%e)\noutput %a = user \"a\"\n") ==
        "[dynamo] op 'aten::expand': is written through, which is not supported for this view");
  CHECK(error("input %x: f32[2, 3] strides [1, 2] = user \"x\"\n%r: f32[6] = aten::reshape(self=%x, shape=[6])\n"
              "%a: f32[6] = aten::relu_(self=%r)\noutput %a = user \"a\"\n")
            .find("whether it shares its input's memory depends on the layout") != std::string::npos);
  CHECK(error("input %x: f32[3] = user \"x\"\n%y: f32[3] = aten::sin.out(self=%x, out=%x)\noutput %y = user \"y\"\n")
            .find("has no functional form") != std::string::npos);
}

}  // namespace
}  // namespace transporters::dynamo
