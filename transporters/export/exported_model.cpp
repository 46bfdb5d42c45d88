#include "transporters/export/exported_model.h"

#include <fstream>
#include <iterator>
#include <set>

#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/export/atomic_file.h"
#include "transporters/onnx/writer.h"

namespace transporters {
namespace {

constexpr auto kManifestFile = "export.json";
constexpr auto kDataSuffix = ".data";

std::string suffix(ExportFormat format) { return format == ExportFormat::Dynamo ? ".pt2" : ".onnx"; }

onnx::SaveOptions save_options(const ExportConfig& config) {
  onnx::SaveOptions options;
  if (const auto* onnx_config = std::get_if<OnnxConfig>(&config))
    options.external_threshold = static_cast<uint64_t>(onnx_config->external_data_threshold);
  return options;
}

// The artefacts that an export.json in the folder names, and the data files beside them. None when there is no such
// file, or it is nobody's manifest.
std::vector<std::string> files_of_earlier_export(const std::filesystem::path& folder) {
  std::ifstream file(folder / kManifestFile, std::ios::binary);
  if (!file) return {};
  std::vector<std::string> names;
  try {
    for (const auto& entry : parse_manifest({std::istreambuf_iterator<char>(file), {}}).second) {
      names.push_back(entry.file);
      names.push_back(entry.file + kDataSuffix);
    }
  } catch (const Error&) {
    return {};
  }
  return names;
}

}  // namespace

bool ExportedModel::reads_from(const std::filesystem::path& file) const {
  std::error_code ignored;
  for (const auto& source : sources)
    if (std::filesystem::equivalent(source, file, ignored)) return true;
  for (const auto& [name, component] : components_)
    for (const auto& [target, tensor] : component.program.state)
      if (!tensor.file.empty() && std::filesystem::equivalent(tensor.file, file, ignored)) return true;
  return false;
}

const Program& ExportedModel::program() const {
  if (components_.size() != 1) {
    std::string names;
    for (const auto& [name, component] : components_) names += (names.empty() ? "" : ", ") + name;
    throw Error("this export has " + std::to_string(components_.size()) + " components (" + names +
                "); take one from components()");
  }
  return components_.begin()->second.program;
}

void ExportedModel::save(const std::filesystem::path& file) const {
  program();  // one component, or an error
  const ExportedComponent& component = components_.begin()->second;
  if (format_ == ExportFormat::Dynamo)
    dynamo::save(component.program, file);
  else
    onnx::save(*component.onnx, file, save_options(config_));
}

std::vector<std::string> ExportedModel::save_pretrained(const std::filesystem::path& folder, bool single_file) const {
  const bool is_dynamo = format_ == ExportFormat::Dynamo;
  if (single_file && !is_dynamo)
    throw Error(ErrorContext{.stage = "write"}, "one file for all components: expected the format dynamo, got " +
                                                    std::string(to_string(format_)) +
                                                    ", whose components share one data file as it is");
  const std::vector<std::string> earlier = files_of_earlier_export(folder);
  AtomicFiles files(folder);
  std::vector<ManifestEntry> entries;
  std::vector<onnx::NamedModel> models;
  std::vector<dynamo::NamedProgram> programs;
  for (const std::string& name : names_) {
    const ExportedComponent& component = components_.at(name);
    const std::string file = (single_file ? "model" : name) + suffix(format_);
    entries.push_back({name, file, component.metadata});
    if (single_file)
      programs.push_back({name, &component.program});
    else if (is_dynamo)
      dynamo::save(component.program, files.create(file));
    else
      models.push_back({file, component.onnx.get()});
  }
  if (single_file) dynamo::save(programs, files.create(entries.front().file));
  if (!models.empty()) {
    onnx::SaveOptions options = save_options(config_);
    options.data_file = models.front().file + kDataSuffix;
    options.always_own_data_file = models.size() > 1;
    onnx::save(models, files, options);
  }
  for (const auto& [name, text] : config_files_) files.create(name).write(text);
  files.create(kManifestFile).write(manifest_json(format_, entries));
  std::set<std::string> written;
  for (const ManifestEntry& entry : entries) written.insert({entry.file, entry.file + kDataSuffix});
  for (const std::string& name : earlier)
    if (!written.contains(name) && !reads_from(folder / name)) files.remove(name);
  return files.commit();
}

}  // namespace transporters
