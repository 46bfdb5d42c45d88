#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "transporters/graph/symbol_sources.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/passes/fold_constants.h"
#include "transporters/runners/interpreter.h"

namespace transporters {
namespace {

constexpr uint64_t kAlwaysKept = 1 << 20;            // bytes of a result that is stored whatever its inputs' size
constexpr uint64_t kLargestIntermediate = 64 << 20;  // bytes that the evaluation may allocate for one value

// Bytes of a tensor of fixed sizes; nullopt for symbolic sizes and numbers.
std::optional<uint64_t> bytes_of(const Value* value) {
  if (!value->is_tensor()) return std::nullopt;
  uint64_t bytes = c10::elementSize(value->dtype());
  for (const auto& size : value->sizes()) {
    const auto constant = size.as_integer();
    if (!constant || *constant < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(*constant), &bytes))
      return std::nullopt;
  }
  return bytes;
}

class Folder {
 public:
  explicit Folder(Program& program) : program_(program), graph_(*program.graph) {}

  bool run() {
    find_constants();
    find_foldable();
    const auto results = choose_results();
    if (results.empty()) return false;
    store(results, evaluate(results));
    return true;
  }

 private:
  void find_constants() {
    for (const auto& input : program_.inputs) {
      const auto state = program_.state.find(input.target);
      if (input.kind == InputKind::Constant && state != program_.state.end())
        source_bytes_[input.value] = state->second.nbytes();
    }
  }

  void find_foldable() {
    for (const auto& node : graph_) {
      if (!is_foldable(node)) continue;
      foldable_.insert(&node);
      // What a node comes from: an upper bound, as shared inputs count each time.
      uint64_t bytes = 0;
      node.for_each_input([&](const Value* value) { bytes += source_bytes_.at(value); });
      for (const auto* output : node.outputs()) source_bytes_[output] = bytes;
    }
  }

  bool is_foldable(const Node& node) const {
    if (node.schema().is_random || node.schema().has_side_effects()) return false;
    bool constant = true;
    node.for_each_input([&](const Value* value) { constant &= source_bytes_.contains(value); });
    for (const auto& argument : node.arguments()) constant &= symbols_of(argument.value).empty();
    for (const auto* output : node.outputs()) {
      const auto bytes = bytes_of(output);
      constant &= bytes && *bytes <= kLargestIntermediate;
    }
    return constant;
  }

  // Foldable values that something else reads; from the end, so that a node that has to stay makes what it reads a
  // result.
  std::vector<Value*> choose_results() {
    std::vector<const Node*> nodes;
    for (const auto& node : graph_) nodes.push_back(&node);
    std::vector<Value*> results;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const Node& node = **it;
      if (!foldable_.contains(&node)) continue;
      std::vector<Value*> needed;
      std::copy_if(node.outputs().begin(), node.outputs().end(), std::back_inserter(needed),
                   [this](const Value* output) { return is_needed(output); });
      if (needed.empty()) continue;
      if (std::all_of(needed.begin(), needed.end(), [this](const Value* output) { return is_worth_storing(output); })) {
        results.insert(results.end(), needed.begin(), needed.end());
      } else {
        foldable_.erase(&node);
      }
    }
    std::reverse(results.begin(), results.end());
    return results;
  }

  bool is_needed(const Value* value) const {
    return graph_.is_output(value) || std::any_of(value->uses().begin(), value->uses().end(),
                                                  [this](const Use& use) { return !foldable_.contains(use.node); });
  }

  bool is_worth_storing(const Value* value) const {
    // A strided view stays a view of what is folded, as the types of its readers' outputs tell its strides.
    if (!value->tensor().is_contiguous()) return false;
    bool reads = false;
    value->producer()->for_each_input([&](const Value*) { reads = true; });
    return reads && *bytes_of(value) <= std::max(kAlwaysKept, source_bytes_.at(value));
  }

  // The nodes that compute `results` from constants. Some of them stay in the graph as well: others read them, and they
  // are not worth storing.
  static std::unordered_set<const Node*> producers_of(const std::vector<Value*>& results) {
    std::unordered_set<const Node*> nodes;
    std::vector<const Value*> pending(results.begin(), results.end());
    while (!pending.empty()) {
      const Node* node = pending.back()->producer();
      pending.pop_back();
      if (node == nullptr || !nodes.insert(node).second) continue;
      node->for_each_input([&](const Value* input) { pending.push_back(input); });
    }
    return nodes;
  }

  // The part of the program that computes `results`, as a program of its own.
  std::vector<at::Tensor> evaluate(const std::vector<Value*>& results) {
    Program part;
    std::unordered_map<const Value*, Value*> copies;
    for (const auto& input : program_.inputs) {
      if (!source_bytes_.contains(input.value)) continue;
      Value* value = part.graph->add_input(input.value->name(), input.value->type());
      part.inputs.push_back({input.kind, value, input.target});
      part.state[input.target] = program_.state.at(input.target);
      copies[input.value] = value;
    }
    const auto needed = producers_of(results);
    for (const auto& node : graph_)
      if (needed.contains(&node)) copy(node, *part.graph, copies);
    for (const auto* result : results) {
      part.graph->add_output(copies.at(result));
      part.outputs.push_back({OutputKind::UserOutput, copies.at(result), result->name()});
    }
    std::vector<at::Tensor> tensors;
    for (const auto& value : Interpreter(part).run({})) tensors.push_back(value.toTensor());
    return tensors;
  }

  static void copy(const Node& node, Graph& graph, std::unordered_map<const Value*, Value*>& copies) {
    std::vector<NamedArgument> arguments(node.arguments().begin(), node.arguments().end());
    for (auto& [name, argument] : arguments) {
      if (auto* value = std::get_if<Value*>(&argument)) *value = copies.at(*value);
      if (auto* values = std::get_if<Values>(&argument))
        for (auto*& element : *values)
          if (element != nullptr) element = copies.at(element);
    }
    std::vector<ValueType> types;
    for (const auto* output : node.outputs()) types.push_back(output->type());
    Node* copied = graph.append(node.op(), std::move(arguments), std::move(types));
    copied->module_path = node.module_path;
    for (size_t i = 0; i < node.outputs().size(); ++i) copies[node.outputs()[i]] = copied->outputs()[i];
  }

  void store(const std::vector<Value*>& results, const std::vector<at::Tensor>& tensors) {
    const auto first_user = std::find_if(program_.inputs.begin(), program_.inputs.end(),
                                         [](const InputSpec& input) { return input.kind == InputKind::UserInput; });
    std::vector<InputSpec> added;
    for (size_t i = 0; i < results.size(); ++i) {
      std::string target = "folded_" + results[i]->name();
      for (int suffix = 1; program_.state.contains(target); ++suffix)
        target = "folded_" + results[i]->name() + "_" + std::to_string(suffix);
      const TensorData data = to_tensor_data(owned(tensors[i]));
      TensorType type{data.dtype, {data.sizes.begin(), data.sizes.end()}, {data.strides.begin(), data.strides.end()}};
      Value* value = graph_.add_input("c_" + target, std::move(type));
      program_.replace_all_uses(results[i], value);
      program_.state[target] = data;
      added.push_back({InputKind::Constant, value, target});
    }
    program_.inputs.insert(first_user, added.begin(), added.end());
    std::vector<Value*> order;
    for (const auto& input : program_.inputs)
      if (input.value != nullptr) order.push_back(input.value);
    graph_.reorder_inputs(order);
  }

  // Without elements that a view of something larger would keep alive.
  static at::Tensor owned(const at::Tensor& tensor) {
    const bool whole = tensor.storage().nbytes() == tensor.nbytes();
    return tensor.is_contiguous() && whole ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
  }

  Program& program_;
  Graph& graph_;
  std::unordered_set<const Node*> foldable_;
  // Bytes of the constants that a foldable value comes from; only constants and outputs of foldable nodes are keys.
  std::unordered_map<const Value*, uint64_t> source_bytes_;
};

}  // namespace

bool fold_constants(Program& program) { return Folder(program).run(); }

}  // namespace transporters
