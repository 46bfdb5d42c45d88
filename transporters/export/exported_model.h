// The result of an export: one program per component, written in the format's files.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transporters/export/configs.h"
#include "transporters/export/metadata.h"
#include "transporters/graph/program.h"

namespace transporters {

namespace onnx {
struct Model;
}

struct ExportedComponent {
  // The program before lowering; always there.
  Program program;
  // The lowered model, for ONNX.
  std::shared_ptr<const onnx::Model> onnx;
  ExportMetadata metadata;
};

class ExportedModel {
 public:
  ExportedModel(ExportFormat format, ExportConfig config) : format_(format), config_(std::move(config)) {}

  ExportFormat format() const { return format_; }
  const ExportConfig& config() const { return config_; }
  const std::map<std::string, ExportedComponent>& components() const { return components_; }
  // In the order in which they were added, which is the order in the manifest.
  const std::vector<std::string>& component_names() const { return names_; }
  void add(const std::string& name, ExportedComponent component) {
    if (components_.emplace(name, std::move(component)).second) names_.push_back(name);
  }
  // The program of a single-component export. Throws Error that lists the components otherwise.
  const Program& program() const;

  // config.json and generation_config.json to put beside the artefact; empty when the model has none.
  void set_config_files(std::map<std::string, std::string> files) { config_files_ = std::move(files); }
  // What the export took for granted: axes fixed, axes unified.
  std::vector<std::string> notes;
  // What is likely not meant: a converted program in training mode.
  std::vector<std::string> warnings;
  // Files that it was read from.
  std::vector<std::filesystem::path> sources;

  // Writes one component's file (".pt2", ".onnx" + data). Appears whole or not at all.
  void save(const std::filesystem::path& file) const;
  // Writes the folder that transformers' ExportedModel.from_pretrained loads: components, export.json, configs. Returns
  // the names of its files. Of an earlier export there, files that its export.json names go, except sources and what
  // this one's weights are mapped from.
  // ONNX components share one data file, that of the first of them, with each weight once. Each .pt2 holds its weights;
  // with `single_file` all components are models of one archive, "model.pt2", with each weight once (which
  // torch.export.pt2_archive loads, and transformers does not). Throws Error for `single_file` of another format.
  std::vector<std::string> save_pretrained(const std::filesystem::path& folder, bool single_file = false) const;

 private:
  bool reads_from(const std::filesystem::path& file) const;

  ExportFormat format_;
  ExportConfig config_;
  std::map<std::string, ExportedComponent> components_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> config_files_;
};

}  // namespace transporters
