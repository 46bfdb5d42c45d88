#include "transporters/export/dim.h"

#include <cctype>
#include <charconv>
#include <optional>

#include "transporters/error.h"
#include "transporters/export/json_fields.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;
using symbolic::Range;

constexpr const char* kStage = "dynamic shapes";

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorContext{.stage = kStage}, message); }

// Names become symbols of expressions and ONNX's dim_param.
bool is_identifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const unsigned char c : name)
    if (!std::isalnum(c) && c != '_') return false;
  return true;
}

class Reader {
 public:
  // Bare names mean the Dim that was described elsewhere, before or after.
  void describe_bare_names(AxisDims& dims) const {
    for (auto& [axis, dim] : dims)
      if (const auto found = named_.find(dim.name); found != named_.end()) dim = found->second;
  }

  AxisDims axes(const Json& json, const std::string& input) {
    AxisDims dims;
    if (json.is_null()) return dims;
    if (json.is_array()) {
      for (size_t axis = 0; axis < json.size(); ++axis)
        dims[static_cast<int64_t>(axis)] = dim(json[axis], "axis " + std::to_string(axis) + " of " + input);
      return dims;
    }
    if (!json.is_object())
      fail(input + ": expected an object of axes such as {\"0\": \"batch\"}, or a list, got " + describe_json(json));
    for (const auto& [key, value] : json.items()) {
      int64_t axis = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), axis);
      if (error != std::errc() || end != key.data() + key.size())
        fail(input + ": axes are numbers, such as \"0\" or \"-1\", got '" + key + "'");
      if (!dims.emplace(axis, dim(value, "axis " + key + " of " + input)).second)
        fail(input + ": axis " + std::to_string(axis) + " is given twice");
    }
    return dims;
  }

 private:
  Dim dim(const Json& json, const std::string& what) {
    if (json.is_null()) return Dim::fixed();
    if (json.is_string()) {
      const auto name = json.get<std::string>();
      if (name == "static") return Dim::fixed();
      if (name == "auto") return Dim::automatic();
      return checked(Dim(name), what, /*is_bare=*/true);
    }
    if (!json.is_object())
      fail(what + ": expected a name, \"auto\", \"static\" or {\"name\": ..., \"min\": ..., \"max\": ...}, got " +
           describe_json(json));
    JsonFields fields(json, kStage, what);
    const auto name = fields.string("name");
    const int64_t min = fields.integer("min").value_or(0);
    const int64_t max = fields.integer("max").value_or(Range::kInfinity);
    const bool automatic = fields.boolean("auto").value_or(false);
    fields.finish();
    if (!name && !automatic) fields.fail("a dim needs a \"name\", or \"auto\": true");
    Dim dim(name.value_or(""), min, max);
    if (automatic) dim.kind = Dim::Kind::Auto;
    return checked(std::move(dim), what);
  }

  Dim checked(Dim dim, const std::string& what, bool is_bare = false) {
    if (!(dim.kind == Dim::Kind::Auto && dim.name.empty()) && !is_identifier(dim.name))
      fail(what + ": a dim's name is letters, digits and underscores, not '" + dim.name + "'");
    if (dim.min < 0) fail(what + ": min is " + std::to_string(dim.min) + ", sizes are 0 or more");
    if (dim.max < dim.min)
      fail(what + ": max " + std::to_string(dim.max) + " is less than min " + std::to_string(dim.min));
    if (dim.name.empty() || is_bare) return dim;
    const auto [seen, fresh] = named_.emplace(dim.name, dim);
    if (!fresh && seen->second != dim)
      fail(what + ": dim '" + dim.name + "' is described in another way elsewhere; axes of one name are one size");
    return dim;
  }

  std::map<std::string, Dim> named_;  // those that say more than a name
};

Json to_json_value(const Dim& dim) {
  if (dim.kind == Dim::Kind::Static) return "static";
  const bool automatic = dim.kind == Dim::Kind::Auto;
  const bool whole_range = dim.min == 0 && dim.max == Range::kInfinity;
  if (whole_range && automatic && dim.name.empty()) return "auto";
  if (whole_range && !automatic && dim.name != "auto" && dim.name != "static") return dim.name;
  Json json = Json::object();
  if (!dim.name.empty()) json["name"] = dim.name;
  if (automatic) json["auto"] = true;
  if (dim.min != 0) json["min"] = dim.min;
  if (dim.max != Range::kInfinity) json["max"] = dim.max;
  return json;
}

Json to_json_value(const AxisDims& dims) {
  Json json = Json::object();
  for (const auto& [axis, dim] : dims) json[std::to_string(axis)] = to_json_value(dim);
  return json;
}

}  // namespace

DynamicShapes DynamicShapes::from_json(std::string_view text) {
  const Json json = parse_json(text, kStage, "the description");
  DynamicShapes shapes;
  Reader reader;
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i)
      shapes.positional_.push_back(reader.axes(json[i], "input " + std::to_string(i)));
  } else if (json.is_object()) {
    for (const auto& [name, axes] : json.items()) shapes.named_[name] = reader.axes(axes, "'" + name + "'");
  } else if (!json.is_null()) {
    fail("expected an object by input, such as {\"input_ids\": {\"0\": \"batch\"}}, or a list by position, got " +
         describe_json(json));
  }
  for (auto& dims : shapes.positional_) reader.describe_bare_names(dims);
  for (auto& [name, dims] : shapes.named_) reader.describe_bare_names(dims);
  return shapes;
}

std::string DynamicShapes::to_json() const {
  if (!positional_.empty()) {
    Json json = Json::array();
    for (const auto& dims : positional_) json.push_back(to_json_value(dims));
    return json.dump();
  }
  Json json = Json::object();
  for (const auto& [name, dims] : named_) json[name] = to_json_value(dims);
  return json.dump();
}

}  // namespace transporters
