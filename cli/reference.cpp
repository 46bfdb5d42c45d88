#include "cli/reference.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "cli/common.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/safetensors.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/models/auto.h"
#include "transporters/runners/interpreter.h"
#include "transporters/verify/divergence.h"
#include "transporters/verify/temporary_folder.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

// Masks some tokens of each row: rows in turn are whole, padded on the left, padded on the right.
at::Tensor padded(const at::Tensor& mask) {
  at::Tensor result = mask.clone();
  const int64_t length = mask.size(1);
  const int64_t count = length / 3;
  if (count == 0) return result;
  for (int64_t row = 0; row < mask.size(0); ++row) {
    const int64_t kind = (row + length) % 3;
    if (kind == 1) result[row].slice(0, 0, count).zero_();
    if (kind == 2) result[row].slice(0, length - count, length).zero_();
  }
  return result;
}

void pad_mask(NamedTensors& inputs) {
  const auto mask = inputs.find("attention_mask");
  if (mask != inputs.end() && mask->second.dim() == 2) mask->second = padded(mask->second);
}

class ModelReference : public Reference {
 public:
  explicit ModelReference(std::shared_ptr<PreTrainedModel> model) : model_(std::move(model)) {}

  std::optional<NamedTensors> inputs(int64_t batch, int64_t length) const override {
    const auto table = model_->position_table();
    if (table && length > table->longest) return std::nullopt;
    NamedTensors named;
    for (const auto& [name, tensor] : model_->example_inputs(batch, length).leaves()) named.emplace(name, tensor);
    pad_mask(named);
    return named;
  }

  NamedTensors run(const NamedTensors& inputs) override {
    const at::NoGradGuard no_gradients;
    ModelInputs all;
    for (const auto& [name, tensor] : inputs) all.set(name, tensor);
    NamedTensors outputs;
    try {
      for (const auto& [path, tensor] : model_->forward(all).leaves()) outputs.emplace(path, tensor);
    } catch (const c10::Error& error) {
      throw Error(ErrorContext{.stage = "verify"},
                  "the eager model fails: " + one_line(error.what_without_backtrace()));
    }
    return outputs;
  }

  at::ScalarType dtype() const override { return model_->dtype(); }

  Program program(std::pair<int64_t, int64_t> sizes, const NamedTensors& inputs,
                  const ExportConfig& config) const override {
    ModelInputs traced;
    for (const auto& [name, tensor] : model_->example_inputs(sizes.first, sizes.second).leaves())
      if (inputs.contains(name)) traced.set(name, tensor);
    return reference_program(model_, traced, config);
  }

  std::string attention() const override { return attention_name(model_->attention()); }

 private:
  std::shared_ptr<PreTrainedModel> model_;
};

// A program's sample repeated or cut to other sizes: its values are ones that the program takes (ids of words it has).
at::Tensor resized(at::Tensor sample, const std::vector<int64_t>& sizes) {
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto dim = static_cast<int64_t>(axis);
    if (sample.size(dim) == 0) return at::zeros(sizes, sample.options());
    sample = sample.index_select(dim, at::remainder(at::arange(sizes[axis], at::kLong), sample.size(dim)));
  }
  return sample;
}

class Pt2Reference : public Reference {
 public:
  // `component` is the program to take in an archive of several.
  Pt2Reference(const fs::path& file, const std::string& component)
      : program_(dynamo::load(file, dynamo::model_names(file).size() > 1 ? component : "")), interpreter_(program_) {
    for (const auto& input : program_.inputs) {
      if (input.kind != InputKind::UserInput || !input.value || !input.value->is_tensor()) continue;
      for (size_t axis = 0; axis < input.value->sizes().size(); ++axis)
        for (const std::string& symbol : input.value->sizes()[axis].symbols()) is_batch_.emplace(symbol, axis == 0);
    }
  }

  std::optional<NamedTensors> inputs(int64_t batch, int64_t length) const override {
    const auto value_of = [&](std::string_view symbol) -> std::optional<int64_t> {
      const auto found = is_batch_.find(std::string(symbol));
      if (found == is_batch_.end()) return std::nullopt;
      return found->second ? batch : length;
    };
    for (const auto& [symbol, range] : program_.ranges)
      if (const auto value = value_of(symbol); value && !range.contains(*value)) return std::nullopt;
    NamedTensors named;
    for (const auto& input : program_.inputs) {
      if (input.kind != InputKind::UserInput || !input.value || !input.value->is_tensor()) continue;
      std::vector<int64_t> sizes;
      for (const Expr& size : input.value->sizes()) {
        const auto number = size.evaluate(value_of);
        const auto* integer = number ? std::get_if<int64_t>(&*number) : nullptr;
        if (!integer || *integer < 0) return std::nullopt;
        sizes.push_back(*integer);
      }
      named.emplace(input.target, resized(sample(input), sizes));
    }
    pad_mask(named);
    return named;
  }

  NamedTensors run(const NamedTensors& inputs) override {
    NamedTensors outputs;
    for (auto& [name, value] : interpreter_.run_named(inputs))
      if (value.isTensor()) outputs.emplace(name, value.toTensor());
    return outputs;
  }

  at::ScalarType dtype() const override {
    for (const auto& input : program_.inputs)
      if (input.value && input.value->is_tensor() && c10::isFloatingType(input.value->dtype()))
        return input.value->dtype();
    return at::kFloat;
  }

  Program program(std::pair<int64_t, int64_t>, const NamedTensors&, const ExportConfig& config) const override {
    return reference_program(program_.clone(), config);
  }

 private:
  at::Tensor sample(const InputSpec& input) const {
    for (const auto& example : program_.example_inputs)
      if (example.path == input.target) return to_tensor(example.data);
    const std::vector<int64_t> one(input.value->sizes().size(), 1);
    return at::ones(one, input.value->dtype());
  }

  Program program_;
  Interpreter interpreter_;
  std::map<std::string, bool> is_batch_;  // whether a symbol is first seen as the first axis of an input
};

std::string choose_attention(const ReferenceArguments& arguments, const ManifestEntry& component,
                             const Artifact& artifact) {
  if (!arguments.attention.empty()) return arguments.attention;
  if (!component.metadata.attention.empty()) return component.metadata.attention;
  return artifact.attention().empty() ? LoadOptions().attention : artifact.attention();
}

}  // namespace

std::unique_ptr<Reference> open_reference(const ReferenceArguments& arguments, const Export& exported,
                                          const ManifestEntry& component, const Artifact& artifact) {
  if (fs::path(arguments.path).extension() == ".pt2" && fs::is_regular_file(arguments.path)) {
    if (!arguments.attention.empty())
      throw UsageError("--attention goes with the eager model of a checkpoint folder, not with a .pt2");
    return std::make_unique<Pt2Reference>(arguments.path, component.component);
  }
  LoadOptions options;
  options.dtype = dtype_from_name(component.metadata.export_dtype);
  options.attention = choose_attention(arguments, component, artifact);
  const std::string& architecture = component.metadata.architecture;
  const auto load = [&](const fs::path& folder) {
    return std::make_unique<ModelReference>(load_model(folder, options, architecture, "the export"));
  };
  if (!arguments.path.empty()) return load(arguments.path);
  const auto weights = artifact.weights();
  const fs::path config = exported.folder / "config.json";
  if (weights.empty() || exported.folder.empty() || !fs::exists(config))
    throw UsageError(
        "give --reference CHECKPOINT, or the .pt2 it was converted from: the export does not keep config.json and the "
        "weights under their checkpoint's names");
  const TemporaryFolder folder;
  fs::copy_file(config, folder.path() / "config.json");
  write_safetensors(folder.path() / "model.safetensors", {weights.begin(), weights.end()});
  return load(folder.path());
}

}  // namespace transporters::cli
