// transporters list [SECTION]
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/common.h"
#include "transporters/error.h"
#include "transporters/export/configs.h"
#include "transporters/models/auto.h"
#include "transporters/onnx/ir_fixes.h"
#include "transporters/onnx/lower.h"
#include "transporters/registry/registry.h"

namespace transporters::cli {
namespace {

constexpr const char* kBackends[] = {"dynamo", "onnx"};

Json architectures() {
  Json json = Json::object();
  for (const auto& type : model_types()) {
    json[type.name] = Json::array();
    for (const auto& model_class : type.classes) json[type.name].push_back(model_class.name);
  }
  return json;
}

Json patches() {
  Json json = Json::object();
  for (const char* backend : kBackends) json[backend] = Registry::global().patch_paths(backend);
  return json;
}

Json fixes() {
  Json json = Json::object();
  for (const char* backend : kBackends) {
    Json names = Json::array();
    for (const auto& fix : Registry::global().program_fixes(backend)) names.push_back(fix.name);
    for (const auto& fix : Registry::global().node_fixes(backend)) names.push_back(fix.name);
    json[backend] = names;
  }
  for (const auto& fix : onnx::ir_fixes()) json["onnx"].push_back(fix.name);
  return json;
}

struct Section {
  const char* name;
  const char* what;
  Json (*make)();
};

constexpr Section kSections[] = {
    {"architectures", "model types and their classes", architectures},
    {"targets", "formats to export to", [] { return Json::array({"dynamo", "onnx"}); }},
    {"ops", "ATen ops with an ONNX translation", [] { return Json(onnx::translated_ops()); }},
    {"patches", "what is replaced while tracing, by backend", patches},
    {"fixes", "rewrites of traced graphs, by backend", fixes},
};

void print_section(const Section& section, const Json& content) {
  std::cout << section.name << " (" << section.what << "):\n";
  if (content.is_array()) {
    for (const auto& name : content) std::cout << "  " << name.get<std::string>() << "\n";
    return;
  }
  for (const auto& [key, names] : content.items()) {
    std::cout << "  " << key << ":";
    if (names.empty()) std::cout << " none";
    std::cout << "\n";
    for (const auto& name : names) std::cout << "    " << name.get<std::string>() << "\n";
  }
}

int run_list(const std::string& wanted, bool as_json) {
  std::vector<std::string> names;
  Json json = Json::object();
  for (const auto& section : kSections) {
    names.emplace_back(section.name);
    if (!wanted.empty() && wanted != section.name) continue;
    json[section.name] = section.make();
  }
  if (json.empty()) {
    const std::string near = did_you_mean(wanted, names);
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    throw UsageError("unknown section '" + wanted + "'" + (near.empty() ? "; sections are " + list : near));
  }
  if (as_json) {
    print_json(json);
    return kDone;
  }
  for (const auto& section : kSections)
    if (json.contains(section.name)) print_section(section, json[section.name]);
  return kDone;
}

}  // namespace

void add_list(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("list", "List what is there: architectures, targets, ops, patches, fixes");
  const auto section = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("section", *section, "Only this section");
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([&chosen, section, json] { chosen = [section, json] { return run_list(*section, *json); }; });
}

}  // namespace transporters::cli
