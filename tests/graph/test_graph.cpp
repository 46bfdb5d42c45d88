#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/graph/graph.h"

using namespace transporters;

namespace {

TensorType f32(std::vector<Expr> sizes) { return {ScalarType::Float, std::move(sizes), {}}; }

// x, y -> add = x + y; mul = add * x; outputs mul, x
struct Sample {
  Graph graph;
  Value* x = graph.add_input("x", f32({2, 3}));
  Value* y = graph.add_input("y", f32({2, 3}));
  Node* add = graph.append("aten::add.Tensor", {{"self", x}, {"other", y}}, {f32({2, 3})});
  Node* mul = graph.append("aten::mul.Tensor", {{"self", add->output()}, {"other", x}}, {f32({2, 3})});
  Sample() {
    graph.add_output(mul->output());
    graph.add_output(x);
  }
};

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph) names.push_back(node.op());
  return names;
}

}  // namespace

TEST_CASE("nodes are named after their op and taken names get a suffix") {
  Graph graph;
  auto* x = graph.add_input("x", f32({4}));
  CHECK(graph.add_input("x", f32({4}))->name() == "x_1");
  CHECK(graph.append("aten::relu", {{"self", x}}, {f32({4})})->output()->name() == "relu");
  CHECK(graph.append("aten::relu", {{"self", x}}, {f32({4})})->output()->name() == "relu_1");
  CHECK(graph.append("aten::relu", {{"self", x}}, {f32({4})}, "relu")->output()->name() == "relu_2");
  auto* split = graph.append("aten::split.Tensor", {{"self", x}, {"split_size", Expr(2)}}, {f32({2}), f32({2})});
  CHECK(split->outputs()[0]->name() == "split_0");
  CHECK(split->outputs()[1]->name() == "split_1");
  auto* second = graph.append("aten::split.Tensor", {{"self", x}, {"split_size", Expr(2)}}, {f32({2}), f32({2})});
  CHECK(second->outputs()[0]->name() != "split_0");
  CHECK(graph.find_value(second->outputs()[1]->name()) == second->outputs()[1]);
}

TEST_CASE("arguments are kept in schema order without the defaults") {
  Graph graph;
  auto* x = graph.add_input("x", f32({4}));
  auto* y = graph.add_input("y", f32({4}));
  auto* node = graph.append("aten::add.Tensor", {{"alpha", Expr(1)}, {"other", y}, {"self", x}}, {f32({4})});
  REQUIRE(node->arguments().size() == 2);
  CHECK(node->arguments()[0].name == "self");
  CHECK(node->arguments()[1].name == "other");
  CHECK(node->integer("alpha") == 1);
  node->set("alpha", 2.5);
  CHECK(node->arguments().size() == 3);
  CHECK(node->real("alpha") == 2.5);
  node->set("alpha", Expr(1));
  CHECK(node->arguments().size() == 2);
}

TEST_CASE("a float argument given as an integer or as a constant expression becomes a float") {
  Graph graph;
  auto* x = graph.add_input("x", f32({4}));
  auto* dropout =
      graph.append("aten::dropout", {{"input", x}, {"p", Expr(1)}, {"train", Expr::boolean(true)}}, {f32({4})});
  CHECK(std::holds_alternative<double>(dropout->get("p")));
  CHECK(std::holds_alternative<bool>(dropout->get("train")));
  auto* add = graph.append("aten::add.Scalar", {{"self", x}, {"other", Expr::real(0.5)}}, {f32({4})});
  CHECK(std::get<double>(add->get("other")) == 0.5);
}

TEST_CASE("typed reads name the op and the argument on a wrong type") {
  Sample s;
  CHECK(s.add->tensor("self") == s.x);
  CHECK_THROWS_WITH_AS(s.add->integer("self"),
                       "op 'aten::add.Tensor': argument 'self' is a tensor, expected an integer", Error);
  CHECK_THROWS_AS(s.add->get("weight"), InternalError);
  CHECK(s.add->try_get("weight") == nullptr);
  CHECK_THROWS_WITH_AS(s.add->set("othr", s.x),
                       "op 'aten::add.Tensor': there is no argument 'othr'; did you mean 'other'?", Error);
  auto* view =
      s.graph.append("aten::view", {{"self", s.x}, {"size", std::vector<Expr>{Expr::symbol("n"), 3}}}, {f32({2, 3})});
  view->module_path = "model.head";
  CHECK(view->sizes("size")[0] == Expr::symbol("n"));
  CHECK_THROWS_WITH_AS(
      view->integers("size"),
      "op 'aten::view' at model.head: argument 'size' is the symbolic size n, expected a constant integer", Error);
}

TEST_CASE("use lists follow set, replace_all_uses and erase") {
  Sample s;
  CHECK((s.x->uses() == std::vector<Use>{{s.add, 0, 0}, {s.mul, 1, 0}}));
  s.mul->set("other", s.y);
  CHECK((s.x->uses() == std::vector<Use>{{s.add, 0, 0}}));
  CHECK((s.y->uses() == std::vector<Use>{{s.add, 1, 0}, {s.mul, 1, 0}}));
  s.graph.replace_all_uses(s.x, s.y);
  CHECK(s.x->uses().empty());
  CHECK(s.add->tensor("self") == s.y);
  CHECK(s.graph.outputs()[1] == s.y);
  CHECK_THROWS_AS(s.graph.erase(s.add), InternalError);
  CHECK_THROWS_AS(s.graph.erase(s.mul), InternalError);  // a graph output
  s.graph.replace_all_uses(s.mul->output(), s.y);
  s.graph.erase(s.mul);
  s.graph.erase(s.add);
  CHECK(s.y->uses().empty());
  CHECK(s.graph.size() == 0);
  CHECK(s.graph.find_value("add") == nullptr);
}

TEST_CASE("uses inside lists carry their element, and move when an earlier argument comes or goes") {
  Graph graph;
  auto* x = graph.add_input("x", f32({4}));
  auto* i = graph.add_input("i", TensorType{ScalarType::Long, {2}, {}});
  auto* node = graph.append("aten::index.Tensor", {{"self", x}, {"indices", Values{nullptr, i, i}}}, {f32({2})});
  CHECK((i->uses() == std::vector<Use>{{node, 1, 1}, {node, 1, 2}}));
  int inputs = 0;
  node->for_each_input([&](Value*) { ++inputs; });
  CHECK(inputs == 3);
  auto* j = graph.add_input("j", TensorType{ScalarType::Long, {2}, {}});
  graph.replace_all_uses(i, j);
  CHECK((node->tensors("indices") == Values{nullptr, j, j}));

  // layer_norm(input, normalized_shape, weight=None, bias=None): bias moves from place 2 to 3 and back.
  auto* norm = graph.append("aten::layer_norm", {{"input", x}, {"normalized_shape", std::vector<Expr>{4}}, {"bias", x}},
                            {f32({4})});
  norm->set("weight", x);
  for (const auto& use : x->uses())
    if (use.node == norm) CHECK(std::get<Value*>(norm->arguments()[use.argument].value) == x);
  CHECK((x->uses().back() == Use{norm, 2, 0}));
  norm->set("weight", None{});
  CHECK(std::count(x->uses().begin(), x->uses().end(), Use{norm, 2, 0}) == 1);
  CHECK(std::count(x->uses().begin(), x->uses().end(), Use{norm, 3, 0}) == 0);
}

TEST_CASE("nodes are inserted, moved and walked in order") {
  Sample s;
  auto* relu = s.graph.insert(s.mul, "aten::relu", {{"self", s.x}}, {f32({2, 3})});
  CHECK((ops(s.graph) == std::vector<std::string>{"aten::add.Tensor", "aten::relu", "aten::mul.Tensor"}));
  CHECK(relu->prev() == s.add);
  CHECK(relu->next() == s.mul);
  s.graph.move_before(relu, s.add);
  CHECK(s.graph.front() == relu);
  CHECK(relu->prev() == nullptr);
  s.graph.move_before(relu, nullptr);
  CHECK(relu->next() == nullptr);
  CHECK(relu->prev() == s.mul);
}

TEST_CASE("an unknown op or argument leaves the graph as it was") {
  Sample s;
  CHECK_THROWS_AS(s.graph.append("aten::addd", {}, {}), Error);
  CHECK_THROWS_AS(s.graph.append("aten::relu", {{"self", s.x}, {"input", s.x}}, {f32({2, 3})}), Error);
  CHECK(s.graph.size() == 2);
  CHECK(s.x->uses().size() == 2);
}

TEST_CASE("rename takes a free name") {
  Sample s;
  s.graph.rename(s.add->output(), "x");
  CHECK(s.add->output()->name() == "x_1");
  s.graph.rename(s.add->output(), "sum");
  CHECK(s.graph.find_value("sum") == s.add->output());
  CHECK(s.graph.find_value("x_1") == nullptr);
}

TEST_CASE("an input can be erased once nothing reads it") {
  Sample s;
  CHECK_THROWS_AS(s.graph.erase_input(s.x), InternalError);
  s.add->set("self", s.y);
  s.mul->set("other", s.y);
  CHECK_THROWS_AS(s.graph.erase_input(s.x), InternalError);  // still an output
  s.graph.erase_output(1);
  s.graph.erase_input(s.x);
  CHECK(s.graph.inputs().size() == 1);
  CHECK(s.y->index() == 0);
}

TEST_CASE("a clone is equal and independent") {
  Sample s;
  s.add->module_path = "model.layers.0";
  s.add->source = "model.py:3";
  const auto copy = s.graph.clone();
  CHECK(ops(*copy) == ops(s.graph));
  auto* add = copy->front();
  CHECK(add != s.add);
  CHECK(add->module_path == "model.layers.0");
  CHECK(add->source == "model.py:3");
  CHECK(add->output()->name() == "add");
  CHECK(copy->find_value("x")->uses().size() == 2);
  CHECK(copy->outputs()[0]->name() == "mul");
  copy->append("aten::relu", {{"self", copy->outputs()[0]}}, {f32({2, 3})});
  CHECK(s.graph.size() == 2);
  CHECK(s.mul->output()->uses().empty());
}

TEST_CASE("strides that are contiguous anyway are dropped") {
  Graph graph;
  const Expr n = Expr::symbol("n");
  CHECK(graph.add_input("a", TensorType{ScalarType::Float, {2, n, 3}, {3 * n, 3, 1}})->tensor().strides.empty());
  CHECK(graph.add_input("b", TensorType{ScalarType::Float, {2, 1, 3}, {3, 7, 1}})->tensor().strides.empty());
  CHECK(graph.add_input("c", TensorType{ScalarType::Float, {0, 3}, {9, 9}})->tensor().strides.empty());
  CHECK((graph.add_input("d", TensorType{ScalarType::Float, {2, 3}, {1, 2}})->tensor().strides ==
         std::vector<Expr>{1, 2}));
}
