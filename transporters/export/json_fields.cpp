#include "transporters/export/json_fields.h"

#include <algorithm>
#include <limits>

#include "transporters/error.h"
#include "transporters/json_depth.h"

namespace transporters {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text, const std::string& stage, const std::string& what) {
  if (json_nests_too_deep(text))
    throw Error(ErrorContext{.stage = stage}, what + " nests deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    // nlohmann prefixes "[json.exception.parse_error.101] parse error at line 1, column 5: ".
    if (const auto end = reason.find("] "); end != std::string::npos) reason = reason.substr(end + 2);
    throw Error(ErrorContext{.stage = stage}, what + " is not JSON: " + reason);
  }
}

std::string describe_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::array:
      return "a list of " + std::to_string(value.size());
    case Json::value_t::object:
      return "an object with " + std::to_string(value.size()) + " fields";
    default: {
      std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (text.size() > 60) text = text.substr(0, 57) + "...";
      return text;
    }
  }
}

JsonFields::JsonFields(const Json& object, std::string stage, std::string what)
    : object_(object), stage_(std::move(stage)), what_(std::move(what)) {
  if (!object.is_object()) fail("expected an object, got " + describe_json(object));
}

void JsonFields::fail(const std::string& message) const {
  throw Error(ErrorContext{.stage = stage_}, what_ + ": " + message);
}

void JsonFields::fail_type(const std::string& name, const char* expected, const Json& value) const {
  fail("field '" + name + "': expected " + expected + ", got " + describe_json(value));
}

const Json* JsonFields::value(const std::string& name) {
  known_.push_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> JsonFields::boolean(const std::string& name) {
  const Json* field = value(name);
  if (!field) return std::nullopt;
  if (!field->is_boolean()) fail_type(name, "true or false", *field);
  return field->get<bool>();
}

std::optional<int64_t> JsonFields::integer(const std::string& name) {
  const Json* field = value(name);
  if (!field) return std::nullopt;
  const bool too_large = field->is_number_unsigned() && field->get<uint64_t>() > uint64_t{INT64_MAX};
  if (!field->is_number_integer() || too_large) fail_type(name, "an integer", *field);
  return field->get<int64_t>();
}

std::optional<std::string> JsonFields::string(const std::string& name) {
  const Json* field = value(name);
  if (!field) return std::nullopt;
  if (!field->is_string()) fail_type(name, "a string", *field);
  return field->get<std::string>();
}

void JsonFields::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string near = did_you_mean(name, known_);
    std::string list;
    for (const auto& known : known_) list += (list.empty() ? "'" : ", '") + known + "'";
    fail("unknown field '" + name + "'" + (near.empty() ? "; known are " + list : near));
  }
}

}  // namespace transporters
