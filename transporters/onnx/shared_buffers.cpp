#include "transporters/onnx/shared_buffers.h"

#include <set>
#include <string_view>

namespace transporters::onnx {
namespace {

constexpr std::string_view kInput = "input.", kOutput = "output.";

// The nodes that must have run before `node` does.
std::set<const Node*> ancestors(const Node& node) {
  std::set<const Node*> found;
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    for (const Value* input : next->inputs())
      if (const Node* producer = input ? input->producer() : nullptr; producer && found.insert(producer).second)
        open.push_back(producer);
  }
  return found;
}

// Runtimes may let the result of these be a view of their input.
bool is_view(const Node& node) {
  for (const auto* op : {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
    if (node.is(op)) return true;
  return false;
}

// Whether everything that reads the value, or a view of it, has run when `writer` does.
bool is_read_before(const Value& value, const Node& writer, const std::set<const Node*>& earlier) {
  if (value.graph().is_output(&value)) return false;
  for (const Use& use : value.uses()) {
    if (use.node == &writer && use.input == 0) continue;
    if (use.node->is("Shape")) continue;
    if (!earlier.contains(use.node)) return false;
    if (is_view(*use.node) && !is_read_before(*use.node->output(), writer, earlier)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> shared_buffers(const Model& model) {
  std::vector<std::string> names;
  for (const Value* output : model.graph->outputs()) {
    const Node* writer = output->producer();
    if (!output->name().starts_with(kOutput) || writer == nullptr) continue;
    if (!writer->is("ScatterElements") && !writer->is("ScatterND")) continue;
    const std::string name = output->name().substr(kOutput.size());
    const Value* input = writer->input(0);
    if (input == nullptr || !model.graph->is_input(input) || input->name() != std::string(kInput) + name) continue;
    if (is_read_before(*input, *writer, ancestors(*writer))) names.push_back(name);
  }
  return names;
}

void record_shared_buffers(Model& model) {
  std::string text;
  for (const std::string& name : shared_buffers(model)) text += (text.empty() ? "" : "\n") + name;
  if (!text.empty()) model.metadata[kSharedBuffers] = text;
}

}  // namespace transporters::onnx
