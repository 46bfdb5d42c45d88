// What an export records about each of its graphs, and the manifest that lists them: transformers' `export.json`,
// schema 1, so that transformers.exporters.ExportedModel.from_pretrained loads the folder.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "transporters/export/configs.h"
#include "transporters/graph/program.h"

namespace transporters {

// Fields of transformers.exporters.metadata.ExportMetadata; JSON texts where the value is free-form.
struct ExportMetadata {
  std::string architecture;
  std::vector<std::pair<std::string, std::string>> packages;
  std::string export_config;  // JSON
  std::string export_dtype;   // "float32"
  std::string export_device = "cpu";
  // "sdpa" or "eager": how the traced model computed attention; "" where that is not known. Not a field of
  // transformers' class, which skips it.
  std::string attention;
  std::string kwargs;  // JSON: rank, shape, dtype of each traced input
  std::string in_spec;
  std::string out_spec;
  std::string in_constants = "{}";   // JSON
  std::string out_constants = "[]";  // JSON: [leaf index, value]
};

ExportMetadata build_metadata(const Program& program, ExportFormat format, const std::string& export_config);

struct ManifestEntry {
  std::string component;  // "model", "decode", ...
  std::string file;
  ExportMetadata metadata;
};

std::string manifest_json(ExportFormat format, const std::vector<ManifestEntry>& entries);
// Throws Error naming what is missing or of a newer schema.
std::pair<ExportFormat, std::vector<ManifestEntry>> parse_manifest(const std::string& json);
// The name by which dynamo::load finds an entry in its file: its own in a file of several, else "".
std::string model_in_file(const std::vector<ManifestEntry>& entries, const ManifestEntry& entry);

}  // namespace transporters
