// The stages of an export, in order, on one page: see pipeline_torch.cpp.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "transporters/export/exported_model.h"
#include "transporters/registry/registry.h"
#include "transporters/trace/tracer.h"

namespace transporters {

// What an exporter is given: code, its inputs and state, and what the manifest says of them.
struct ExportTarget {
  TracedFunction forward;
  std::vector<TraceState> state;
  // Samples by leaf path; their `dims` are filled in from the config.
  std::vector<TraceInput> inputs;
  // Names for the axes of an input when every axis is dynamic ("batch", "sequence"); may be shorter or absent. An axis
  // of this name is not dynamic all the same.
  static constexpr const char* kFixedAxis = "=";
  std::map<std::string, std::vector<std::string>> axis_names;
  TreeSpec in_spec;
  std::string architecture;
  std::string attention;  // ExportMetadata::attention
  std::map<std::string, std::string> config_files;
  // A module of it is in training mode: then ops that differ there are refused.
  bool is_training = false;
  // What TraceOptions says of them.
  bool answer_from_samples = false;
  std::function<std::string()> source = {};
  std::function<std::optional<c10::Scalar>(const at::Tensor&)> wrapped_number = {};
};

// Traces and cleans up: what DynamoExporter returns and every other exporter starts from. `backends` are those whose
// patches apply; `notes` takes what a user should know.
Program trace_program(const ExportTarget& target, const DynamoConfig& config, const std::vector<std::string>& backends,
                      const Registry& registry, std::vector<std::string>* notes);

// The program that an ONNX export translates: fixed and decomposed, with the values whose names the model carries.
Program prepare_onnx(Program program, const OnnxConfig& config, const Registry& registry);

// Looks at a program that was read from a file. One in training mode is a warning for .pt2, which can hold it, and an
// Error for the other formats.
std::vector<std::string> check_converted(const Program& program, ExportFormat format);

// Lowers a traced or loaded program for its format.
ExportedComponent lower_dynamo(Program program, const DynamoConfig& config, const Registry& registry);
ExportedComponent lower_onnx(Program program, const OnnxConfig& config, const Registry& registry);

}  // namespace transporters
