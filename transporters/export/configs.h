// What an export can be asked for: the same fields as transformers.exporters' configs, to and from JSON.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "transporters/export/dim.h"

namespace transporters {

enum class ExportFormat : uint8_t { Dynamo, Onnx, OpenVino, Executorch };

// "dynamo", "onnx", "openvino", "executorch".
std::string_view to_string(ExportFormat format);
// Whether this build has an exporter for the format; the others are only known by name.
bool is_available(ExportFormat format);
// Throws Error with near names of available formats.
ExportFormat parse_export_format(std::string_view name);

struct DynamoConfig {
  // Every axis of every input is dynamic, as Dim::Auto.
  bool dynamic = false;
  // Axes by input; takes precedence over `dynamic`. Axes and inputs that are not named are static.
  DynamicShapes dynamic_shapes;
  // Accepted for compatibility: tracing here always sees every op, so there is no looser mode.
  bool strict = false;
  // A guard that would narrow an explicit Dim becomes a runtime assert in place of an error.
  bool prefer_deferred_runtime_asserts_over_guards = false;

  static DynamoConfig from_json(std::string_view json);
  std::string to_json() const;
};

// DynamoConfig's fields, repeated so that {.dynamic = true, .opset_version = 20} can be written, and ONNX's own.
struct OnnxConfig {
  bool dynamic = false;
  DynamicShapes dynamic_shapes;
  bool strict = false;
  bool prefer_deferred_runtime_asserts_over_guards = false;
  static constexpr int64_t kMinOpset = 18;
  static constexpr int64_t kMaxOpset = 24;
  // kMinOpset to kMaxOpset; nullopt picks the default.
  std::optional<int64_t> opset_version;
  // Constant folding, dead code, transposes folded into weights, ...
  bool optimize = true;
  // Weights of at least this many bytes go to `<name>.onnx.data`, smaller ones stay inside the file.
  int64_t external_data_threshold = 1024;

  // The part that concerns tracing.
  DynamoConfig dynamo() const { return {dynamic, dynamic_shapes, strict, prefer_deferred_runtime_asserts_over_guards}; }
  static OnnxConfig from_json(std::string_view json);
  std::string to_json() const;
};

using ExportConfig = std::variant<DynamoConfig, OnnxConfig>;

// The config class that a JSON's "export_format" names. Unknown fields and wrong types throw Error with near names.
struct AutoExportConfig {
  static ExportConfig from_json(std::string_view json);
  static ExportConfig for_format(ExportFormat format);
};

}  // namespace transporters
