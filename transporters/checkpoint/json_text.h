// Short descriptions of JSON values for error messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace transporters {

// A scalar's text (cut at 80 characters), a short list of scalars, or "an object with 3 keys". Never recurses, so that
// a hostile file can't exhaust the stack.
template <typename Json>
std::string describe_json(const Json& value) {
  const auto scalar = [](const Json& v) {
    std::string text = v.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 80 ? text.substr(0, 77) + "..." : text;
  };
  if (value.is_object()) return "an object with " + std::to_string(value.size()) + " keys";
  if (!value.is_array()) return scalar(value);
  std::string text = "[";
  for (size_t i = 0; i < value.size(); ++i) {
    if (i == 8 || value[i].is_structured()) return "a list of " + std::to_string(value.size()) + " elements";
    text += (i ? ", " : "") + scalar(value[i]);
  }
  return text + "]";
}

}  // namespace transporters
