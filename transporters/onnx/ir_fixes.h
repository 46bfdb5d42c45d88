// Rewrites of an ONNX model that change what it looks like, not what it computes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "transporters/onnx/model.h"

namespace transporters::onnx {

struct IrFix {
  std::string name;
  std::string what;                   // one line for listings
  std::function<bool(Model&)> apply;  // true when it changed the model
  bool is_needed = true;              // false: a model without it runs as well, only slower
};

// The built-in fixes, in the order they run.
const std::vector<IrFix>& ir_fixes();

// Identity nodes whose output is no graph output of its own, or whose input only it reads.
bool remove_identities(Model& model);
// A Cast to the type its input has, and a Cast of a Cast that lost nothing.
bool remove_casts(Model& model);
// Transpose of a weight that nothing else reads in its own layout: the weight itself becomes a transposed view, which
// the writer stores transposed.
bool fold_weight_transposes(Model& model);
// x * (1 / y) as x / y: one node fewer, and the form in which ONNX Runtime finds root mean square norms.
bool divide_by_reciprocals(Model& model);
// Nodes with the same op, inputs and attributes become one.
bool merge_equal_nodes(Model& model);
// Nodes and initializers that no output depends on.
bool remove_dead_nodes(Model& model);

}  // namespace transporters::onnx
