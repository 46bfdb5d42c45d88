// Where an artefact and a reference part: both graphs are run node by node, and values that correspond are compared in
// the artefact's order.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/export/configs.h"
#include "transporters/graph/program.h"
#include "transporters/models/pretrained_model.h"
#include "transporters/verify/difference.h"

namespace transporters {

// A value that a node reads, or a weight, by the reference's name.
struct NamedDifference {
  std::string name;
  std::optional<Difference> difference;  // nullopt when the artefact has no counterpart
};

// The first value beyond the tolerance.
struct Divergence {
  std::string value;         // the artefact's name of it
  std::string op;            // the artefact's op that makes it: "MatMul", "aten::linear"
  std::string reference_op;  // "aten::linear"
  std::string module;        // dotted path
  std::vector<int64_t> sizes;
  std::vector<int64_t> reference_sizes;
  Difference difference;
  std::vector<NamedDifference> inputs;  // what the reference's node reads
};

struct DivergenceReport {
  std::optional<Divergence> first;
  size_t values = 0;    // that the artefact computes
  size_t compared = 0;  // of them, until the first difference
  // Weights that are not the same bytes, or whose numbers differ; in the order of the reference's inputs.
  std::vector<NamedDifference> weights;
};

struct DivergenceOptions {
  double tolerance = 1e-4;  // largest difference, as a part of the largest value
  // Values are compared in runs that keep about so many bytes of them.
  uint64_t bytes_per_run = uint64_t{256} << 20;
  std::string onnxruntime;  // OnnxRuntimeOptions::library
};

// The program that an export of this model with this config would write, with its values by the same names, in a form
// that the interpreter runs. `inputs` are the samples that are traced.
Program reference_program(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                          const ExportConfig& config);
// The same for a program that was read from a .pt2, and converted with this config.
Program reference_program(Program program, const ExportConfig& config);

// `inputs` are those of both graphs, by name. Throws Error when one of the graphs fails.
DivergenceReport find_divergence(const Program& artefact, const Program& reference,
                                 const std::map<std::string, at::Tensor>& inputs,
                                 const DivergenceOptions& options = {});
// An ONNX model, run by ONNX Runtime as it stands in the file: copies of it, cut after a value and with values as
// outputs, are written to a temporary folder.
DivergenceReport find_divergence(const std::filesystem::path& onnx_file, const Program& reference,
                                 const std::map<std::string, at::Tensor>& inputs,
                                 const DivergenceOptions& options = {});

}  // namespace transporters
