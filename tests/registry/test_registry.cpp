// Patches, fixes, translations: what they change, and that they come off again.
#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <doctest/doctest.h>

#include <thread>

#include "transporters/export/exporters.h"
#include "transporters/fixes/forget_strides.h"
#include "transporters/layers/rope.h"
#include "transporters/patches/answer_equal.h"
#include "transporters/registry/registry.h"

using namespace transporters;

namespace {

const Method<int(int)> add_one("test.add_one", [](int x) { return x + 1; });

Method<int(int)>::Factory times(int factor) {
  return [factor](std::function<int(int)> original) { return [=](int x) { return factor * original(x); }; };
}

// abs(x) + x, exported with a registry.
ExportedModel export_abs(const Registry& registry) {
  return OnnxExporter(registry).export_function(
      [](const std::vector<at::Tensor>& in) { return at::abs(in[0]) + in[0]; }, {{"x", at::ones({2, 3})}});
}

std::string graph_text(const ExportedModel& model) { return model.components().at("model").program.str(); }
std::string onnx_text(const ExportedModel& model) { return model.components().at("model").onnx->str(); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// abs becomes neg(neg(abs)).
BoxedOp twice_negated(BoxedOp original) {
  return [original](std::vector<c10::IValue>& stack) {
    original(stack);
    stack.back() = at::neg(at::neg(stack.back().toTensor()));
  };
}

}  // namespace

TEST_CASE("a method patch is in place for its scope only") {
  Registry registry;
  registry.register_patch<int(int)>("onnx", {"test.add_one"}, times(10));
  CHECK(add_one(1) == 2);
  {
    const MethodPatchScope scope(registry, {"dynamo", "onnx"});
    CHECK(add_one(1) == 20);
    int elsewhere = 0;
    std::thread([&] { elsewhere = add_one(1); }).join();
    CHECK(elsewhere == 2);
  }
  CHECK(add_one(1) == 2);
  const MethodPatchScope other_backend(registry, {"dynamo"});
  CHECK(add_one(1) == 2);
}

TEST_CASE("method patches nest in the order of registration, and one can be taken back") {
  Registry registry;
  const auto first = registry.register_patch<int(int)>("dynamo", {"test.add_one"}, times(10));
  registry.register_patch<int(int)>("dynamo", {"test.add_one"}, [](std::function<int(int)> original) {
    return [original](int x) { return original(x) + 5; };
  });
  {
    const MethodPatchScope scope(registry, {"dynamo"});
    CHECK(add_one(1) == 25);
  }
  registry.unregister(first);
  {
    const MethodPatchScope scope(registry, {"dynamo"});
    CHECK(add_one(1) == 7);
  }
  CHECK(add_one(1) == 2);
}

TEST_CASE("a node fix may erase nodes before and after the one it is given") {
  Registry registry;
  std::vector<std::string> visited;
  registry.register_fx_node_fix("onnx", "one sin", [&visited](Program& program, Node& node) {
    visited.push_back(node.op());
    if (!node.is("aten::exp")) return false;
    Node* before = node.prev();
    Node* after = node.next();
    Value* input = before->tensor("self");
    Node* made = program.graph->insert(before, "aten::sin", {{"self", input}}, {input->type()});
    program.replace_all_uses(after->output(), made->output());
    program.graph->erase(after);
    program.graph->erase(&node);
    program.graph->erase(before);
    return true;
  });
  const auto model = OnnxExporter(registry).export_function(
      [](const std::vector<at::Tensor>& in) { return at::cos(at::tanh(at::exp(at::sigmoid(in[0])))); },
      {{"x", at::ones({2, 3})}});
  // Once before decompositions and once after them. What came before the given node was seen already.
  CHECK(visited[0] == "aten::sigmoid");
  CHECK(visited[1] == "aten::exp");
  CHECK(visited.back() == "aten::cos");
  const std::string text = onnx_text(model);
  CHECK(has(text, "Sin"));
  CHECK_FALSE(has(text, "Exp"));
  CHECK_FALSE(has(text, "Tanh"));
}

TEST_CASE("patches come off when a factory or the scope's body throws") {
  Registry registry;
  registry.register_patch<int(int)>("dynamo", {"test.add_one"}, times(10));
  const auto failing = registry.register_patch<int(int)>(
      "dynamo", {"test.add_one"}, [](std::function<int(int)>) -> std::function<int(int)> { throw Error("no"); });
  CHECK_THROWS_AS(MethodPatchScope(registry, {"dynamo"}), Error);
  CHECK(add_one(1) == 2);
  registry.unregister(failing);
  try {
    const MethodPatchScope scope(registry, {"dynamo"});
    CHECK(add_one(1) == 20);
    throw Error("in the middle of an export");
  } catch (const Error&) {
  }
  CHECK(add_one(1) == 2);
}

TEST_CASE("unknown backends, paths and ops are refused with near names") {
  Registry registry;
  CHECK_THROWS_WITH_AS(registry.register_patch<int(int)>("onxx", {"test.add_one"}, times(2)),
                       doctest::Contains("unknown backend 'onxx'; did you mean 'onnx'"), Error);
  CHECK_THROWS_WITH_AS(registry.register_patch<int(int)>("onnx", {"test.add_onne"}, times(2)),
                       doctest::Contains("did you mean 'test.add_one'"), Error);
  CHECK_THROWS_WITH_AS((registry.register_patch<float(int)>(
                           "onnx", {"test.add_one"}, [](std::function<float(int)> original) { return original; })),
                       doctest::Contains("another signature"), Error);
  CHECK_THROWS_WITH_AS(registry.register_patch("onnx", {"aten::abz"}, twice_negated), doctest::Contains("aten::abz"),
                       Error);
  CHECK_THROWS_WITH_AS(registry.register_onnx_translation({"gelu"}, {}), doctest::Contains("aten::gelu"), Error);
}

TEST_CASE("the functions of the native zoo have paths") {
  const auto paths = MethodBase::paths();
  for (const char* path : {"layers.attention.attention", "layers.attention.causal_mask",
                           "layers.attention.bidirectional_mask", "layers.rope.apply_rotary"})
    CHECK(std::find(paths.begin(), paths.end(), path) != paths.end());

  using Rotate = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&);
  Registry registry;
  registry.register_patch<Rotate>("dynamo", {"layers.rope.apply_rotary"}, [](std::function<Rotate> original) {
    return [original](const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
      return original(x, cos, sin).neg();
    };
  });
  const auto x = at::rand({1, 2, 3, 4}), cos = at::rand({1, 3, 4}), sin = at::rand({1, 3, 4});
  const auto plain = apply_rotary(x, cos, sin);
  const MethodPatchScope scope(registry, {"dynamo"});
  CHECK(apply_rotary(x, cos, sin).equal(plain.neg()));
}

TEST_CASE("an op patch replaces the op while tracing, and eager stays as it was") {
  Registry registry;
  CHECK(!has(graph_text(export_abs(registry)), "aten::neg"));
  const auto id = registry.register_patch("onnx", {"aten::abs"}, twice_negated);
  CHECK(has(graph_text(export_abs(registry)), "aten::neg"));
  const auto x = at::randn({3});
  CHECK(at::abs(x).equal(x.sign() * x));
  registry.unregister(id);
  CHECK(!has(graph_text(export_abs(registry)), "aten::neg"));
}

TEST_CASE("an export that throws in a patch leaves the next one untouched") {
  Registry registry;
  const auto id = registry.register_patch("dynamo", {"aten::abs"}, [](BoxedOp) -> BoxedOp {
    return [](std::vector<c10::IValue>&) { throw Error("refused by the patch"); };
  });
  CHECK_THROWS_WITH_AS(export_abs(registry), doctest::Contains("refused by the patch"), Error);
  registry.unregister(id);
  CHECK(has(graph_text(export_abs(registry)), "aten::abs"));
}

TEST_CASE("node and program fixes rewrite the graph of their backend") {
  Registry registry;
  int programs = 0;
  registry.register_fx_program_fix("onnx", "count", [&](Program&) { return ++programs < 0; });
  registry.register_fx_node_fix("onnx", "abs to relu", [](Program& program, Node& node) {
    if (!node.is("aten::abs")) return false;
    Node* relu = program.graph->insert(&node, "aten::relu", {{"self", node.tensor("self")}}, {node.output()->type()});
    program.replace_all_uses(node.output(), relu->output());
    program.graph->erase(&node);
    return true;
  });
  const auto model = export_abs(registry);
  CHECK(programs == 1);
  CHECK(has(onnx_text(model), "Relu("));
  CHECK(!has(onnx_text(model), "Abs("));
  // The program beside the ONNX model is the traced one.
  CHECK(has(graph_text(model), "aten::abs"));
}

TEST_CASE("translations and fixes of ONNX models can be registered") {
  Registry registry;
  registry.register_onnx_translation({"aten::abs"}, [](onnx::Lowering& l, const onnx::AtenNode& n) {
    return onnx::Outputs{l.emit("Sqrt", {l.emit("Mul", {l.input(n, "self"), l.input(n, "self")})})};
  });
  std::string seen;
  registry.register_onnx_ir_fix("look", [&](onnx::Model& model) {
    seen = model.str();
    return false;
  });
  const auto model = export_abs(registry);
  CHECK(has(onnx_text(model), "Sqrt("));
  CHECK(seen == onnx_text(model));
}

TEST_CASE("the global registry has the built-in patches and fixes") {
  const auto patches = Registry::global().patch_paths("dynamo");
  CHECK(std::find(patches.begin(), patches.end(), "aten::equal") != patches.end());
  const auto fixes = Registry::global().node_fixes("onnx");
  CHECK(std::any_of(fixes.begin(), fixes.end(), [](const Pass& pass) { return pass.name == "forget_strides"; }));
}

TEST_CASE("equal is answered with a note by the built-in patch, and refused without it") {
  const auto asks = [](const std::vector<at::Tensor>& in) { return at::equal(in[0], in[1]) ? in[0] : in[0] + in[1]; };
  const NamedInputs inputs = {{"a", at::ones({2})}, {"b", at::zeros({2})}};
  const auto model = DynamoExporter().export_function(asks, inputs);
  CHECK(has(graph_text(model), "aten::add"));
  REQUIRE(model.notes.size() == 1);
  CHECK(has(model.notes[0], "aten::equal compares values; it was taken as false"));
  const Registry empty;
  CHECK_THROWS_WITH_AS(DynamoExporter(empty).export_function(asks, inputs), doctest::Contains("aten::equal"), Error);
}

TEST_CASE("strides are forgotten except where an op reads them") {
  auto program = parse_program(
      "program\n"
      "input %x: f32[2, 3] = user \"x\"\n"
      "%t: f32[3, 2] strides [1, 3] = aten::t(self=%x)\n"
      "%u: f32[3, 2] strides [1, 3] = aten::t(self=%x)\n"
      "%s: f32[6] = aten::as_strided(self=%u, size=[6], stride=[1])\n"
      "output %t = user \"t\"\n"
      "output %s = user \"s\"\n");
  bool changed = false;
  for (Node& node : *program.graph) changed |= forget_strides(program, node);
  CHECK(changed);
  const std::string text = program.str();
  CHECK(has(text, "%t: f32[3, 2] = aten::t"));
  CHECK(has(text, "%u: f32[3, 2] strides [1, 3] = aten::t"));
}
