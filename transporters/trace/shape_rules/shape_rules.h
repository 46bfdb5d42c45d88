// Shape rules: output types of an ATen op from its arguments, over symbolic sizes. One file per op family.
//
// A rule sees the node as it will stand in the graph (arguments by schema name, values with their types) before its
// outputs exist, and returns one type per output. Questions about sizes go to the ShapeEnv, which records what an
// answer assumes. View ops give strides; other ops leave them empty (contiguous).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/graph.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

using symbolic::ShapeEnv;

using ShapeRule = std::vector<ValueType> (*)(const Node& node, ShapeEnv& env);

// A row of a family's table: "aten::add.Tensor", or "aten::add" for all its overloads.
struct ShapeRuleRow {
  std::string_view op;
  ShapeRule rule;
};

// A family's rows; `name` is the stem of its file.
struct ShapeRuleTable {
  std::string_view name;
  std::span<const ShapeRuleRow> rows;
};

// The rule for an op, or null. An exact name wins over a row for all overloads.
ShapeRule find_shape_rule(std::string_view op);
// The output types of a node by its rule, sizes simplified. Throws Error naming op and module when the op has no rule
// or the arguments do not fit it, GuardError when a size can't be decided.
std::vector<ValueType> infer_types(const Node& node, ShapeEnv& env);
// Ops with a rule, sorted.
std::vector<std::string> ops_with_shape_rules();
// The tables of all families.
std::span<const ShapeRuleTable> shape_rule_tables();

// ── Shared by the families ──

// The sizes two operands broadcast to. Throws Error naming both shapes when they can't.
std::vector<Expr> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b, ShapeEnv& env);
// `dim` in [-rank, rank) as [0, rank); rank 0 counts as 1. Throws Error.
int64_t wrap_dim(int64_t dim, size_t rank);
std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes);
// The strides that are stored, or the contiguous ones.
std::vector<Expr> strides_of(const TensorType& type);
// torch.result_type over tensor and number arguments: dimensioned tensors win over 0-dim ones, those over numbers,
// within the same category.
ScalarType result_type(const std::vector<Argument>& operands);
// The accumulation rule of sum/prod/cumsum: integers and booleans become int64.
ScalarType sum_dtype(ScalarType dtype);

}  // namespace transporters
