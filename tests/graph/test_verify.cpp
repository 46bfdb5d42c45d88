#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/symbol_sources.h"

using namespace transporters;

namespace {

const char* const kValid = R"(program
symbol batch in [1, inf]
symbol u0 in [0, inf]
input %w: f32[4] = parameter "w"
input %cache: f32[4] = buffer "cache"
input %x: f32[batch, 4] = user "x"
%mul: f32[batch, 4] = aten::mul.Tensor(self=%x, other=%w)
%nonzero: i64[u0, 2] = aten::nonzero(self=%mul)
%add: f32[4] = aten::add.Scalar(self=%cache, other=1)
%full: f32[u0] = aten::full(size=[u0], fill_value=0.0)
output %add = buffer_mutation "cache"
output %mul = user "y"
output %full = user "z"
)";

std::string failure(const Program& program) {
  try {
    verify(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "valid";
}

std::string failure(std::string_view text) { return failure(parse_program(text)); }

TensorType f32(std::vector<Expr> sizes) { return {ScalarType::Float, std::move(sizes), {}}; }

}  // namespace

TEST_CASE("a valid program passes") {
  CHECK(failure(kValid) == "valid");
  CHECK(failure("program\n") == "valid");
}

TEST_CASE("values are defined before they are read") {
  Program program = parse_program(kValid);
  auto* mul = program.graph->front();
  program.graph->move_before(mul, nullptr);
  CHECK(failure(program) == "invalid program: value %mul is read before it is defined in '%nonzero = aten::nonzero'");
}

TEST_CASE("arguments match the schema") {
  const std::string head = "program\ninput %x: f32[4] = user \"x\"\n";
  Program program = parse_program(head);
  auto* x = program.graph->inputs()[0];
  program.graph->append("aten::relu", {}, {f32({4})});
  CHECK(failure(program) == "invalid program: the argument 'self' is missing in '%relu = aten::relu'");

  program = parse_program(head);
  x = program.graph->inputs()[0];
  program.graph->append("aten::view", {{"self", x}, {"size", std::string("4")}}, {f32({4})})->module_path =
      "model.head";
  CHECK(failure(program) ==
        "invalid program: the argument 'size' does not match the schema's type: \"4\" in '%view = aten::view' at "
        "model.head");

  CHECK(failure(head + "%y: f32[4] = aten::cat(tensors=[%x, None])") ==
        "invalid program: the argument 'tensors' does not "
        "match the schema's type: [%x, None] in '%y = aten::cat'");
  CHECK(failure(head + "%y: f32[4] = aten::relu(self=None)") ==
        "invalid program: the argument 'self' does not match the schema's type: None in '%y = aten::relu'");
}

TEST_CASE("ops are functional") {
  CHECK(failure("program\ninput %x: f32[4] = user \"x\"\n%y: f32[4] = aten::relu_(self=%x)") ==
        "invalid program: an op that writes to its inputs in '%y = aten::relu_'");
}

TEST_CASE("outputs match the schema") {
  const std::string head = "program\nsymbol u0 in [0, 9]\ninput %x: f32[4] = user \"x\"\n";
  CHECK(failure(head + "%a: f32[4], %b: f32[4] = aten::relu(self=%x)") ==
        "invalid program: the schema has 1 outputs, the node 2 in '%a, %b = aten::relu'");
  CHECK(failure(head + "%a: number(u0) = aten::relu(self=%x)") ==
        "invalid program: output %a is number(u0) where the schema returns a tensor in '%a = aten::relu'");
  CHECK(failure(head + "%a: f32[4] = aten::item(self=%x)") ==
        "invalid program: output %a is f32[4] where the schema returns a number in '%a = aten::item'");
}

TEST_CASE("strides have the rank of the sizes") {
  Program program = parse_program(kValid);
  program.graph->find_value("mul")->set_type(
      TensorType{ScalarType::Float, {Expr::symbol("batch"), 4}, {Expr(1), Expr(2), Expr(3)}});
  CHECK(failure(program) == "invalid program: value %mul has 3 strides for 2 sizes");
}

TEST_CASE("the signature lists the graph's inputs in order") {
  Program program = parse_program(kValid);
  std::swap(program.inputs[0], program.inputs[1]);
  CHECK(failure(program) == "invalid program: input 'cache' is not the graph's input number 0");

  program = parse_program(kValid);
  program.graph->add_input("extra", f32({1}));
  CHECK(failure(program) == "invalid program: graph input %extra is not in the signature");

  program = parse_program(kValid);
  program.inputs[1].target = "w";
  CHECK(failure(program) == "invalid program: two inputs are named 'w'");

  program = parse_program(kValid);
  program.inputs[0].persistent = false;
  CHECK(failure(program) == "invalid program: input 'w' is not persistent, but no buffer");

  CHECK(failure("program\ninput %x: f32[2] = user \"x\"\ninput %w: f32[2] = parameter \"w\"") ==
        "invalid program: input 'w' is a parameter, buffer or constant after a user input");
}

TEST_CASE("state has the type of its input") {
  Program program = parse_program(kValid);
  TensorData data;
  data.sizes = {4};
  data.strides = {1};
  program.state["cache"] = data;
  CHECK(failure(program) == "invalid program: input 'w' has no state");
  data.sizes = {5};
  program.state["w"] = data;
  CHECK(failure(program) == "invalid program: input 'w' is f32[4], its state f32[5]");
  data.sizes = {4};
  program.state["w"] = data;
  CHECK(failure(program) == "valid");
}

TEST_CASE("the signature lists the graph's outputs in order, mutations first and of the right type") {
  Program program = parse_program(kValid);
  program.graph->set_output(1, program.graph->find_value("nonzero"));
  CHECK(failure(program) == "invalid program: output 'y' is not the graph's output number 1");
  program.update_outputs();
  CHECK(failure(program) == "valid");

  program = parse_program(kValid);
  program.graph->add_output(program.graph->find_value("mul"));
  CHECK(failure(program) == "invalid program: graph output %mul is not in the signature");

  const std::string head =
      "program\ninput %b: f32[2] = buffer \"b\"\ninput %x: f32[2] = user \"x\"\n"
      "%i: i64[2] = aten::to.dtype(self=%x, dtype=i64)\n";
  CHECK(failure(head + "output %x = user \"y\"\noutput %x = buffer_mutation \"b\"") ==
        "invalid program: the mutation of 'b' comes after a user output");
  CHECK(failure(head + "output %x = buffer_mutation \"x\"") ==
        "invalid program: the mutated buffer 'x' does not exist");
  CHECK(failure(head + "output %x = input_mutation \"b\"") ==
        "invalid program: the mutated user input 'b' does not exist");
  CHECK(failure(head + "output %i = buffer_mutation \"b\"") ==
        "invalid program: the new value of 'b' is i64[2], expected f32[2]");
  CHECK(failure(head + "output %x = buffer_mutation \"b\"\noutput %x = buffer_mutation \"b\"") ==
        "invalid program: 'b' is mutated by two outputs");
  CHECK(failure(head + "output None = buffer_mutation \"b\"") == "invalid program: the mutation of 'b' has no value");
}

TEST_CASE("symbols have a range, a source, and are computed before they are read") {
  CHECK(failure("program\ninput %x: f32[n] = user \"x\"") ==
        "invalid program: the symbol 'n' has no range, read by input %x");
  CHECK(failure("program\nsymbol n in [0, 9]\n%x: f32[n*n] = aten::full(size=[n*n], fill_value=1.0)") ==
        "invalid program: the symbol 'n' has no source: no input and no node has it as a size or number, read in '%x = "
        "aten::full'");
  CHECK(failure("program\nsymbol n in [5, 2]\ninput %x: f32[n] = user \"x\"") ==
        "invalid program: the range of the symbol 'n' is empty");
  Program program = parse_program(kValid);
  program.graph->move_before(program.graph->find_value("full")->producer(), program.graph->front());
  CHECK(failure(program) ==
        "invalid program: the symbol 'u0' is read before it is computed, read in '%full = aten::full'");
}

TEST_CASE("sources of symbols: a plain size first, then a linear one, then what a node computes") {
  const Program program = parse_program(R"(program
symbol a in [0, inf]
symbol b in [0, inf]
symbol u0 in [0, inf]
symbol u1 in [0, inf]
input %p: f32[2*a + 1, a] = user "p"
input %q: f32[3*b + 2, a*b] = user "q"
%n: i64[u0, 2] = aten::nonzero(self=%p)
%i: number(u1) = aten::item(self=%n)
)");
  const auto sources = find_symbol_sources(program);
  CHECK(sources.size() == 4);
  CHECK(sources.at("a").value->name() == "p");
  CHECK(sources.at("a").dim == 1);
  CHECK(sources.at("a").scale == 1);
  CHECK(sources.at("b").value->name() == "q");
  CHECK(sources.at("b").dim == 0);
  CHECK(sources.at("b").scale == 3);
  CHECK(sources.at("b").offset == 2);
  CHECK(sources.at("u0").value->name() == "n");
  CHECK_FALSE(sources.at("u1").dim.has_value());
}
