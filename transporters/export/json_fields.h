// Reading a JSON object field by field, with errors that name the field, what was expected and what came.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transporters {

// Parses JSON text. Throws Error (the given stage) that says what was read and where the text went wrong.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& stage, const std::string& what);

// "true", "\"abc\"", "a list of 3", ...: a value as error messages show it.
std::string describe_json(const nlohmann::ordered_json& value);

// The fields of one object. Each getter takes the field out; finish() complains about those that nobody took.
class JsonFields {
 public:
  // Throws Error unless `object` is an object. `what` names it in messages: "OnnxConfig", "axis 0 of 'input_ids'".
  JsonFields(const nlohmann::ordered_json& object, std::string stage, std::string what);

  // Nullopt when the field is missing or null. Throw Error for a value of another type.
  std::optional<bool> boolean(const std::string& name);
  std::optional<int64_t> integer(const std::string& name);
  std::optional<std::string> string(const std::string& name);
  // Null when the field is missing or null.
  const nlohmann::ordered_json* value(const std::string& name);

  // Throws Error for fields that no getter asked for, with near names among those that were.
  void finish() const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  [[noreturn]] void fail_type(const std::string& name, const char* expected, const nlohmann::ordered_json& value) const;

  const nlohmann::ordered_json& object_;
  std::string stage_;
  std::string what_;
  std::vector<std::string> known_;
};

}  // namespace transporters
