#include "cli/artifact.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/size_ranges.h"
#include "transporters/runners/interpreter.h"
#include "transporters/runners/onnxruntime.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

class Pt2Artifact : public Artifact {
 public:
  explicit Pt2Artifact(Program program) : program_(std::move(program)), interpreter_(program_) {
    symbolic::ShapeEnv env;
    for (const auto& [symbol, range] : program_.ranges) env.add_symbol({.name = symbol, .range = range});
    for (const auto& input : program_.inputs) {
      if (input.kind != InputKind::UserInput || !input.value || !input.value->is_tensor()) continue;
      ArtifactInput info{input.target, input.value->dtype(), {}};
      for (const Expr& size : input.value->sizes()) {
        const symbolic::Range bounds = env.bounds(size);
        info.sizes.push_back({bounds.min, bounds.max});
      }
      inputs_.push_back(std::move(info));
    }
  }

  std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) override {
    std::map<std::string, at::Tensor> outputs;
    for (auto& [name, value] : interpreter_.run_named(inputs)) {
      if (value.isTensor()) outputs.emplace(name, value.toTensor());
      if (value.isScalar()) outputs.emplace(name, at::scalar_to_tensor(value.toScalar()));
    }
    return outputs;
  }

  std::map<std::string, TensorData> weights() const override { return program_.state; }

  std::string attention() const override {
    bool has_softmax = false;
    for (const Node& node : *program_.graph) {
      if (node.is("aten::scaled_dot_product_attention")) return "sdpa";
      has_softmax |= node.schema().base_name().find("softmax") != std::string_view::npos;
    }
    return has_softmax ? "eager" : "";
  }

 private:
  Program program_;
  Interpreter interpreter_;
};

class OnnxArtifact : public Artifact {
 public:
  OnnxArtifact(const fs::path& file, const std::string& library) : session_(file, {.library = library}) {
    const onnx::Model model = onnx::load(file);
    const auto ranges = onnx::size_ranges(model);
    for (const onnx::Value* value : model.graph->inputs()) {
      const auto dtype = onnx::to_scalar_type(value->type);
      if (!dtype) continue;
      ArtifactInput info{value->name(), *dtype, {}};
      if (value->shape)
        for (const onnx::Dim& dim : *value->shape) {
          const auto range = ranges.find(dim.param);
          info.sizes.push_back(dim.is_known()          ? AxisSizes{dim.value, dim.value}
                               : range == ranges.end() ? AxisSizes{}
                                                       : AxisSizes{range->second.min, range->second.max});
        }
      inputs_.push_back(std::move(info));
    }
    bool has_softmax = false;
    for (const auto& node : model.graph->nodes()) {
      has_softmax |= node->op == "Softmax";
      // Values carry the names of the program's.
      for (const onnx::Value* output : node->outputs())
        if (output->name().starts_with("scaled_dot_product_attention")) attention_ = "sdpa";
    }
    if (attention_.empty() && has_softmax) attention_ = "eager";
  }

  std::string attention() const override { return attention_; }

  std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) override {
    std::vector<at::Tensor> results = session_.run(inputs);
    std::map<std::string, at::Tensor> outputs;
    for (size_t i = 0; i < results.size(); ++i) outputs.emplace(session_.output_names()[i], std::move(results[i]));
    return outputs;
  }

 private:
  OnnxRuntimeSession session_;
  std::string attention_;
};

}  // namespace

Export open_export(const fs::path& path) {
  if (fs::is_regular_file(path)) {
    const std::string extension = path.extension();
    const ManifestEntry only{"model", path.string(), {}};
    if (extension == ".pt2") return {ExportFormat::Dynamo, {}, {only}};
    if (extension == ".onnx") return {ExportFormat::Onnx, {}, {only}};
    throw Error(ErrorContext{.stage = "read", .file = path.string()},
                "expected an export folder, a .pt2 or an .onnx file");
  }
  const fs::path manifest = path / "export.json";
  std::ifstream file(manifest, std::ios::binary);
  if (!file)
    throw Error(ErrorContext{.stage = "read", .file = path.string()},
                fs::is_directory(path) ? "this folder holds no export.json; give the --out of an export"
                                       : "there is no such file or folder");
  auto [format, components] = parse_manifest({std::istreambuf_iterator<char>(file), {}});
  if (components.empty())
    throw Error(ErrorContext{.stage = "read", .file = manifest.string()}, "the export has no components");
  return {format, path, std::move(components)};
}

const ManifestEntry& find_component(const Export& exported, const std::string& component) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& entry : exported.components) {
    if (entry.component == component) return entry;
    names.push_back(entry.component);
    list += (list.empty() ? "'" : ", '") + entry.component + "'";
  }
  if (component.empty() && exported.components.size() == 1) return exported.components.front();
  throw Error(ErrorContext{.stage = "read", .file = exported.folder.string()},
              component.empty() ? "the export has components " + list + "; choose one with --component"
                                : "there is no component '" + component + "'" + did_you_mean(component, names) +
                                      "; components are " + list);
}

std::unique_ptr<Artifact> open_artifact(const Export& exported, const ManifestEntry& component,
                                        const std::string& onnxruntime) {
  const fs::path file = exported.folder / component.file;
  switch (exported.format) {
    case ExportFormat::Dynamo:
      return std::make_unique<Pt2Artifact>(dynamo::load(file, model_in_file(exported.components, component)));
    case ExportFormat::Onnx:
      return std::make_unique<OnnxArtifact>(file, onnxruntime);
    default:
      throw Error(ErrorContext{.stage = "run", .file = file.string()},
                  "this build runs dynamo and onnx exports, not '" + std::string(to_string(exported.format)) + "'");
  }
}

}  // namespace transporters::cli
