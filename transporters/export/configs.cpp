#include "transporters/export/configs.h"

#include <algorithm>
#include <iterator>

#include "transporters/error.h"
#include "transporters/export/json_fields.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStage = "config";

struct Format {
  ExportFormat format;
  std::string_view name;
  bool available;
};
constexpr Format kFormats[] = {
    {ExportFormat::Dynamo, "dynamo", true},
    {ExportFormat::Onnx, "onnx", true},
    {ExportFormat::OpenVino, "openvino", false},
    {ExportFormat::Executorch, "executorch", false},
};

void read_format(JsonFields& fields, ExportFormat expected) {
  const auto name = fields.string("export_format");
  if (name && parse_export_format(*name) != expected)
    fields.fail("export_format is '" + *name + "', not '" + std::string(to_string(expected)) +
                "'; AutoExportConfig picks the class that a format needs");
}

// The fields that every config has.
template <typename Config>
void read_dynamo_fields(JsonFields& fields, Config& config) {
  config.dynamic = fields.boolean("dynamic").value_or(config.dynamic);
  config.strict = fields.boolean("strict").value_or(config.strict);
  config.prefer_deferred_runtime_asserts_over_guards =
      fields.boolean("prefer_deferred_runtime_asserts_over_guards")
          .value_or(config.prefer_deferred_runtime_asserts_over_guards);
  if (const Json* shapes = fields.value("dynamic_shapes")) {
    if (shapes->is_string())
      fields.fail("field 'dynamic_shapes': expected an object or a list, got " + describe_json(*shapes));
    config.dynamic_shapes = DynamicShapes::from_json(shapes->dump());
  }
  if (fields.value("quantizer")) fields.fail("field 'quantizer': this build has no quantizers; leave it out");
}

template <typename Config>
void write_dynamo_fields(nlohmann::json& json, const Config& config, ExportFormat format) {
  json["export_format"] = to_string(format);
  json["dynamic"] = config.dynamic;
  json["strict"] = config.strict;
  json["prefer_deferred_runtime_asserts_over_guards"] = config.prefer_deferred_runtime_asserts_over_guards;
  json["dynamic_shapes"] = nullptr;
  if (!config.dynamic_shapes.empty()) json["dynamic_shapes"] = nlohmann::json::parse(config.dynamic_shapes.to_json());
}

// Sorted keys and two spaces, as ExportConfigMixin.to_json_string writes them.
std::string dump(const nlohmann::json& json) { return json.dump(2, ' ', true); }

}  // namespace

std::string_view to_string(ExportFormat format) {
  for (const Format& known : kFormats)
    if (known.format == format) return known.name;
  throw InternalError("an export format without a name");
}

bool is_available(ExportFormat format) {
  return std::any_of(std::begin(kFormats), std::end(kFormats),
                     [&](const Format& known) { return known.format == format && known.available; });
}

ExportFormat parse_export_format(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const Format& known : kFormats) {
    if (known.name == name) return known.format;
    if (!known.available) continue;
    names.emplace_back(known.name);
    list += (list.empty() ? "'" : ", '") + names.back() + "'";
  }
  const std::string near = did_you_mean(name, names);
  throw Error(ErrorContext{.stage = kStage},
              "unknown export format '" + std::string(name) + "'" + (near.empty() ? "; formats are " + list : near));
}

DynamoConfig DynamoConfig::from_json(std::string_view text) {
  const Json json = parse_json(text, kStage, "DynamoConfig");
  JsonFields fields(json, kStage, "DynamoConfig");
  DynamoConfig config;
  read_format(fields, ExportFormat::Dynamo);
  read_dynamo_fields(fields, config);
  fields.finish();
  return config;
}

std::string DynamoConfig::to_json() const {
  nlohmann::json json;
  write_dynamo_fields(json, *this, ExportFormat::Dynamo);
  return dump(json);
}

OnnxConfig OnnxConfig::from_json(std::string_view text) {
  const Json json = parse_json(text, kStage, "OnnxConfig");
  JsonFields fields(json, kStage, "OnnxConfig");
  OnnxConfig config;
  read_format(fields, ExportFormat::Onnx);
  read_dynamo_fields(fields, config);
  config.opset_version = fields.integer("opset_version");
  config.optimize = fields.boolean("optimize").value_or(config.optimize);
  config.external_data_threshold = fields.integer("external_data_threshold").value_or(config.external_data_threshold);
  if (fields.value("ort_fusions"))
    fields.fail("field 'ort_fusions': only standard ONNX operators are written; leave it out");
  fields.finish();
  if (config.opset_version && (*config.opset_version < kMinOpset || *config.opset_version > kMaxOpset))
    fields.fail("field 'opset_version': expected " + std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset) +
                ", got " + std::to_string(*config.opset_version));
  if (config.external_data_threshold < 0)
    fields.fail("field 'external_data_threshold': expected 0 or more bytes, got " +
                std::to_string(config.external_data_threshold));
  return config;
}

std::string OnnxConfig::to_json() const {
  nlohmann::json json;
  write_dynamo_fields(json, *this, ExportFormat::Onnx);
  json["opset_version"] = nullptr;
  if (opset_version) json["opset_version"] = *opset_version;
  json["optimize"] = optimize;
  json["ort_fusions"] = nullptr;
  // Not a field of transformers' class, which reads this JSON too; written only where it matters.
  if (external_data_threshold != OnnxConfig().external_data_threshold)
    json["external_data_threshold"] = external_data_threshold;
  return dump(json);
}

ExportConfig AutoExportConfig::for_format(ExportFormat format) {
  switch (format) {
    case ExportFormat::Dynamo:
      return DynamoConfig();
    case ExportFormat::Onnx:
      return OnnxConfig();
    default:
      throw Error(ErrorContext{.stage = kStage},
                  "format '" + std::string(to_string(format)) + "' is not part of this build; it has dynamo and onnx");
  }
}

ExportConfig AutoExportConfig::from_json(std::string_view text) {
  const Json json = parse_json(text, kStage, "the export config");
  JsonFields fields(json, kStage, "the export config");
  const auto name = fields.string("export_format");
  if (!name) fields.fail("field 'export_format' is missing; it is \"dynamo\" or \"onnx\"");
  const ExportFormat format = parse_export_format(*name);
  if (std::holds_alternative<OnnxConfig>(for_format(format))) return OnnxConfig::from_json(text);
  return DynamoConfig::from_json(text);
}

}  // namespace transporters
