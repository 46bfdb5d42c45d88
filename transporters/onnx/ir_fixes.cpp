#include "transporters/onnx/ir_fixes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "transporters/onnx/runtime_types.h"

namespace transporters::onnx {
namespace {

// Calls f with every node of the model, subgraphs included; f may erase the node it is given.
void for_each_node(Model& model, const auto& f) {
  model.graph->for_each_graph([&](Graph& graph) {
    for (Node* node = graph.front(); node != nullptr;) {
      Node* const next = node->next();
      f(*node);
      node = next;
    }
  });
}

// Random ops draw anew each time; ops with subgraphs or of other domains are not looked into.
bool is_mergeable(const Node& node) {
  static constexpr std::array<std::string_view, 6> kRandom = {"RandomUniform",    "RandomUniformLike", "RandomNormal",
                                                              "RandomNormalLike", "Bernoulli",         "Multinomial"};
  if (!node.domain.empty() || std::find(kRandom.begin(), kRandom.end(), node.op) != kRandom.end()) return false;
  return std::none_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value) ||
           std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attribute.value);
  });
}

// Text that is equal for nodes that compute the same. Constants in attributes are told apart by their elements.
std::string description(const Node& node) {
  std::ostringstream text;
  text << node.op << " " << node.outputs().size();
  for (const Value* input : node.inputs()) text << " " << input;
  for (const auto& [name, value] : node.attributes) {
    text << " " << name << "=";
    if (const auto* i = std::get_if<int64_t>(&value)) text << *i;
    if (const auto* f = std::get_if<float>(&value)) text << std::hexfloat << *f << "f";
    if (const auto* s = std::get_if<std::string>(&value)) text << "'" << *s << "'";
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      for (const int64_t element : *list) text << element << ",";
    }
    if (const auto* list = std::get_if<std::vector<float>>(&value)) {
      for (const float element : *list) text << std::hexfloat << element << ",";
    }
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
      for (const auto& element : *list) text << "'" << element << "',";
    }
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      text << name_of(tensor->type);
      for (const int64_t dim : tensor->dims) text << "," << dim;
      text << ":";
      if (tensor->data.numel() > 0)
        text.write(static_cast<const char*>(tensor->data.data), static_cast<std::streamsize>(tensor->data.nbytes()));
    }
  }
  return text.str();
}

// Every value of `from` is one of `to`.
bool holds(DataType to, DataType from) {
  const auto widens = [&](std::initializer_list<DataType> list) {
    return std::find(list.begin(), list.end(), from) != list.end();
  };
  if (to == from) return true;
  switch (to) {
    case DataType::DOUBLE:
      return widens({DataType::FLOAT, DataType::FLOAT16, DataType::BFLOAT16, DataType::INT32, DataType::INT16,
                     DataType::INT8, DataType::UINT8, DataType::BOOL});
    case DataType::FLOAT:
      return widens(
          {DataType::FLOAT16, DataType::BFLOAT16, DataType::INT16, DataType::INT8, DataType::UINT8, DataType::BOOL});
    case DataType::INT64:
      return widens({DataType::INT32, DataType::INT16, DataType::INT8, DataType::UINT8, DataType::BOOL});
    case DataType::INT32:
      return widens({DataType::INT16, DataType::INT8, DataType::UINT8, DataType::BOOL});
    default:
      return false;
  }
}

}  // namespace

bool remove_identities(Model& model) {
  bool changed = false;
  for_each_node(model, [&](Node& node) {
    if (!node.is("Identity")) return;
    Value* input = node.input(0);
    Value* output = node.output();
    Graph& graph = node.graph();
    if (graph.is_output(output)) {
      // The output's name moves to the value itself, when that is free to take it.
      const bool is_free = input->producer() != nullptr && &input->graph() == &graph && !graph.is_output(input);
      if (!is_free || graph.parent() != nullptr) return;
      const std::string name = output->name();
      if (output->shape) input->shape = output->shape;
      graph.replace_all_uses(output, input);
      graph.erase(&node);
      graph.rename(input, name);
    } else {
      graph.replace_all_uses(output, input);
      graph.erase(&node);
    }
    changed = true;
  });
  return changed;
}

bool remove_casts(Model& model) {
  bool changed = false;
  for_each_node(model, [&](Node& node) {
    if (!node.is("Cast")) return;
    const auto to = static_cast<DataType>(node.integer("to", 0));
    // A wider type in between loses nothing.
    if (Node* first = node.input(0)->producer(); first && first->is("Cast")) {
      const DataType original = first->input(0)->type;
      if (original != DataType::UNDEFINED && holds(node.input(0)->type, original)) {
        node.set_input(0, first->input(0));
        changed = true;
      }
    }
    if (node.input(0)->type != to || node.graph().is_output(node.output())) return;
    node.graph().replace_all_uses(node.output(), node.input(0));
    node.graph().erase(&node);
    changed = true;
  });
  return changed;
}

bool fold_weight_transposes(Model& model) {
  bool changed = false;
  Graph& graph = *model.graph;
  std::vector<Value*> weights;
  for (const auto& value : graph.initializers()) weights.push_back(value.get());
  for (Value* weight : weights) {
    if (weight->uses().empty() || graph.is_output(weight)) continue;
    const auto perm = weight->uses()[0].node->integers("perm");
    const bool all_same = std::all_of(weight->uses().begin(), weight->uses().end(), [&](const Use& use) {
      return use.node->is("Transpose") && use.node->integers("perm") == perm && &use.node->graph() == &graph &&
             !graph.is_output(use.node->output());
    });
    const Tensor& tensor = *weight->initializer;
    if (!all_same || perm.size() != tensor.dims.size() || tensor.data.sizes != tensor.dims) continue;
    Tensor transposed = tensor;
    for (size_t i = 0; i < perm.size(); ++i) {
      const auto from = static_cast<size_t>(perm[i]);
      transposed.dims[i] = tensor.dims[from];
      transposed.data.sizes[i] = tensor.data.sizes[from];
      transposed.data.strides[i] = tensor.data.strides[from];
    }
    Value* folded = graph.add_initializer(weight->name() + ".transposed", std::move(transposed));
    const std::vector<Use> uses = weight->uses();
    for (const Use& use : uses) {
      graph.replace_all_uses(use.node->output(), folded);
      graph.erase(use.node);
    }
    graph.erase_initializer(weight);
    changed = true;
  }
  return changed;
}

bool divide_by_reciprocals(Model& model) {
  bool changed = false;
  for_each_node(model, [&](Node& node) {
    if (!node.is("Mul")) return;
    for (const size_t place : {size_t{1}, size_t{0}}) {
      Value* factor = node.input(place);
      Node* reciprocal = factor->producer();
      const bool is_only_read_here = factor->uses().size() == 1 && !factor->graph().is_output(factor);
      if (!reciprocal || !reciprocal->is("Reciprocal") || !is_only_read_here) continue;
      Value* dividend = node.input(1 - place);
      node.op = "Div";
      node.set_inputs({dividend, reciprocal->input(0)});
      reciprocal->graph().erase(reciprocal);
      changed = true;
      return;
    }
  });
  return changed;
}

bool merge_equal_nodes(Model& model) {
  bool changed = false;
  model.graph->for_each_graph([&](Graph& graph) {
    std::map<std::string, Node*> known;
    for (Node* node = graph.front(); node != nullptr;) {
      Node* const next = node->next();
      if (is_mergeable(*node)) {
        const auto [entry, is_new] = known.try_emplace(description(*node), node);
        const bool is_output = std::any_of(node->outputs().begin(), node->outputs().end(),
                                           [&](const Value* output) { return graph.is_output(output); });
        if (!is_new && !is_output) {
          for (size_t i = 0; i < node->outputs().size(); ++i) {
            graph.replace_all_uses(node->output(i), entry->second->output(i));
          }
          graph.erase(node);
          changed = true;
        }
      }
      node = next;
    }
  });
  return changed;
}

bool remove_dead_nodes(Model& model) {
  bool changed = false;
  model.graph->for_each_graph([&](Graph& graph) {
    for (Node* node = graph.nodes().empty() ? nullptr : graph.nodes().back().get(); node != nullptr;) {
      Node* const previous = node->prev();
      const bool is_live = std::any_of(node->outputs().begin(), node->outputs().end(), [&](const Value* output) {
        return !output->uses().empty() || graph.is_output(output);
      });
      if (!is_live) {
        graph.erase(node);
        changed = true;
      }
      node = previous;
    }
    std::vector<Value*> unused;
    for (const auto& value : graph.initializers()) {
      if (value->uses().empty() && !graph.is_output(value.get())) unused.push_back(value.get());
    }
    for (Value* value : unused) graph.erase_initializer(value);
    changed = changed || !unused.empty();
  });
  return changed;
}

const std::vector<IrFix>& ir_fixes() {
  constexpr bool kOptimization = false;
  static const std::vector<IrFix> fixes = {
      {"remove_identities", "drop nodes that pass their input on", remove_identities, kOptimization},
      {"convert_types", "compute in types that ONNX Runtime has kernels for", convert_types},
      {"remove_casts", "drop type conversions that change nothing", remove_casts, kOptimization},
      // Before transposes are folded: equal ones count as one use of the weight.
      {"merge_equal_nodes", "compute the same thing once", merge_equal_nodes, kOptimization},
      {"divide_by_reciprocals", "x * (1 / y) as x / y", divide_by_reciprocals, kOptimization},
      {"fold_weight_transposes", "store transposed weights transposed", fold_weight_transposes, kOptimization},
      {"remove_dead_nodes", "drop what no output depends on", remove_dead_nodes, kOptimization},
  };
  return fixes;
}

}  // namespace transporters::onnx
