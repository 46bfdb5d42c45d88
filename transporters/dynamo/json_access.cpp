#include "transporters/dynamo/json_access.h"

#include <limits>
#include <optional>

#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// The path of the value at that address inside the document.
std::optional<std::string> path_of(const ConstJson& json, const ConstJson* wanted) {
  if (&json == wanted) return "";
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      if (const auto rest = path_of(value, wanted)) return "." + key + *rest;
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i)
      if (const auto rest = path_of(json[i], wanted)) return "[" + std::to_string(i) + "]" + *rest;
  }
  return std::nullopt;
}

void require(bool condition, const ConstJson& json, const char* expected) {
  if (!condition) json_fail(json, std::string("expected ") + expected + ", got " + json.type_name());
}

// The deepest document that is accepted; schemas nest to about fifteen.
constexpr int kMaxDepth = 200;

}  // namespace

void json_fail(const ConstJson& json, std::string message) { throw JsonProblem{&json, std::move(message)}; }

const ConstJson& field(const ConstJson& json, const char* key) {
  require(json.is_object(), json, "an object");
  const auto found = json.find(key);
  if (found == json.end()) json_fail(json, std::string("'") + key + "' is missing");
  return *found;
}

const ConstJson* find_field(const ConstJson& json, const char* key) {
  require(json.is_object(), json, "an object");
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

const ConstJson& object(const ConstJson& json) {
  require(json.is_object(), json, "an object");
  return json;
}

const ConstJson& array(const ConstJson& json) {
  require(json.is_array(), json, "a list");
  return json;
}

const std::string& string(const ConstJson& json) {
  require(json.is_string(), json, "a string");
  return json.get_ref<const std::string&>();
}

int64_t integer(const ConstJson& json) {
  require(json.is_number_integer(), json, "an integer");
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    json_fail(json, "the integer does not fit 64 bits");
  return json.get<int64_t>();
}

bool boolean(const ConstJson& json) {
  require(json.is_boolean(), json, "true or false");
  return json.get<bool>();
}

double real(const ConstJson& json) {
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  require(json.is_number(), json, "a number");
  return json.get<double>();
}

std::pair<std::string_view, const ConstJson&> tagged(const ConstJson& json) {
  require(json.is_object() && json.size() == 1, json, "an object with one member");
  return {json.begin().key(), json.begin().value()};
}

void with_json(std::string_view text, const std::string& path, const std::string& record,
               const std::function<void(const ConstJson&)>& f) {
  const auto fail = [&](const std::string& message) {
    throw Error({.stage = "dynamo", .file = path}, record + ": " + message);
  };
  bool too_deep = false;
  ConstJson document;
  try {
    document = ConstJson::parse(text, [&](int depth, ConstJson::parse_event_t, ConstJson&) {
      too_deep = too_deep || depth > kMaxDepth;
      return !too_deep;
    });
  } catch (const ConstJson::exception& error) {
    fail(std::string("not JSON: ") + error.what());
  }
  if (too_deep) fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  try {
    f(document);
  } catch (const JsonProblem& problem) {
    std::string place = path_of(document, problem.where).value_or("");
    if (place.starts_with('.')) place.erase(0, 1);
    fail((place.empty() ? "" : place + ": ") + problem.message);
  }
}

}  // namespace transporters::dynamo
