// export.json, as transformers' ExportedModel.save_pretrained writes it: two spaces, ASCII, a line feed at the end.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "transporters/error.h"
#include "transporters/export/json_fields.h"
#include "transporters/export/metadata.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStage = "manifest";
constexpr int64_t kSchemaVersion = 1;

Json metadata_json(const ExportMetadata& metadata) {
  Json packages = Json::object();
  for (const auto& [name, version] : metadata.packages) packages[name] = version;
  Json json;
  json["architecture"] = metadata.architecture;
  json["packages"] = packages;
  json["export_config"] = Json::parse(metadata.export_config);
  json["export_dtype"] = metadata.export_dtype;
  json["export_device"] = metadata.export_device;
  if (!metadata.attention.empty()) json["attention"] = metadata.attention;
  json["kwargs"] = Json::parse(metadata.kwargs);
  json["in_spec"] = metadata.in_spec;
  json["out_spec"] = metadata.out_spec;
  json["in_constants"] = Json::parse(metadata.in_constants);
  json["out_constants"] = Json::parse(metadata.out_constants);
  return json;
}

std::string required_string(JsonFields& fields, const std::string& name) {
  auto value = fields.string(name);
  if (!value) fields.fail("field '" + name + "' is missing");
  return *value;
}

std::string object_text(JsonFields& fields, const std::string& name) {
  const Json* value = fields.value(name);
  if (!value) return "{}";
  if (!value->is_object()) fields.fail("field '" + name + "': expected an object, got " + describe_json(*value));
  return value->dump();
}

// Fields this version doesn't know were added by a later one, and are skipped.
ExportMetadata read_metadata(const Json& json, const std::string& component) {
  JsonFields fields(json, kStage, "metadata of component '" + component + "'");
  ExportMetadata metadata;
  metadata.architecture = fields.string("architecture").value_or("");
  if (const Json* packages = fields.value("packages")) {
    if (!packages->is_object()) fields.fail("field 'packages': expected an object, got " + describe_json(*packages));
    for (const auto& [name, version] : packages->items()) {
      if (!version.is_string())
        fields.fail("package '" + name + "': expected a version, got " + describe_json(version));
      metadata.packages.emplace_back(name, version.get<std::string>());
    }
  }
  metadata.export_config = object_text(fields, "export_config");
  metadata.export_dtype = fields.string("export_dtype").value_or("");
  metadata.export_device = fields.string("export_device").value_or("cpu");
  metadata.attention = fields.string("attention").value_or("");
  metadata.kwargs = object_text(fields, "kwargs");
  metadata.in_spec = fields.string("in_spec").value_or("");
  metadata.out_spec = fields.string("out_spec").value_or("");
  metadata.in_constants = object_text(fields, "in_constants");
  if (const Json* constants = fields.value("out_constants")) {
    if (!constants->is_array()) fields.fail("field 'out_constants': expected a list, got " + describe_json(*constants));
    metadata.out_constants = constants->dump();
  }
  return metadata;
}

}  // namespace

std::string manifest_json(ExportFormat format, const std::vector<ManifestEntry>& entries) {
  Json components = Json::object();
  for (const auto& entry : entries)
    components[entry.component] = Json{{"file", entry.file}, {"metadata", metadata_json(entry.metadata)}};
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["export_format"] = to_string(format);
  json["components"] = components;
  return json.dump(2, ' ', true) + "\n";
}

std::pair<ExportFormat, std::vector<ManifestEntry>> parse_manifest(const std::string& text) {
  const Json json = parse_json(text, kStage, "export.json");
  JsonFields fields(json, kStage, "export.json");
  const int64_t version = fields.integer("schema_version").value_or(kSchemaVersion);
  if (version > kSchemaVersion)
    fields.fail("schema " + std::to_string(version) + " is newer than " + std::to_string(kSchemaVersion) +
                ", the one this version reads");
  const ExportFormat format = parse_export_format(required_string(fields, "export_format"));
  const Json* components = fields.value("components");
  if (!components) fields.fail("field 'components' is missing");
  if (!components->is_object())
    fields.fail("field 'components': expected an object, got " + describe_json(*components));
  std::vector<ManifestEntry> entries;
  for (const auto& [name, value] : components->items()) {
    JsonFields component(value, kStage, "component '" + name + "'");
    ManifestEntry entry{name, required_string(component, "file"), {}};
    if (entry.file.empty() || entry.file.find('/') != std::string::npos)
      component.fail("field 'file': expected a file of this folder, got '" + entry.file + "'");
    const Json* metadata = component.value("metadata");
    entry.metadata = read_metadata(metadata == nullptr ? Json::object() : *metadata, name);
    entries.push_back(std::move(entry));
  }
  return {format, std::move(entries)};
}

std::string model_in_file(const std::vector<ManifestEntry>& entries, const ManifestEntry& entry) {
  const auto same_file = [&](const ManifestEntry& other) { return other.file == entry.file; };
  return std::count_if(entries.begin(), entries.end(), same_file) > 1 ? entry.component : "";
}

}  // namespace transporters
