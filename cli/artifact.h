// An exported graph that can be run: a .pt2 through our interpreter, an .onnx through ONNX Runtime.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/export/metadata.h"

namespace transporters::cli {

// Sizes that one axis of an input takes.
struct AxisSizes {
  int64_t min = 0;
  int64_t max = symbolic::Range::kInfinity;
  bool contains(int64_t size) const { return min <= size && size <= max; }
};

struct ArtifactInput {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<AxisSizes> sizes;
};

class Artifact {
 public:
  virtual ~Artifact() = default;
  // Inputs that are tensors, in order.
  const std::vector<ArtifactInput>& inputs() const { return inputs_; }
  // Outputs by name. Throws Error when inputs do not fit.
  virtual std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) = 0;
  // Weights by checkpoint name; empty when the format does not keep them under those.
  virtual std::map<std::string, TensorData> weights() const { return {}; }
  // How its graph computes attention, "sdpa" or "eager"; "" when it shows neither.
  virtual std::string attention() const { return ""; }

 protected:
  std::vector<ArtifactInput> inputs_;
};

// What an export folder holds, or the one file that was named.
struct Export {
  ExportFormat format;
  std::filesystem::path folder;  // empty for a file that was named
  std::vector<ManifestEntry> components;
};

// Reads the manifest of an export folder; a .pt2 or .onnx file counts as an export of one component, "model". Throws
// Error for anything else.
Export open_export(const std::filesystem::path& path);

// The component of that name, or the only one when `component` is empty. Throws Error that lists them.
const ManifestEntry& find_component(const Export& exported, const std::string& component);

// Loads a component to run it. `onnxruntime` names ONNX Runtime's library; "" looks where it usually is.
std::unique_ptr<Artifact> open_artifact(const Export& exported, const ManifestEntry& component,
                                        const std::string& onnxruntime);

}  // namespace transporters::cli
