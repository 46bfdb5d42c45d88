#include <ATen/ATen.h>

#include <unordered_map>
#include <unordered_set>

#include "transporters/graph/tensor_torch.h"
#include "transporters/runners/interpreter.h"
#include "transporters/verify/comparison.h"

namespace transporters {
namespace {

bool is_unwritten(const Node& node) {
  return node.op().starts_with("aten::empty") || node.op().starts_with("aten::new_empty");
}

std::optional<at::Tensor> as_tensor(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) return value.toTensor();
  if (value.isScalar()) return at::scalar_to_tensor(value.toScalar());
  return std::nullopt;
}

// Ranges of values whose expected tensors together take about `bytes_per_run`.
std::vector<std::pair<size_t, size_t>> split(const ComparedArtefact& artefact, const Program& reference,
                                             const NamedTensors& inputs, uint64_t bytes_per_run) {
  std::unordered_map<const Value*, uint64_t> bytes;
  run_program(reference, inputs, [&](const Value* value, const at::Tensor& tensor) { bytes[value] = tensor.nbytes(); });
  std::vector<std::pair<size_t, size_t>> ranges;
  uint64_t held = 0;
  for (size_t i = 0; i < artefact.values().size(); ++i) {
    const uint64_t more = bytes[artefact.values()[i].reference];
    if (ranges.empty() || held + more > bytes_per_run) {
      ranges.emplace_back(i, i);
      held = 0;
    }
    held += more;
    ranges.back().second = i + 1;
  }
  return ranges;
}

struct Measured {
  Difference difference;
  std::vector<int64_t> sizes;
  std::vector<int64_t> reference_sizes;
};

class Comparison {
 public:
  Comparison(ComparedArtefact& artefact, const Program& reference, const NamedTensors& inputs,
             const DivergenceOptions& options)
      : artefact_(artefact), reference_(reference), inputs_(inputs), options_(options) {}

  DivergenceReport run() {
    DivergenceReport report{.values = artefact_.value_count()};
    report.weights = compare_weights();
    const auto ranges = split(artefact_, reference_, inputs_, options_.bytes_per_run);
    artefact_.prepare(ranges);
    for (const auto& [begin, end] : ranges) {
      measure(begin, end);
      for (size_t i = begin; i < end; ++i) {
        const auto found = measured_.find(artefact_.values()[i].reference);
        if (found == measured_.end()) continue;
        ++report.compared;
        if (found->second.difference.relative <= options_.tolerance) continue;
        report.first = describe(artefact_.values()[i], found->second);
        return report;
      }
    }
    return report;
  }

 private:
  void measure(size_t begin, size_t end) {
    std::unordered_set<const Value*> wanted;
    for (size_t i = begin; i < end; ++i) wanted.insert(artefact_.values()[i].reference);
    std::unordered_map<const Value*, at::Tensor> expected;
    run_program(reference_, inputs_, [&](const Value* value, const at::Tensor& tensor) {
      // The run may free or overwrite what this is a view of.
      if (wanted.contains(value)) expected[value] = tensor.clone();
    });
    artefact_.run(inputs_, begin, end, [&](size_t i, const at::Tensor& actual) {
      const Value* value = artefact_.values()[i].reference;
      const auto found = expected.find(value);
      if (found == expected.end()) return;
      const at::Tensor& tensor = found->second;
      // A guess that does not even fit was wrong.
      if (!artefact_.by_name() && actual.sizes() != tensor.sizes()) return;
      measured_[value] = {largest_difference(actual, tensor), actual.sizes().vec(), tensor.sizes().vec()};
    });
  }

  Divergence describe(const ComparedValue& value, const Measured& measured) const {
    const Node& node = *value.reference->producer();
    Divergence divergence{value.name,          value.op,
                          node.op(),           node.module_path.empty() ? value.module : node.module_path,
                          measured.sizes,      measured.reference_sizes,
                          measured.difference, {}};
    std::unordered_set<const Value*> seen;
    node.for_each_input([&](const Value* input) {
      if (seen.insert(input).second) divergence.inputs.push_back(input_difference(input));
    });
    return divergence;
  }

  NamedDifference input_difference(const Value* input) const {
    const InputSpec* spec = reference_.find_input(input);
    if (spec == nullptr) {
      const auto found = measured_.find(input);
      return {input->name(), found == measured_.end() ? std::nullopt : std::optional(found->second.difference)};
    }
    if (spec->kind == InputKind::UserInput) return {spec->target, Difference{}};
    const auto actual = artefact_.weight(spec->target);
    if (!actual) return {spec->target, std::nullopt};
    return {spec->target, largest_difference(*actual, to_tensor(reference_.state.at(spec->target)))};
  }

  std::vector<NamedDifference> compare_weights() const {
    std::vector<NamedDifference> different;
    for (const auto& input : reference_.inputs) {
      const auto state = reference_.state.find(input.target);
      if (input.kind == InputKind::UserInput || state == reference_.state.end()) continue;
      const auto actual = artefact_.weight(input.target);
      if (!actual) continue;
      const at::Tensor expected = to_tensor(state->second);
      if (actual->scalar_type() == expected.scalar_type() && at::equal(*actual, expected)) continue;
      const Difference difference = largest_difference(*actual, expected);
      if (difference.absolute > 0) different.push_back({input.target, difference});
    }
    return different;
  }

  ComparedArtefact& artefact_;
  const Program& reference_;
  const NamedTensors& inputs_;
  const DivergenceOptions& options_;
  std::unordered_map<const Value*, Measured> measured_;
};

}  // namespace

DivergenceReport compare(ComparedArtefact& artefact, const Program& reference, const NamedTensors& inputs,
                         const DivergenceOptions& options) {
  return Comparison(artefact, reference, inputs, options).run();
}

std::vector<const Value*> telling_values(const Program& program) {
  std::vector<const Value*> values;
  for (const Node& node : *program.graph)
    for (const Value* output : node.outputs())
      if (!is_unwritten(node) && (!output->uses().empty() || program.graph->is_output(output)))
        values.push_back(output);
  return values;
}

std::unordered_map<const Value*, std::string> output_targets(const Program& program) {
  std::unordered_map<const Value*, std::string> targets;
  for (const auto& output : program.outputs)
    if (output.value) targets.emplace(output.value, output.target);
  return targets;
}

void run_program(const Program& program, const NamedTensors& inputs,
                 const std::function<void(const Value* value, const at::Tensor& tensor)>& found) {
  std::vector<const Node*> nodes;
  for (const Node& node : *program.graph) nodes.push_back(&node);
  // A new interpreter, since buffers keep what a run made of them.
  Interpreter interpreter(program);
  interpreter.observe([&](size_t index, const std::vector<c10::IValue>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const auto tensor = as_tensor(outputs[i])) found(nodes[index]->outputs()[i], *tensor);
  });
  NamedTensors copies;
  for (const auto& [name, tensor] : inputs) copies.emplace(name, tensor.clone());
  interpreter.run_named(copies);
}

}  // namespace transporters
