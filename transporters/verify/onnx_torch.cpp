// Divergence of an ONNX model: its values carry the names of the program's values.
#include <algorithm>
#include <unordered_map>

#include "transporters/export/atomic_file.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/onnx/ir_fixes.h"
#include "transporters/onnx/node_names.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/writer.h"
#include "transporters/runners/onnxruntime.h"
#include "transporters/verify/comparison.h"
#include "transporters/verify/temporary_folder.h"

namespace transporters {
namespace {

namespace fs = std::filesystem;

// "linear_12" -> "linear".
std::string stem(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool is_numbered = end != std::string::npos && end + 1 < name.size() && name[end] == '_' && end > 0;
  return is_numbered ? name.substr(0, end) : name;
}

// A model's outputs have the names of the program's outputs, which differ from those of its values.
std::string output_target(const std::string& name) { return name.starts_with("output.") ? name.substr(7) : name; }

std::vector<AlignedValue> aligned_values(const Program& program, const std::vector<const Value*>& values) {
  const auto targets = output_targets(program);
  std::vector<AlignedValue> aligned;
  for (const Value* value : values) {
    const auto target = targets.find(value);
    if (target == targets.end())
      aligned.push_back({value->producer()->module_path, stem(value->name()), value->name()});
    else
      aligned.push_back(AlignedValue::output(target->second));
  }
  return aligned;
}

std::vector<onnx::Tensor*> initializers(onnx::Graph& graph) {
  std::vector<onnx::Tensor*> tensors;
  graph.for_each_graph([&](onnx::Graph& inner) {
    for (const auto& value : inner.initializers()) tensors.push_back(&*value->initializer);
    for (onnx::Value* input : inner.inputs())
      if (input->initializer) tensors.push_back(&*input->initializer);
  });
  return tensors;
}

class ComparedOnnx : public ComparedArtefact {
 public:
  ComparedOnnx(const fs::path& file, const Program& reference, const std::string& library)
      : file_(file), library_(library), model_(onnx::load(file)) {
    const onnx::Graph& graph = *model_.graph;
    std::vector<const onnx::Value*> own;
    std::vector<AlignedValue> aligned;
    for (const auto& node : graph.nodes()) {
      for (const onnx::Value* value : node->outputs()) {
        if (value->name().empty() || !onnx::to_scalar_type(value->type)) continue;
        // "linear/MatMul" is a step on the way to "linear".
        const bool is_output = graph.is_output(value);
        if (!is_output && value->name().find('/') != std::string::npos) continue;
        own.push_back(value);
        if (is_output)
          aligned.push_back(AlignedValue::output(output_target(value->name())));
        else
          aligned.push_back({onnx::module_path(*node), stem(value->name()), value->name()});
      }
    }
    const auto others = telling_values(reference);
    const Alignment alignment = align(aligned, aligned_values(reference, others));
    by_name_ = alignment.by_name;
    value_count_ = own.size();
    for (const auto& [first, second] : alignment.pairs) {
      const onnx::Node& node = *own[first]->producer();
      values_.push_back({own[first]->name(), onnx::full_op(node), onnx::module_path(node), others[second]});
    }
    for (const auto& value : graph.initializers()) weights_[value->name()] = &*value->initializer;
  }

  void prepare(const std::vector<std::pair<size_t, size_t>>& ranges) override {
    std::vector<onnx::Model> models;
    for (const auto& [begin, end] : ranges) models.push_back(part(begin, end));
    std::vector<onnx::NamedModel> named;
    for (size_t i = 0; i < models.size(); ++i) named.push_back({part_file(ranges[i].first), &models[i]});
    AtomicFiles files(folder_.path());
    onnx::save(named, files, {.data_file = "weights"});
    files.commit();
  }

  void run(const NamedTensors& inputs, size_t begin, size_t end, const Found& found) override {
    OnnxRuntimeSession session(folder_.path() / part_file(begin), {.library = library_, .optimize = false});
    std::unordered_map<std::string, size_t> places;
    for (size_t i = begin; i < end; ++i) places[values_[i].name] = i;
    const auto results = session.run(inputs);
    for (size_t i = 0; i < results.size(); ++i) found(places.at(session.output_names()[i]), results[i]);
  }

  std::optional<at::Tensor> weight(const std::string& target) const override {
    for (const bool is_transposed : {false, true}) {
      const auto found = weights_.find(is_transposed ? target + ".transposed" : target);
      if (found == weights_.end()) continue;
      const onnx::Tensor& tensor = *found->second;
      if (!tensor.strings.empty() || tensor.data.sizes != tensor.dims) continue;
      if (!is_transposed) return to_tensor(tensor.data);
      if (tensor.dims.size() == 2) return to_tensor(tensor.data).t();
    }
    return std::nullopt;
  }

 private:
  static std::string part_file(size_t begin) { return "from_" + std::to_string(begin) + ".onnx"; }

  // The model with these values as its outputs, and nothing that they do not need.
  onnx::Model part(size_t begin, size_t end) {
    onnx::Model model = onnx::load(file_);
    // The same bytes, so that all parts share one data file.
    const auto from = initializers(*model_.graph), to = initializers(*model.graph);
    for (size_t i = 0; i < to.size(); ++i) *to[i] = *from[i];
    std::unordered_map<std::string, onnx::Value*> by_name;
    for (const auto& node : model.graph->nodes())
      for (onnx::Value* value : node->outputs()) by_name[value->name()] = value;
    std::vector<onnx::Value*> outputs;
    for (size_t i = begin; i < end; ++i) outputs.push_back(by_name.at(values_[i].name));
    model.graph->set_outputs(std::move(outputs));
    onnx::remove_dead_nodes(model);
    return model;
  }

  fs::path file_;
  std::string library_;
  onnx::Model model_;
  TemporaryFolder folder_;
  std::unordered_map<std::string, const onnx::Tensor*> weights_;
};

}  // namespace

DivergenceReport find_divergence(const fs::path& onnx_file, const Program& reference, const NamedTensors& inputs,
                                 const DivergenceOptions& options) {
  ComparedOnnx compared(onnx_file, reference, options.onnxruntime);
  return compare(compared, reference, inputs, options);
}

}  // namespace transporters
