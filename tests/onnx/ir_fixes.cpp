#include "transporters/onnx/ir_fixes.h"

#include <doctest/doctest.h>

#include "transporters/onnx/runtime_types.h"

using namespace transporters;
using onnx::DataType;
using onnx::Dim;
using onnx::Model;
using onnx::Shape;
using onnx::Tensor;
using onnx::Value;

namespace {

Value* input(Model& model, const char* name, DataType type = DataType::FLOAT) {
  return model.graph->add_input(name, type, Shape{Dim::of(2), Dim::of(3)});
}

Value* emit(Model& model, const char* op, std::vector<Value*> inputs, onnx::Attributes attributes = {},
            const char* name = "v") {
  auto* node = model.graph->insert(nullptr, op, std::move(inputs), std::move(attributes), {name});
  node->output()->type = node->is("Cast") ? static_cast<DataType>(node->integer("to", 0)) : node->input(0)->type;
  return node->output();
}

Value* weight(Model& model, const char* name) {
  static const float kNumbers[6] = {};
  return model.graph->add_initializer(name, Tensor::of({.sizes = {2, 3}, .strides = {3, 1}, .data = kNumbers}));
}

std::string ops(const Model& model) {
  std::string text;
  for (const auto& node : model.graph->nodes()) text += (text.empty() ? "" : " ") + node->op;
  return text;
}

int64_t cast_to(DataType type) { return static_cast<int64_t>(type); }

}  // namespace

TEST_CASE("remove_identities keeps the names of inputs and outputs") {
  Model model;
  Value* x = input(model, "x");
  Value* inner = emit(model, "Identity", {emit(model, "Relu", {x})});
  model.graph->add_output(emit(model, "Identity", {emit(model, "Neg", {inner})}, {}, "y"));
  model.graph->add_output(emit(model, "Identity", {x}, {}, "z"));
  CHECK(onnx::remove_identities(model));
  CHECK(ops(model) == "Relu Neg Identity");
  CHECK(model.graph->outputs()[0]->name() == "y");
  CHECK(model.graph->outputs()[1]->name() == "z");
  CHECK_FALSE(onnx::remove_identities(model));
}

TEST_CASE("remove_casts drops only what changes nothing") {
  Model model;
  Value* x = input(model, "x", DataType::FLOAT16);
  Value* wide = emit(model, "Cast", {x}, {{"to", cast_to(DataType::FLOAT)}});
  Value* back = emit(model, "Cast", {wide}, {{"to", cast_to(DataType::FLOAT16)}});
  model.graph->add_output(emit(model, "Neg", {back}));
  Value* y = input(model, "y");
  Value* narrow = emit(model, "Cast", {y}, {{"to", cast_to(DataType::FLOAT16)}});
  model.graph->add_output(emit(model, "Neg", {emit(model, "Cast", {narrow}, {{"to", cast_to(DataType::FLOAT)}})}));
  CHECK(onnx::remove_casts(model));
  onnx::remove_dead_nodes(model);
  CHECK(ops(model) == "Neg Cast Cast Neg");
  CHECK(model.graph->front()->input(0) == x);
}

TEST_CASE("fold_weight_transposes turns the weight's view, unless it is read otherwise") {
  Model model;
  Value* x = input(model, "x");
  Value* w = weight(model, "w");
  Value* shared = weight(model, "shared");
  const onnx::Attributes perm = {{"perm", std::vector<int64_t>{1, 0}}};
  model.graph->add_output(emit(model, "MatMul", {x, emit(model, "Transpose", {w}, perm)}));
  model.graph->add_output(emit(model, "MatMul", {x, emit(model, "Transpose", {w}, perm)}));
  model.graph->add_output(emit(model, "MatMul", {x, emit(model, "Transpose", {shared}, perm)}));
  model.graph->add_output(emit(model, "Add", {x, shared}));
  CHECK(onnx::fold_weight_transposes(model));
  CHECK(ops(model) == "MatMul MatMul Transpose MatMul Add");
  const Value* folded = model.graph->front()->input(1);
  CHECK(folded->name() == "w.transposed");
  CHECK(folded->initializer->dims == std::vector<int64_t>{3, 2});
  CHECK(folded->initializer->data.strides == std::vector<int64_t>{1, 3});
  CHECK(model.graph->initializers().size() == 2);
}

TEST_CASE("merge_equal_nodes tells attributes and random draws apart") {
  Model model;
  Value* x = input(model, "x");
  Value* a = emit(model, "LeakyRelu", {x}, {{"alpha", 0.5f}});
  Value* b = emit(model, "LeakyRelu", {x}, {{"alpha", 0.5f}});
  Value* c = emit(model, "LeakyRelu", {x}, {{"alpha", 0.25f}});
  Value* d = emit(model, "RandomNormalLike", {x});
  Value* e = emit(model, "RandomNormalLike", {x});
  model.graph->add_output(emit(model, "Sum", {a, b, c, d, e}));
  CHECK(onnx::merge_equal_nodes(model));
  CHECK(ops(model) == "LeakyRelu LeakyRelu RandomNormalLike RandomNormalLike Sum");
}

TEST_CASE("divide_by_reciprocals leaves reciprocals that something else reads") {
  Model model;
  Value* x = input(model, "x");
  Value* y = input(model, "y");
  model.graph->add_output(emit(model, "Mul", {emit(model, "Reciprocal", {y}), x}));
  Value* shared = emit(model, "Reciprocal", {x});
  model.graph->add_output(emit(model, "Mul", {y, shared}));
  model.graph->add_output(emit(model, "Neg", {shared}));
  CHECK(onnx::divide_by_reciprocals(model));
  CHECK(ops(model) == "Div Reciprocal Mul Neg");
  CHECK(model.graph->front()->input(0) == x);
  CHECK(model.graph->front()->input(1) == y);
}

TEST_CASE("remove_dead_nodes drops chains and their constants") {
  Model model;
  Value* x = input(model, "x");
  emit(model, "Neg", {emit(model, "Add", {x, weight(model, "w")})});
  model.graph->add_output(emit(model, "Relu", {x}));
  CHECK(onnx::remove_dead_nodes(model));
  CHECK(ops(model) == "Relu");
  CHECK(model.graph->initializers().empty());
}

TEST_CASE("convert_types computes chains in a type that has kernels") {
  Model model;
  Value* x = input(model, "x", DataType::BFLOAT16);
  Value* sum = emit(model, "Add", {x, x}, {}, "sum");
  Value* product = emit(model, "Mul", {sum, x}, {}, "product");
  model.graph->add_output(emit(model, "Transpose", {product}, {}, "y"));
  CHECK(onnx::convert_types(model));
  onnx::remove_dead_nodes(model);
  // x is converted once, the sum stays wide, the product is rounded for what reads it.
  CHECK(ops(model) == "Cast Add Mul Cast Transpose");
  CHECK(model.graph->outputs()[0]->type == DataType::BFLOAT16);
  CHECK(model.graph->front()->next()->output()->type == DataType::FLOAT);
  CHECK_FALSE(onnx::convert_types(model));
}

TEST_CASE("convert_types lets integers wrap") {
  Model model;
  Value* x = input(model, "x", DataType::INT8);
  model.graph->add_output(emit(model, "Pow", {emit(model, "Pow", {x, x}), x}, {}, "y"));
  CHECK(onnx::convert_types(model));
  CHECK(ops(model) == "Cast Pow Cast Cast Pow Cast");
}

TEST_CASE("types without a kernel get one that holds their values") {
  CHECK(onnx::computed_type("Add", DataType::BFLOAT16) == DataType::FLOAT);
  CHECK(onnx::computed_type("Where", DataType::BOOL) == DataType::UINT8);
  CHECK(onnx::computed_type("Max", DataType::INT16) == DataType::INT32);
  CHECK(onnx::computed_type("ReduceSum", DataType::UINT32) == DataType::INT64);
  CHECK_FALSE(onnx::computed_type("Add", DataType::FLOAT));
  CHECK_FALSE(onnx::computed_type("Reshape", DataType::BFLOAT16));
}
