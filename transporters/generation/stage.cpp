#include "transporters/generation/stage.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/onnx/model.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/shared_buffers.h"
#include "transporters/runners/interpreter.h"
#include "transporters/runners/onnxruntime.h"

namespace transporters {
namespace {

class Pt2Stage : public Stage {
 public:
  explicit Pt2Stage(const Program& program) : interpreter_(program) {
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputKind::UserInput || input.value == nullptr) continue;
      StageInput row{input.target, at::kLong, {}};
      if (input.value->is_tensor()) {
        row.dtype = input.value->dtype();
        for (const Expr& size : input.value->sizes()) row.sizes.push_back(size.as_integer());
      }
      inputs_.push_back(std::move(row));
    }
  }

  std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) override {
    std::map<std::string, at::Tensor> outputs;
    for (auto& [name, value] : interpreter_.run_named(inputs))
      if (value.isTensor()) outputs.emplace(name, value.toTensor());
    return outputs;
  }

 private:
  Interpreter interpreter_;
};

// An input and an output of one leaf path are told apart by prefixes.
std::string leaf_path(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// Whether the graph passes `input` on as it is (an encoder's keys and values).
bool passes_on(const onnx::Value& output, const onnx::Value& input) {
  const onnx::Node* node = output.producer();
  return node != nullptr && node->is("Identity") && node->input(0) == &input;
}

class OnnxStage : public Stage {
 public:
  OnnxStage(const std::filesystem::path& file, const std::string& library, int threads)
      : session_(file, {.library = library, .threads = threads}) {
    const onnx::Model model = onnx::load(file);
    const auto shared = onnx::shared_buffers(model);
    for (const onnx::Value* input : model.graph->inputs()) {
      if (input->initializer) continue;  // state with a value of its own
      const auto dtype = onnx::to_scalar_type(input->type);
      if (!dtype)
        throw Error({.stage = "generation", .file = file.string()},
                    "input '" + input->name() + "' has a type that torch lacks");
      StageInput row{leaf_path(input->name(), "input."), *dtype, {}};
      if (input->shape)
        for (const onnx::Dim& dim : *input->shape)
          row.sizes.push_back(dim.is_known() ? std::optional(dim.value) : std::nullopt);
      names_[row.name] = input->name();
      const bool is_shared = std::find(shared.begin(), shared.end(), row.name) != shared.end();
      for (const onnx::Value* output : model.graph->outputs())
        if (leaf_path(output->name(), "output.") == row.name && (is_shared || passes_on(*output, *input)))
          in_place_[output->name()] = row.name;
      inputs_.push_back(std::move(row));
    }
  }

  std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) override {
    std::map<std::string, at::Tensor> feed, targets;
    for (const auto& [name, tensor] : inputs) feed.emplace(names_.at(name), tensor);
    for (const auto& [output, input] : in_place_)
      if (const at::Tensor& tensor = inputs.at(input); tensor.is_contiguous()) targets.emplace(output, tensor);
    std::vector<at::Tensor> results = session_.run(feed, targets);
    std::map<std::string, at::Tensor> outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs.emplace(leaf_path(session_.output_names()[i], "output."), std::move(results[i]));
    return outputs;
  }

 private:
  OnnxRuntimeSession session_;
  std::map<std::string, std::string> names_;     // leaf path to the model's name
  std::map<std::string, std::string> in_place_;  // the model's output to the leaf path whose memory it takes
};

}  // namespace

std::unique_ptr<Stage> open_pt2_stage(const std::filesystem::path& file, const std::string& model) {
  return std::make_unique<Pt2Stage>(dynamo::load(file, model));
}

std::unique_ptr<Stage> open_onnx_stage(const std::filesystem::path& file, const std::string& library, int threads) {
  return std::make_unique<OnnxStage>(file, library, threads);
}

}  // namespace transporters
