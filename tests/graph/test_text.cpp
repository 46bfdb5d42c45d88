#include <doctest/doctest.h>

#include <limits>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/text.h"

using namespace transporters;

namespace {

const char* const kEverything = R"(program LlamaForCausalLM
symbol batch in [1, inf] hint 2
symbol sequence in [2, 128] hint 8
symbol u0 in [0, inf]
input %p_model_embed_weight: f32[99, 32] = parameter "model.embed.weight"
input %b_inv_freq: f32[4] = buffer "inv_freq" non_persistent
input %c_0: i64[] = constant "lifted_0"
input %input_ids: i64[batch, sequence] = user "input_ids"
input None = user "attention_mask"
input 3 = user "steps"
input 0.5 = user "scale"
input True = user "flag"
input "a \"quoted\"\tname" = user "mode"
input %x: bf16[2, 3] strides [1, 2] = user "cache.layers.0.keys"
input %"odd name": f64[batch, 2*sequence + 1] = user "odd"
%embedding: f32[batch, sequence, 32] = aten::embedding(weight=%p_model_embed_weight, indices=%input_ids)  @ model.embed_tokens
%split_0: bf16[1, 3] strides [1, 2], %split_1: bf16[1, 3] strides [1, 2] = aten::split.Tensor(self=%x, split_size=1)  from "model.py:3\nmodel.py:7"
%item: number(u0) = aten::item(self=%c_0)
aten::_assert_scalar(self=u0 <= 10, assert_msg="u0 is at most 10")
%view: f32[32*batch*sequence] = aten::view(self=%embedding, size=[32*batch*sequence])
%full: f16[u0] = aten::full(size=[u0], fill_value=1e-05, dtype=f16, layout=strided, device=cpu, pin_memory=False)
%add: f64[batch, 2*sequence + 1] = aten::add.Scalar(self=%"odd name", other=2, alpha=-1.5)
%index: f32[4] = aten::index.Tensor(self=%b_inv_freq, indices=[None, %c_0])
%clone: f32[4] = aten::clone(self=%b_inv_freq, memory_format=contiguous_format)
%gelu: f32[4] = aten::gelu(self=%clone, approximate="tanh")
%clamp: f32[4] = aten::clamp(self=%gelu, max=inf)
%up: f32[1, 1, 4] = aten::upsample_nearest1d.vec(input=%clamp, output_size=None, scale_factors=[2.0])
output %clamp = buffer_mutation "inv_freq"
output %split_0 = input_mutation "cache.layers.0.keys"
output %embedding = user "logits"
output None = user "loss"
output batch = user "size"
)";

std::string error_of(const std::string& text) {
  try {
    parse_program(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a program with everything in it reads back to the same text") {
  const Program program = parse_program(kEverything);
  CHECK(program.str() == kEverything);
  CHECK(program.architecture == "LlamaForCausalLM");
  CHECK(program.ranges.at("sequence") == symbolic::Range{2, 128});
  CHECK(program.hints.count("u0") == 0);
  CHECK(program.inputs.size() == 11);
  CHECK(program.graph->inputs().size() == 6);
  CHECK_FALSE(program.inputs[1].persistent);
  CHECK(std::get<std::string>(program.inputs[8].constant) == "a \"quoted\"\tname");
  CHECK(program.graph->find_value("split_0")->producer()->source == "model.py:3\nmodel.py:7");
  CHECK(program.graph->find_value("embedding")->producer()->module_path == "model.embed_tokens");
  CHECK(program.outputs[0].kind == OutputKind::BufferMutation);
  CHECK(program.clone().str() == kEverything);
}

TEST_CASE("comments, blank lines and spaces are free") {
  const Program program = parse_program(R"(
    # a comment
    program   # no name

    input %x : f32[ 2,3 ]=user "x"   # the input
    %relu :f32[2, 3]= aten::relu( self = %x )
    output %relu = user "")");
  CHECK(
      program.str() ==
      "program\ninput %x: f32[2, 3] = user \"x\"\n%relu: f32[2, 3] = aten::relu(self=%x)\noutput %relu = user \"\"\n");
}

TEST_CASE("specs are part of the text") {
  Program program = parse_program("program\ninput %x: f32[2] = user \"x\"\noutput %x = user \"\"\n");
  program.in_spec = TreeSpec::tuple({TreeSpec::tuple({TreeSpec::leaf()}), TreeSpec::dict({"a#b"}, {TreeSpec::leaf()})});
  const Program back = parse_program(program.str());
  CHECK(back.in_spec == program.in_spec);
  CHECK(back.str() == program.str());
}

TEST_CASE("floats read back bit by bit") {
  const double values[] = {0.0,
                           -0.0,
                           1.0,
                           0.1,
                           1e-5,
                           1e300,
                           5e-324,
                           1.0 / 3,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  for (const double value : values) {
    Program program = parse_program("program\ninput %x: f32[2] = user \"x\"\n");
    auto* x = program.graph->inputs()[0];
    program.graph->append("aten::add.Scalar", {{"self", x}, {"other", value}}, {x->type()});
    const Program back = parse_program(program.str());
    CHECK_MESSAGE(identical(back.graph->front()->get("other"), Argument(value)), program.str());
  }
}

TEST_CASE("integers and floats in a number's place keep their type") {
  const Program program = parse_program(R"(program
input %x: f32[2] = user "x"
%a: f32[2] = aten::add.Scalar(self=%x, other=2)
%b: f32[2] = aten::add.Scalar(self=%a, other=2.0)
%c: f32[2] = aten::add.Scalar(self=%b, other=True)
)");
  std::vector<size_t> types;
  for (const auto& node : *program.graph) types.push_back(node.get("other").index());
  CHECK((types == std::vector<size_t>{Argument(Expr(2)).index(), Argument(2.0).index(), Argument(true).index()}));
}

TEST_CASE("every dtype has a text that reads back") {
  for (const auto dtype : {ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::BFloat16,
                           ScalarType::Long, ScalarType::Int, ScalarType::Short, ScalarType::Char, ScalarType::Byte,
                           ScalarType::Bool, ScalarType::ComplexFloat, ScalarType::ComplexDouble, ScalarType::UInt16,
                           ScalarType::Float8_e4m3fn, ScalarType::Float8_e5m2})
    CHECK(parse_dtype_text(dtype_text(dtype)) == dtype);
  CHECK(dtype_text(ScalarType::Bool) == "b8");
  CHECK_FALSE(parse_dtype_text("float"));
}

TEST_CASE("parse errors name line, column and what was expected") {
  CHECK(error_of("") == "[parse] line 1, column 1: expected 'program' on the first line, got the end of the text");
  CHECK(error_of("program\ninput %x f32[2]") ==
        "[parse] line 2, column 10: expected ':' after the input's name, got 'f32'");
  CHECK(error_of("program\ninput %x: float[2] = user \"x\"") ==
        "[parse] line 2, column 11: expected a type (f32[2, 3], i64[batch], b8[], number(u0), ...), got 'float'");
  CHECK(error_of("program\ninput %x: f32[2] = weight \"x\"") ==
        "[parse] line 2, column 20: expected the input's role (parameter, buffer, constant or user), got 'weight'");
  CHECK(error_of("program\ninput None = buffer \"x\"") ==
        "[parse] line 2, column 14: expected 'user', as only a user input can be a constant, got 'buffer'");
  CHECK(error_of("program\ninput %x: f32[2] = user x") ==
        "[parse] line 2, column 25: expected a string in double quotes, got 'x'");
  CHECK(error_of("program\ninput %x: f32[2] = user \"x") ==
        "[parse] line 2, column 25: expected '\"' at the end of the string, got the end of the line");
  CHECK(error_of("program\nsymbol s in [1; 2]") ==
        "[parse] line 2, column 14: expected the range's minimum, an integer, got '1'");
  CHECK(error_of("program\nweights") ==
        "[parse] line 2, column 1: expected symbol, input, output, in_spec, out_spec, '%name: type = op(...)' or "
        "'op(...)', "
        "got 'weights'");
  CHECK(error_of("program\nin_spec [1").starts_with("[parse] line 2, column 9: expected the JSON of a pytree: "));
}

TEST_CASE("parse errors inside a node") {
  const std::string head = "program\ninput %x: f32[2] = user \"x\"\n";
  CHECK(error_of(head + "%y: f32[2] = aten::rely(self=%x)") ==
        "[parse] line 3, column 14: unknown op 'aten::rely'; did you mean 'aten::relu', 'aten::celu', 'aten::elu'?");
  CHECK(error_of(head + "%y: f32[2] = aten::relu(input=%x)") ==
        "[parse] line 3, column 25: expected an argument of aten::relu (self), got 'input'");
  CHECK(error_of(head + "%y: f32[2] = aten::relu(self=%xx)") ==
        "[parse] line 3, column 30: expected a value that is defined above, got %xx; did you mean 'x'?");
  CHECK(error_of(head + "%y: f32[2] = aten::relu(self=%x, self=%x)") ==
        "[parse] line 3, column 34: the argument 'self' is given twice");
  CHECK(error_of(head + "%x: f32[2] = aten::relu(self=%x)") ==
        "[parse] line 3, column 1: the value %x is already defined");
  CHECK(error_of(head + "%y: f32[2] = aten::relu(self=%x") ==
        "[parse] line 3, column 32: expected ')' or ',' after an argument, got the end of the text");
  CHECK(error_of(head + "%y: f32[2] = aten::relu(self=%x) garbage") ==
        "[parse] line 3, column 34: expected the end of the line, got 'garbage'");
  CHECK(error_of(head + "%y: f32[2] strides [1, 2] = aten::relu(self=%x)") ==
        "[parse] line 3, column 20: expected 1 strides, one per size, got 2");
  CHECK(error_of(head + "%y: f32[2] = aten::to.dtype(self=%x, dtype=float32)") ==
        "[parse] line 3, column 44: expected a dtype (f32, i64, b8, ...), got 'float32'");
  CHECK(error_of(head + "%y: f32[2] = aten::dropout(input=%x, p=0.5, train=\"yes\")")
            .starts_with("[parse] line 3, column 51: expected True, False or a condition, got '\"yes\"'"));
  CHECK(error_of(head + "%y: f32[2] = aten::view(self=%x, size=[2 +])")
            .starts_with("[parse] line 3, column 40: expected an integer or a symbolic size, got '2 +': "));
  CHECK(error_of(head + "%y: f32[2] = aten::cat(tensors=[%x, 3])") ==
        "[parse] line 3, column 37: expected a value or None, got '3'");
  CHECK(error_of(head + "%y: f32[2] = aten::bernoulli(self=%x, generator=3)") ==
        "[parse] line 3, column 49: expected None, as this argument takes nothing else, got '3'");
}
