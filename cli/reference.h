// What `verify` compares an export with: the eager model of a checkpoint, or a .pt2 run by our interpreter.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/artifact.h"
#include "transporters/graph/program.h"

namespace transporters::cli {

using NamedTensors = std::map<std::string, at::Tensor>;

class Reference {
 public:
  virtual ~Reference() = default;
  // Inputs of these sizes, with padding in the mask if there is one; nullopt for sizes that it does not take.
  virtual std::optional<NamedTensors> inputs(int64_t batch, int64_t length) const = 0;
  // Outputs by name, for what inputs() gave. Throws Error.
  virtual NamedTensors run(const NamedTensors& inputs) = 0;
  // Type of the weights.
  virtual at::ScalarType dtype() const = 0;
  // Its graph as an export with this config would write it. `sizes` are those of the traced example; only inputs named
  // in `inputs` are traced.
  virtual Program program(std::pair<int64_t, int64_t> sizes, const NamedTensors& inputs,
                          const ExportConfig& config) const = 0;
  // "sdpa" or "eager" where the caller's model is eager; "" for a .pt2.
  virtual std::string attention() const { return ""; }
};

struct ReferenceArguments {
  std::string path;       // checkpoint folder or .pt2; "" for the artefact's own weights
  std::string attention;  // "": the export's
};

// Throws Error, and UsageError when the export does not hold what an empty path needs.
std::unique_ptr<Reference> open_reference(const ReferenceArguments& arguments, const Export& exported,
                                          const ManifestEntry& component, const Artifact& artifact);

}  // namespace transporters::cli
