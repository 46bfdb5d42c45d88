// Divergence of a program, as a .pt2 holds it.
#include <unordered_map>

#include "transporters/export/exporters.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/passes/rewrite.h"
#include "transporters/verify/comparison.h"

namespace transporters {
namespace {

std::vector<AlignedValue> aligned_values(const Program& program, const std::vector<const Value*>& values) {
  const auto targets = output_targets(program);
  std::vector<AlignedValue> aligned;
  for (const Value* value : values) {
    const Node& node = *value->producer();
    if (const auto target = targets.find(value); target != targets.end())
      aligned.push_back(AlignedValue::output(target->second));
    else
      aligned.push_back({node.module_path, node.op() + " " + std::to_string(value->index()), value->name()});
  }
  return aligned;
}

// Counterparts of values, checked along the way: a guess is dropped when its node reads other values.
class Counterparts {
 public:
  Counterparts(const Program& artefact, const Program& reference) {
    for (const auto& input : artefact.inputs)
      if (const InputSpec* other = reference.find_input(input.target); other && input.value && other->value)
        counterparts_[input.value] = other->value;
  }

  bool reads_the_same(const Value* value, const Value* reference) const {
    const auto inputs = inputs_of(value), expected = inputs_of(reference);
    if (inputs.size() != expected.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (const auto known = counterparts_.find(inputs[i]);
          known != counterparts_.end() && known->second != expected[i])
        return false;
    return true;
  }
  void add(const Value* value, const Value* reference) { counterparts_[value] = reference; }

 private:
  static std::vector<const Value*> inputs_of(const Value* value) {
    std::vector<const Value*> inputs;
    value->producer()->for_each_input([&](const Value* input) { inputs.push_back(input); });
    return inputs;
  }

  std::unordered_map<const Value*, const Value*> counterparts_;
};

class ComparedProgram : public ComparedArtefact {
 public:
  ComparedProgram(const Program& program, const Program& reference) : program_(program) {
    const auto own = telling_values(program), others = telling_values(reference);
    const auto aligned = aligned_values(program, own);
    const Alignment alignment = align(aligned, aligned_values(reference, others));
    by_name_ = alignment.by_name;
    value_count_ = own.size();
    Counterparts counterparts(program, reference);
    for (const auto& [first, second] : alignment.pairs) {
      const bool is_guess = !by_name_ && !aligned[first].is_output();
      if (is_guess && !counterparts.reads_the_same(own[first], others[second])) continue;
      counterparts.add(own[first], others[second]);
      places_[own[first]] = values_.size();
      const Node& node = *own[first]->producer();
      values_.push_back({own[first]->name(), node.op(), node.module_path, others[second]});
    }
  }

  void run(const NamedTensors& inputs, size_t begin, size_t end, const Found& found) override {
    run_program(program_, inputs, [&](const Value* value, const at::Tensor& tensor) {
      const auto place = places_.find(value);
      if (place != places_.end() && begin <= place->second && place->second < end) found(place->second, tensor);
    });
  }

  std::optional<at::Tensor> weight(const std::string& target) const override {
    const auto state = program_.state.find(target);
    return state == program_.state.end() ? std::nullopt : std::optional(to_tensor(state->second));
  }

 private:
  const Program& program_;
  std::unordered_map<const Value*, size_t> places_;
};

// ONNX has no strides, so programs for it drop the copies that made a view possible.
void run_without_strides(Program& program) {
  for (auto it = program.graph->begin(); it != program.graph->end();) {
    Node& node = *it;
    ++it;
    if (node.is("aten::view") || node.is("aten::_unsafe_view"))
      replace_node(program, &node, "aten::reshape", {{"self", node.tensor("self")}, {"shape", node.get("size")}});
  }
}

}  // namespace

DivergenceReport find_divergence(const Program& artefact, const Program& reference, const NamedTensors& inputs,
                                 const DivergenceOptions& options) {
  ComparedProgram compared(artefact, reference);
  return compare(compared, reference, inputs, options);
}

Program reference_program(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                          const ExportConfig& config) {
  const Registry& registry = Registry::global();
  const ExportTarget target = detail::model_target(model, inputs);
  if (const auto* onnx = std::get_if<OnnxConfig>(&config))
    return reference_program(trace_program(target, onnx->dynamo(), OnnxExporter::backends(), registry, nullptr),
                             config);
  const auto& dynamo = std::get<DynamoConfig>(config);
  return reference_program(trace_program(target, dynamo, DynamoExporter::backends(), registry, nullptr), config);
}

Program reference_program(Program program, const ExportConfig& config) {
  const Registry& registry = Registry::global();
  if (const auto* onnx = std::get_if<OnnxConfig>(&config)) {
    program = prepare_onnx(std::move(program), *onnx, registry);
    run_without_strides(program);
    return program;
  }
  return lower_dynamo(std::move(program), std::get<DynamoConfig>(config), registry).program;
}

}  // namespace transporters
