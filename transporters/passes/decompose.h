// Rewrites ops that a target lacks into others, by a table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters {

// Builds nodes in front of a given one (null: at the end); output types come from the shape rules, module path and
// source from that node.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, Node* before, symbolic::ShapeEnv& env) : graph_(graph), before_(before), env_(env) {}

  // The outputs of a new node. Throws Error for an op without a shape rule.
  std::vector<Value*> outputs(std::string_view op, std::vector<NamedArgument> arguments);
  // The output of a new node with one.
  Value* operator()(std::string_view op, std::vector<NamedArgument> arguments);

  // op(self), op(self, other): "aten::exp", "aten::mul.Tensor". `other` may be a value or a number.
  Value* unary(std::string_view op, Argument self);
  Value* binary(std::string_view op, Argument self, Argument other);

  // The nodes made so far.
  const std::vector<Node*>& made() const { return made_; }

 private:
  Graph& graph_;
  Node* before_;
  symbolic::ShapeEnv& env_;
  std::vector<Node*> made_;
};

// Builds what replaces the node's outputs, one value each. An empty result leaves the node as it is.
using Decomposition = std::vector<Value*> (*)(const Node& node, NodeBuilder& build);

struct DecompositionRow {
  std::string_view op;  // full name
  Decomposition decompose;
};

// The built-in decompositions.
std::span<const DecompositionRow> decomposition_table();
std::span<const DecompositionRow> fft_decompositions();  // part of it

// Decomposes each node for whose op `is_supported` is false, and again what that gave, as far as the table goes; ops
// without a row stay. Throws InternalError when a decomposition gives another dtype or other sizes than the node had.
// Tested in tests/passes/test_decompose.cpp.
bool decompose(Program& program, const std::function<bool(const std::string& op)>& is_supported,
               std::span<const DecompositionRow> table = decomposition_table());

// The symbols of a program with their ranges and hints, for the shape rules.
symbolic::ShapeEnv make_shape_env(const Program& program);

}  // namespace transporters
