#include "transporters/passes/decompose.h"

#include <algorithm>
#include <unordered_map>

#include "transporters/error.h"
#include "transporters/graph/text.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

void check_same_type(const Node& node, const Value* was, const Value* is, ShapeEnv& env) {
  const auto simplified = [&env](const Value* value) {
    std::vector<Expr> sizes;
    for (const auto& size : value->sizes()) sizes.push_back(env.simplify(size));
    return sizes;
  };
  const bool same = was->is_tensor() == is->is_tensor() &&
                    (!was->is_tensor() || (was->dtype() == is->dtype() && simplified(was) == simplified(is)));
  if (!same)
    throw InternalError("the decomposition of '" + node.op() + "' gives " + to_text(is->type()) + " in place of " +
                        to_text(was->type()));
}

// A decomposition computes the same sizes as its op: it may not need more of the symbols than the trace found.
void check_no_guards(const std::string& op, const ShapeEnv& env) {
  if (env.specializations().empty() && env.equalities().empty() && env.narrowings().empty()) return;
  throw InternalError("the decomposition of '" + op + "' narrows the program's symbols");
}

// Replaces the node by what its decomposition makes; false when that leaves it alone.
bool replace(Program& program, Node& node, Decomposition decompose, NodeBuilder& build, ShapeEnv& env) {
  const auto values = decompose(node, build);
  if (values.empty()) return false;
  check_no_guards(node.op(), env);
  if (values.size() != node.outputs().size())
    throw InternalError("the decomposition of '" + node.op() + "' gives " + std::to_string(values.size()) +
                        " values in place of " + std::to_string(node.outputs().size()));
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    check_same_type(node, node.outputs()[i], values[i], env);
    names.push_back(node.outputs()[i]->name());
    program.replace_all_uses(node.outputs()[i], values[i]);
  }
  program.graph->erase(&node);
  const auto is_made = [&](const Value* value) { return std::ranges::count(build.made(), value->producer()) > 0; };
  for (size_t i = 0; i < values.size(); ++i)
    if (is_made(values[i])) program.graph->rename(values[i], names[i]);
  return true;
}

}  // namespace

std::vector<Value*> NodeBuilder::outputs(std::string_view op, std::vector<NamedArgument> arguments) {
  Node* node = graph_.insert(before_, op, std::move(arguments), {});
  if (before_ != nullptr) {
    node->module_path = before_->module_path;
    node->source = before_->source;
  }
  try {
    graph_.add_outputs(node, infer_types(*node, env_));
  } catch (...) {
    graph_.erase(node);
    throw;
  }
  made_.push_back(node);
  return {node->outputs().begin(), node->outputs().end()};
}

Value* NodeBuilder::operator()(std::string_view op, std::vector<NamedArgument> arguments) {
  const auto values = outputs(op, std::move(arguments));
  if (values.size() != 1)
    throw InternalError("op '" + std::string(op) + "' has several outputs where one was expected");
  return values.front();
}

Value* NodeBuilder::unary(std::string_view op, Argument self) { return (*this)(op, {{"self", std::move(self)}}); }

Value* NodeBuilder::binary(std::string_view op, Argument self, Argument other) {
  return (*this)(op, {{"self", std::move(self)}, {"other", std::move(other)}});
}

ShapeEnv make_shape_env(const Program& program) {
  ShapeEnv env;
  for (const auto& [name, range] : program.ranges) {
    const auto hint = program.hints.find(name);
    symbolic::SymbolInfo info{name, range};
    if (hint != program.hints.end()) info.hint = hint->second;
    env.add_symbol(std::move(info));
  }
  return env;
}

bool decompose(Program& program, const std::function<bool(const std::string& op)>& is_supported,
               std::span<const DecompositionRow> table) {
  std::unordered_map<std::string_view, Decomposition> rows;
  for (const auto& row : table) rows.emplace(row.op, row.decompose);
  ShapeEnv env = make_shape_env(program);
  bool changed = false;
  for (Node* node = program.graph->front(); node != nullptr;) {
    const auto row = rows.find(node->op());
    Node* next = node->next();
    if (row != rows.end() && !is_supported(node->op())) {
      NodeBuilder build(*program.graph, node, env);
      if (replace(program, *node, row->second, build, env)) {
        changed = true;
        // What was made may need decomposing in turn.
        for (const Node* made : build.made())
          if (made->op() == row->first)
            throw InternalError("the decomposition of '" + made->op() + "' contains itself");
        if (!build.made().empty()) next = build.made().front();
      }
    }
    node = next;
  }
  return changed;
}

}  // namespace transporters
