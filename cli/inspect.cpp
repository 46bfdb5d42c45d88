// transporters inspect FILE_OR_DIR [--html FILE]: signature, ops, sizes, constraints, where the bytes are.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/artifact.h"
#include "cli/common.h"
#include "cli/inspect_html.h"
#include "cli/weights_report.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/index.h"
#include "transporters/checkpoint/safetensors.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/export/atomic_file.h"
#include "transporters/graph/text.h"
#include "transporters/onnx/node_names.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/size_ranges.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListed = 12;  // modules that are listed one by one

Json counts_json(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json json = Json::array();
  for (const auto& [op, count] : sorted) json.push_back({{"op", op}, {"count", count}});
  return json;
}

// ── Kinds of files ──

std::string range_text(const symbolic::Range& range) {
  const bool unbounded = range.max == symbolic::Range::kInfinity;
  return std::to_string(range.min) + " to " + (unbounded ? "any" : std::to_string(range.max));
}

GraphNode describe(const Node& node) {
  GraphNode described{node.module_path, node.op(), "", "", ""};
  const auto append = [](std::string& list, const std::string& more) { list += (list.empty() ? "" : ", ") + more; };
  for (const Value* output : node.outputs()) {
    append(described.name, output->name());
    append(described.type, to_text(output->type()));
  }
  node.for_each_input([&](const Value* input) { append(described.inputs, input->name()); });
  return described;
}

InspectedFile inspect_pt2(const fs::path& file, const std::string& model) {
  InspectedFile inspected;
  const Program program = dynamo::load(file, model);
  Json json{{"format", "dynamo"}, {"file_bytes", fs::file_size(file)}};
  if (!program.architecture.empty()) json["architecture"] = program.architecture;
  json["inputs"] = Json::array();
  for (const auto& input : program.inputs)
    if (input.kind == InputKind::UserInput)
      json["inputs"].push_back(
          {{"name", input.target}, {"type", input.value ? to_text(input.value->type()) : to_text(input.constant)}});
  json["outputs"] = Json::array();
  for (const auto& output : program.outputs) {
    Json row{{"name", output.target},
             {"type", output.value ? to_text(output.value->type()) : to_text(output.constant)}};
    if (output.kind == OutputKind::BufferMutation) row["mutates"] = "buffer";
    if (output.kind == OutputKind::UserInputMutation) row["mutates"] = "input";
    json["outputs"].push_back(row);
  }
  json["constraints"] = Json::array();
  for (const auto& [symbol, range] : program.ranges)
    json["constraints"].push_back({{"size", symbol}, {"range", range_text(range)}});
  std::map<std::string, uint64_t> counts;
  for (const Node& node : *program.graph) {
    ++counts[node.op()];
    inspected.nodes.push_back(describe(node));
  }
  json["nodes"] = inspected.nodes.size();
  json["ops"] = counts_json(counts);
  for (const auto& [name, data] : program.state)
    inspected.weights.push_back({name, data.dtype, data.sizes, data.nbytes(), data.data});
  json["weights"] = weights_json(inspected.weights);
  inspected.report = std::move(json);
  return inspected;
}

std::string type_text(const onnx::Value& value) {
  std::string text(onnx::name_of(value.type));
  if (!value.shape) return text;
  text += "[";
  for (size_t i = 0; i < value.shape->size(); ++i) {
    const onnx::Dim& dim = (*value.shape)[i];
    text += (i ? ", " : "") + (dim.is_known() ? std::to_string(dim.value) : dim.param.empty() ? "?" : dim.param);
  }
  return text + "]";
}

GraphNode describe(const onnx::Node& node) {
  GraphNode described{onnx::module_path(node), onnx::full_op(node), "", "", ""};
  const auto append = [](std::string& list, const std::string& more) { list += (list.empty() ? "" : ", ") + more; };
  for (const onnx::Value* output : node.outputs()) {
    append(described.name, output->name());
    append(described.type, type_text(*output));
  }
  for (const onnx::Value* input : node.inputs()) append(described.inputs, input ? input->name() : "none");
  return described;
}

InspectedFile inspect_onnx(const fs::path& file) {
  InspectedFile inspected;
  const onnx::Model model = onnx::load(file);
  Json json{{"format", "onnx"}, {"file_bytes", fs::file_size(file)}};
  const fs::path data_file = file.string() + ".data";
  if (fs::exists(data_file)) json["data_file_bytes"] = fs::file_size(data_file);
  json["ir_version"] = model.ir_version;
  json["opsets"] = Json::object();
  for (const auto& [domain, version] : model.opsets) json["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  json["producer"] = model.producer + (model.producer_version.empty() ? "" : " " + model.producer_version);
  json["inputs"] = Json::array();
  for (const onnx::Value* value : model.graph->inputs())
    json["inputs"].push_back({{"name", value->name()}, {"type", type_text(*value)}});
  json["outputs"] = Json::array();
  for (const onnx::Value* value : model.graph->outputs())
    json["outputs"].push_back({{"name", value->name()}, {"type", type_text(*value)}});
  json["constraints"] = Json::array();
  const std::string prefix = onnx::kRangePrefix;
  for (const auto& [key, text] : model.metadata) {
    if (key.starts_with(prefix))
      json["constraints"].push_back({{"size", key.substr(prefix.size())}, {"range", text}});
    else
      json["metadata"][key] = text;
  }
  std::map<std::string, uint64_t> counts;
  model.graph->for_each_graph([&](onnx::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      ++counts[onnx::full_op(*node)];
      inspected.nodes.push_back(describe(*node));
    }
    for (const auto& value : graph.initializers()) {
      const onnx::Tensor& tensor = *value->initializer;
      if (tensor.strings.empty())
        inspected.weights.push_back(
            {value->name(), tensor.data.dtype, tensor.data.sizes, tensor.data.nbytes(), tensor.data.data});
    }
  });
  json["nodes"] = inspected.nodes.size();
  json["ops"] = counts_json(counts);
  json["weights"] = weights_json(inspected.weights);
  inspected.report = std::move(json);
  return inspected;
}

std::vector<Weight> weights_of(const SafetensorsFile& file) {
  std::vector<Weight> weights;
  for (const auto& name : file.names()) {
    const TensorData data = file.get(name);
    weights.push_back({name, data.dtype, data.sizes, data.nbytes(), data.data});
  }
  return weights;
}

InspectedFile inspect_safetensors(const fs::path& path) {
  InspectedFile inspected;
  const auto file = SafetensorsFile::open(path);
  Json json{{"format", "safetensors"}, {"file_bytes", file.size()}};
  if (!file.metadata().empty()) json["metadata"] = file.metadata();
  inspected.weights = weights_of(file);
  json["weights"] = weights_json(inspected.weights);
  inspected.report = std::move(json);
  return inspected;
}

InspectedFile inspect_checkpoint(const fs::path& folder) {
  InspectedFile inspected;
  const Config config = Config::from_folder(folder);
  const Checkpoint checkpoint = Checkpoint::open(folder);
  Json json{{"format", "checkpoint"}, {"model_type", config.model_type()}, {"architectures", config.architectures()}};
  json["files"] = Json::array();
  for (const auto& file : checkpoint.files()) {
    json["files"].push_back({{"file", fs::path(file.path()).filename().string()}, {"bytes", file.size()}});
    const auto more = weights_of(file);
    inspected.weights.insert(inspected.weights.end(), more.begin(), more.end());
  }
  json["weights"] = weights_json(inspected.weights);
  inspected.report = std::move(json);
  return inspected;
}

// What --json prints, and the files that it is about.
struct Inspected {
  Json report;
  Json facts;  // about the folder as a whole
  std::vector<InspectedFile> files;
};

// `model` names one of several in a .pt2; "" is the only one.
InspectedFile inspect_file(const fs::path& path, const std::string& model = "");

Inspected inspect_export(const fs::path& folder) {
  Inspected inspected;
  const Export exported = open_export(folder);
  Json json{{"format", to_string(exported.format)}};
  inspected.facts = json;
  json["components"] = Json::object();
  for (const auto& entry : exported.components) {
    Json component;
    component["file"] = entry.file;
    component["architecture"] = entry.metadata.architecture;
    component["dtype"] = entry.metadata.export_dtype;
    component["packages"] = Json::object();
    for (const auto& [name, version] : entry.metadata.packages) component["packages"][name] = version;
    component["config"] = Json::parse(entry.metadata.export_config);
    InspectedFile file = inspect_file(folder / entry.file, model_in_file(exported.components, entry));
    component.update(file.report);
    json["components"][entry.component] = component;
    file.title = entry.component;
    file.report = std::move(component);
    inspected.files.push_back(std::move(file));
  }
  inspected.report = std::move(json);
  return inspected;
}

InspectedFile inspect_file(const fs::path& path, const std::string& model) {
  if (!fs::exists(path)) throw UsageError("there is no file or folder '" + path.string() + "'");
  const std::string extension = path.extension();
  if (extension == ".pt2") return inspect_pt2(path, model);
  if (extension == ".onnx") return inspect_onnx(path);
  if (extension == ".safetensors") return inspect_safetensors(path);
  throw Error(ErrorContext{.stage = "inspect", .file = path.string()},
              "expected a .pt2, .onnx or .safetensors file, an export folder or a checkpoint folder");
}

// The last part of a path, also of "folder/".
std::string base_name(const fs::path& path) {
  const fs::path name = path.filename().empty() ? path.parent_path().filename() : path.filename();
  return name == "." || name == ".." ? fs::weakly_canonical(path).filename().string() : name.string();
}

Inspected inspect(const fs::path& path) {
  InspectedFile file;
  if (!fs::is_directory(path)) {
    file = inspect_file(path);
  } else if (fs::exists(path / "export.json")) {
    return inspect_export(path);
  } else if (fs::exists(path / "config.json")) {
    file = inspect_checkpoint(path);
  } else {
    throw Error(ErrorContext{.stage = "inspect", .file = path.string()},
                "this folder holds neither export.json nor config.json");
  }
  file.title = base_name(path);
  return {file.report, Json::object(), {file}};
}

void write_page(const fs::path& file, const std::string& page) {
  AtomicFiles files(file.has_parent_path() ? file.parent_path() : fs::path("."));
  files.create(file.filename().string()).write(page);
  files.commit();
}

// ── Text ──

std::string cell(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned() && (key == "bytes" || key.ends_with("_bytes")))
    return bytes_text(value.get<uint64_t>());
  if (value.is_number_unsigned()) return count_text(value.get<uint64_t>());
  if (value.is_null()) return "none";
  return value.dump();
}

void print_rows(const std::string& title, const Json& rows) {
  std::cout << "\n" << title << ":\n";
  if (rows.empty()) {
    std::cout << "  none\n";
    return;
  }
  if (!rows.front().is_object()) {
    for (const auto& row : rows) std::cout << "  " << cell("", row) << "\n";
    return;
  }
  std::vector<std::vector<std::string>> table(1);
  for (const auto& row : rows)
    for (const auto& [key, value] : row.items())
      if (std::find(table[0].begin(), table[0].end(), key) == table[0].end()) table[0].push_back(key);
  const size_t shown = title == "by_module" ? std::min(rows.size(), kListed) : rows.size();
  for (size_t i = 0; i < shown; ++i) {
    table.emplace_back();
    for (const auto& key : table[0]) table.back().push_back(rows[i].contains(key) ? cell(key, rows[i][key]) : "");
  }
  std::cout << table_text(table);
  if (shown < rows.size()) std::cout << "  ... and " << rows.size() - shown << " more (--json lists all)\n";
}

// Scalars first, then lists as tables and objects as sections.
void print_text(const Json& json) {
  for (const auto& [key, value] : json.items())
    if (!value.is_structured()) std::cout << key << ": " << cell(key, value) << "\n";
  for (const auto& [key, value] : json.items()) {
    if (value.is_array()) print_rows(key, value);
    if (value.is_object()) {
      std::cout << "\n" << key << ":\n";
      print_text(value);
    }
  }
}

}  // namespace

void add_inspect(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("inspect", "Tell the signature, ops, sizes, constraints and bytes of a file or folder");
  const auto path = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  const auto html = std::make_shared<std::string>();
  command->add_option("path", *path, "A .pt2, .onnx or .safetensors file, an export folder or a checkpoint folder")
      ->required();
  command->add_flag("--json", *json, "Print as JSON");
  command->add_option("--html", *html, "Write a page with every module, node and weight to this file, too")
      ->check(kNotEmpty);
  command->callback([&chosen, path, json, html] {
    chosen = [path, json, html] {
      if (!html->empty()) check_folder_of("--html", *html);
      const Inspected inspected = inspect(*path);
      if (!html->empty()) write_page(*html, html_page(base_name(*path), inspected.facts, inspected.files));
      if (*json)
        print_json(inspected.report);
      else
        print_text(inspected.report);
      return int{kDone};
    };
  });
}

}  // namespace transporters::cli
