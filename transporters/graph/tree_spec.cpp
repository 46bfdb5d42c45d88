#include "transporters/graph/tree_spec.h"

#include <nlohmann/json.hpp>

#include "transporters/error.h"
#include "transporters/json_depth.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProtocol = 1;
// Deeper trees than this come from damaged files.
constexpr int kMaxDepth = 256;
// The one built-in type whose context is a JSON object in place of a string.
constexpr const char* kDefaultDict = "collections.defaultdict";

Error bad_spec(const std::string& message) { return Error("[tree spec] " + message); }

// json.dumps with Python's default separators.
void dump_python(const Json& json, std::string& out) {
  const char* separator = "";
  if (json.is_object()) {
    out += '{';
    for (const auto& [key, value] : json.items()) {
      out += separator;
      out += Json(key).dump(-1, ' ', true);
      out += ": ";
      dump_python(value, out);
      separator = ", ";
    }
    out += '}';
  } else if (json.is_array()) {
    out += '[';
    for (const Json& value : json) {
      out += separator;
      dump_python(value, out);
      separator = ", ";
    }
    out += ']';
  } else {
    out += json.dump(-1, ' ', true);
  }
}

// The value of a context; discarded when it is no JSON, or nested so deep that it is none of Python's.
Json parse_context(const std::string& context) {
  if (json_nests_too_deep(context)) return Json(Json::value_t::discarded);
  return Json::parse(context, nullptr, /*allow_exceptions=*/false);
}

Json to_json(const TreeSpec& spec) {
  Json children = Json::array();
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  Json json;
  json["type"] = spec.is_leaf() ? Json() : Json(spec.type);
  json["context"] = spec.is_leaf() ? Json() : Json(spec.context);
  if (spec.type == kDefaultDict) json["context"] = parse_context(spec.context);
  json["children_spec"] = std::move(children);
  return json;
}

TreeSpec from_json(const Json& json, int depth) {
  if (depth > kMaxDepth) throw bad_spec("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (!json.is_object()) throw bad_spec("expected an object, got " + std::string(json.type_name()));
  for (const char* key : {"type", "context", "children_spec"})
    if (!json.contains(key)) throw bad_spec(std::string("an object lacks '") + key + "'");
  const Json& type = json["type"];
  const Json& context = json["context"];
  const Json& children = json["children_spec"];
  if (!children.is_array()) throw bad_spec("'children_spec' is no list");
  TreeSpec spec;
  if (type.is_null()) {
    if (!children.empty()) throw bad_spec("a leaf has children");
    return spec;
  }
  if (!type.is_string() || type.get_ref<const std::string&>().empty()) throw bad_spec("'type' is no name");
  spec.type = type.get<std::string>();
  if (context.is_string()) {
    spec.context = context.get<std::string>();
  } else {
    spec.context.clear();
    dump_python(context, spec.context);
  }
  for (const Json& child : children) spec.children.push_back(from_json(child, depth + 1));
  return spec;
}

std::string step_name(const Json& key) { return key.is_string() ? key.get<std::string>() : key.dump(); }

// transformers describes cache objects as {"_t": "obj", "s": {attribute: ..., "keys": {"_t": "tensor", "i": 0}}}.
void find_tensors(const Json& json, const std::string& path, std::vector<std::string>& names, int depth) {
  if (depth > kMaxDepth) return;
  auto visit = [&](const std::string& step, const Json& value) {
    find_tensors(value, path.empty() ? step : path + "." + step, names, depth + 1);
  };
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) visit(std::to_string(i), json[i]);
  } else if (json.is_object()) {
    const Json tag = json.value("_t", Json());
    if (tag == "tensor" || tag == "sym") {
      const Json index = json.value("i", Json());
      if (index.is_number_unsigned() && index.get<size_t>() < names.size()) names[index.get<size_t>()] = path;
    } else if (tag == "items" && json.contains("v") && json["v"].is_array()) {  // [key, value] pairs
      for (const Json& item : json["v"])
        if (item.is_array() && item.size() == 2) visit(step_name(item[0]), item[1]);
    } else if (tag.is_string()) {
      for (const char* contents : {"s", "v"})
        if (json.contains(contents)) find_tensors(json[contents], path, names, depth + 1);
    } else {
      for (const auto& [key, value] : json.items()) visit(key, value);
    }
  }
}

std::vector<std::string> child_names(const TreeSpec& spec) {
  const size_t count = spec.children.size();
  std::vector<std::string> names(count);
  for (size_t i = 0; i < count; ++i) names[i] = std::to_string(i);
  Json context = parse_context(spec.context);
  if (context.is_object() && context.contains("dict_context")) context = Json(context["dict_context"]);
  // Dataclasses keep [names of the children, names that are None].
  if (context.is_array() && !context.empty() && context[0].is_array()) context = Json(context[0]);
  if (context.is_array() && context.size() == count) {
    for (size_t i = 0; i < count; ++i) names[i] = step_name(context[i]);
  } else if (context.is_object()) {
    find_tensors(context, "", names, 0);
  }
  return names;
}

void collect_paths(const TreeSpec& spec, const std::string& path, std::vector<std::string>& paths) {
  if (spec.is_leaf()) {
    paths.push_back(path);
    return;
  }
  const auto names = child_names(spec);
  for (size_t i = 0; i < names.size(); ++i)
    collect_paths(spec.children[i], path.empty() ? names[i] : path + "." + names[i], paths);
}

}  // namespace

TreeSpec TreeSpec::tuple(std::vector<TreeSpec> children) { return {"builtins.tuple", "null", std::move(children)}; }

TreeSpec TreeSpec::list(std::vector<TreeSpec> children) { return {"builtins.list", "null", std::move(children)}; }

TreeSpec TreeSpec::dict(const std::vector<std::string>& keys, std::vector<TreeSpec> children) {
  if (keys.size() != children.size()) throw InternalError("TreeSpec::dict: as many keys as children are needed");
  std::string context;
  dump_python(Json(keys), context);
  return {"builtins.dict", std::move(context), std::move(children)};
}

size_t TreeSpec::num_leaves() const {
  if (is_leaf()) return 1;
  size_t count = 0;
  for (const TreeSpec& child : children) count += child.num_leaves();
  return count;
}

std::vector<std::string> TreeSpec::leaf_paths() const {
  std::vector<std::string> paths;
  collect_paths(*this, "", paths);
  return paths;
}

std::string TreeSpec::dumps() const try {
  std::string out;
  dump_python(Json::array({kProtocol, to_json(*this)}), out);
  return out;
} catch (const nlohmann::json::exception& error) {
  throw bad_spec(error.what());
}

TreeSpec TreeSpec::loads(const std::string& json) {
  if (json_nests_too_deep(json)) throw bad_spec("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) throw bad_spec("not JSON: " + json.substr(0, 80));
  if (!parsed.is_array() || parsed.size() != 2) throw bad_spec("expected [protocol, tree]");
  if (parsed[0] != kProtocol)
    throw bad_spec("protocol " + parsed[0].dump() + " is not known; this version reads protocol 1");
  return from_json(parsed[1], 0);
}

}  // namespace transporters
