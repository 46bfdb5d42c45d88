// transporters inspect FILE_OR_DIR: signature, ops, sizes, constraints, where the bytes are.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/artifact.h"
#include "cli/common.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/index.h"
#include "transporters/checkpoint/safetensors.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/graph/text.h"
#include "transporters/onnx/reader.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListed = 12;  // tensors and modules that are listed one by one

// ── Where the bytes are ──

struct Weight {
  std::string name;
  ScalarType dtype;
  std::vector<int64_t> sizes;
  uint64_t bytes;
  const void* data;  // equal for tied tensors
};

std::string type_text(const Weight& weight) {
  std::string text = dtype_name(weight.dtype) + "[";
  for (size_t i = 0; i < weight.sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(weight.sizes[i]);
  return text + "]";
}

// The owner of a parameter, with layer numbers as '*': "model.layers.*.self_attn.q_proj".
std::string module_of(const std::string& name) {
  std::string module;
  size_t start = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', start)) {
    const std::string part = name.substr(start, dot - start);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    module += (module.empty() ? "" : ".") + (number ? "*" : part);
    start = dot + 1;
  }
  return module.empty() ? name : module;
}

Json weights_json(const std::vector<Weight>& weights) {
  struct Sum {
    uint64_t tensors = 0;
    uint64_t bytes = 0;
  };
  Sum total;
  std::map<std::string, Sum> by_dtype;
  std::map<std::string, Sum> by_module;
  std::map<const void*, std::string> first_name;
  std::vector<Weight> unique;
  Json tied = Json::array();
  for (const Weight& weight : weights) {
    const auto [seen, fresh] = first_name.emplace(weight.data, weight.name);
    if (weight.data && !fresh) {
      tied.push_back(weight.name + " = " + seen->second);
      continue;
    }
    unique.push_back(weight);
    for (Sum* sum : {&total, &by_dtype[dtype_name(weight.dtype)], &by_module[module_of(weight.name)]}) {
      sum->tensors += 1;
      sum->bytes += weight.bytes;
    }
  }
  Json json;
  json["tensors"] = total.tensors;
  json["bytes"] = total.bytes;
  json["by_dtype"] = Json::array();
  for (const auto& [dtype, sum] : by_dtype)
    json["by_dtype"].push_back({{"dtype", dtype}, {"tensors", sum.tensors}, {"bytes", sum.bytes}});
  std::vector<std::pair<std::string, Sum>> modules(by_module.begin(), by_module.end());
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  json["by_module"] = Json::array();
  for (const auto& [module, sum] : modules)
    json["by_module"].push_back({{"module", module}, {"tensors", sum.tensors}, {"bytes", sum.bytes}});
  std::stable_sort(unique.begin(), unique.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (unique.size() > kListed) unique.resize(kListed);
  json["largest"] = Json::array();
  for (const Weight& weight : unique)
    json["largest"].push_back({{"tensor", weight.name}, {"type", type_text(weight)}, {"bytes", weight.bytes}});
  if (!tied.empty()) json["tied"] = tied;
  return json;
}

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

Json inspect_pt2(const fs::path& file) {
  const Program program = dynamo::load(file);
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
  uint64_t nodes = 0;
  for (const Node* node = program.graph->front(); node; node = node->next()) {
    ++counts[node->op()];
    ++nodes;
  }
  json["nodes"] = nodes;
  json["ops"] = counts_json(counts);
  std::vector<Weight> weights;
  for (const auto& [name, data] : program.state)
    weights.push_back({name, data.dtype, data.sizes, data.nbytes(), data.data});
  json["weights"] = weights_json(weights);
  return json;
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

Json inspect_onnx(const fs::path& file) {
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
  std::map<std::string, uint64_t> counts;
  uint64_t nodes = 0;
  std::vector<Weight> weights;
  model.graph->for_each_graph([&](onnx::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      ++counts[node->domain.empty() ? node->op : node->domain + "." + node->op];
      ++nodes;
    }
    for (const auto& value : graph.initializers()) {
      const onnx::Tensor& tensor = *value->initializer;
      if (tensor.strings.empty())
        weights.push_back(
            {value->name(), tensor.data.dtype, tensor.data.sizes, tensor.data.nbytes(), tensor.data.data});
    }
  });
  json["nodes"] = nodes;
  json["ops"] = counts_json(counts);
  json["weights"] = weights_json(weights);
  return json;
}

std::vector<Weight> weights_of(const SafetensorsFile& file) {
  std::vector<Weight> weights;
  for (const auto& name : file.names()) {
    const TensorData data = file.get(name);
    weights.push_back({name, data.dtype, data.sizes, data.nbytes(), data.data});
  }
  return weights;
}

Json inspect_safetensors(const fs::path& path) {
  const auto file = SafetensorsFile::open(path);
  Json json{{"format", "safetensors"}, {"file_bytes", file.size()}};
  if (!file.metadata().empty()) json["metadata"] = file.metadata();
  json["weights"] = weights_json(weights_of(file));
  return json;
}

Json inspect_checkpoint(const fs::path& folder) {
  const Config config = Config::from_folder(folder);
  const Checkpoint checkpoint = Checkpoint::open(folder);
  Json json{{"format", "checkpoint"}, {"model_type", config.model_type()}, {"architectures", config.architectures()}};
  json["files"] = Json::array();
  std::vector<Weight> weights;
  for (const auto& file : checkpoint.files()) {
    json["files"].push_back({{"file", fs::path(file.path()).filename().string()}, {"bytes", file.size()}});
    const auto more = weights_of(file);
    weights.insert(weights.end(), more.begin(), more.end());
  }
  json["weights"] = weights_json(weights);
  return json;
}

Json inspect(const fs::path& path);

Json inspect_export(const fs::path& folder) {
  const Export exported = open_export(folder);
  Json json{{"format", to_string(exported.format)}};
  json["components"] = Json::object();
  for (const auto& entry : exported.components) {
    Json component;
    component["file"] = entry.file;
    component["architecture"] = entry.metadata.architecture;
    component["dtype"] = entry.metadata.export_dtype;
    component["packages"] = Json::object();
    for (const auto& [name, version] : entry.metadata.packages) component["packages"][name] = version;
    component["config"] = Json::parse(entry.metadata.export_config);
    component.update(inspect(folder / entry.file));
    json["components"][entry.component] = component;
  }
  return json;
}

Json inspect(const fs::path& path) {
  if (fs::is_directory(path)) {
    if (fs::exists(path / "export.json")) return inspect_export(path);
    if (fs::exists(path / "config.json")) return inspect_checkpoint(path);
    throw Error(ErrorContext{.stage = "inspect", .file = path.string()},
                "this folder holds neither export.json nor config.json");
  }
  if (!fs::exists(path)) throw UsageError("there is no file or folder '" + path.string() + "'");
  const std::string extension = path.extension();
  if (extension == ".pt2") return inspect_pt2(path);
  if (extension == ".onnx") return inspect_onnx(path);
  if (extension == ".safetensors") return inspect_safetensors(path);
  throw Error(ErrorContext{.stage = "inspect", .file = path.string()},
              "expected a .pt2, .onnx or .safetensors file, an export folder or a checkpoint folder");
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
  command->add_option("path", *path, "A .pt2, .onnx or .safetensors file, an export folder or a checkpoint folder")
      ->required();
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([&chosen, path, json] {
    chosen = [path, json] {
      const Json report = inspect(*path);
      if (*json)
        print_json(report);
      else
        print_text(report);
      return int{kDone};
    };
  });
}

}  // namespace transporters::cli
