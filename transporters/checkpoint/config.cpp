#include "transporters/checkpoint/config.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "transporters/checkpoint/json_text.h"
#include "transporters/checkpoint/mapped_file.h"
#include "transporters/error.h"

namespace transporters {

struct Config::Json {
  std::shared_ptr<const nlohmann::json> document;
  const nlohmann::json* object;

  // Null when absent or null.
  const nlohmann::json* find(const std::string& key) const {
    const auto found = object->find(key);
    return found == object->end() || found->is_null() ? nullptr : &*found;
  }
};

namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

const std::map<std::string, c10::ScalarType>& dtypes() {
  using c10::ScalarType;
  static const std::map<std::string, ScalarType> table{
      {"float64", ScalarType::Double},
      {"float32", ScalarType::Float},
      {"float16", ScalarType::Half},
      {"bfloat16", ScalarType::BFloat16},
      {"float8_e4m3fn", ScalarType::Float8_e4m3fn},
      {"float8_e5m2", ScalarType::Float8_e5m2},
      {"float8_e4m3fnuz", ScalarType::Float8_e4m3fnuz},
      {"float8_e5m2fnuz", ScalarType::Float8_e5m2fnuz},
      {"float8_e8m0fnu", ScalarType::Float8_e8m0fnu},
      {"int64", ScalarType::Long},
      {"int32", ScalarType::Int},
      {"int16", ScalarType::Short},
      {"int8", ScalarType::Char},
      {"uint8", ScalarType::Byte},
      {"uint16", ScalarType::UInt16},
      {"uint32", ScalarType::UInt32},
      {"uint64", ScalarType::UInt64},
      {"bool", ScalarType::Bool},
      {"complex64", ScalarType::ComplexFloat},
      {"complex128", ScalarType::ComplexDouble},
  };
  return table;
}

std::optional<int64_t> whole_number(const nlohmann::json& value) {
  // Some tools write whole numbers as 2.0.
  if (value.is_number_float()) {
    const double real = value.get<double>();
    if (std::trunc(real) == real && std::abs(real) < 9e15) return static_cast<int64_t>(real);
  }
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  return fits ? std::optional(value.get<int64_t>()) : std::nullopt;
}

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

std::optional<c10::ScalarType> dtype_from_name(const std::string& name) {
  const auto found = dtypes().find(name);
  if (found == dtypes().end()) return std::nullopt;
  return found->second;
}

std::string dtype_name(c10::ScalarType dtype) {
  for (const auto& [name, type] : dtypes())
    if (type == dtype) return name;
  return c10::toString(dtype);
}

Config Config::from_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file = fs::path(folder) / "config.json";
  if (!fs::is_directory(folder, ignored))
    throw Error({.stage = "checkpoint", .file = folder},
                fs::exists(folder, ignored) ? "expected a checkpoint folder, got a file"
                                            : "no such folder; give the path of a downloaded checkpoint");
  if (!fs::exists(file, ignored))
    throw Error({.stage = "checkpoint", .file = folder},
                "no config.json here; a checkpoint folder holds config.json and model.safetensors");
  return from_file(file.string());
}

Config Config::from_file(const std::string& path) { return parse(std::string(MappedFile::open(path)->text()), path); }

std::optional<Config> Config::generation_from_folder(const std::string& folder) {
  const auto path = std::filesystem::path(folder) / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return from_file(path.string());
}

Config Config::parse(const std::string& text, const std::string& file) {
  auto document = std::make_shared<nlohmann::json>();
  try {
    *document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    // Without the library's "[json.exception.parse_error.101] ".
    const std::string what = e.what();
    throw Error({.stage = "checkpoint", .file = file},
                "is not valid JSON (" + what.substr(what.find("] ") + 2) + "); download it again");
  }
  if (!document->is_object())
    throw Error({.stage = "checkpoint", .file = file}, "expected a JSON object, got " + describe_json(*document));
  Config config;
  config.file_ = file;
  const nlohmann::json* root = document.get();
  config.json_ = std::make_shared<const Json>(Json{std::move(document), root});
  return config;
}

void Config::fail(const std::string& key, const std::string& message) const {
  throw Error({.stage = "checkpoint", .file = file_}, "'" + (path_.empty() ? key : path_ + "." + key) + "' " + message);
}

bool Config::has(const std::string& key) const { return json_->find(key) != nullptr; }

bool Config::is_null(const std::string& key) const {
  const auto found = json_->object->find(key);
  return found != json_->object->end() && found->is_null();
}

bool Config::is_object(const std::string& key) const {
  const auto* value = json_->find(key);
  return value != nullptr && value->is_object();
}

bool Config::is_string(const std::string& key) const {
  const auto* value = json_->find(key);
  return value != nullptr && value->is_string();
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_->object->items()) keys.push_back(key);
  return keys;
}

std::optional<int64_t> Config::integer_or_none(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number(*value);
  if (!number) fail(key, "expected a whole number, got " + describe_json(*value));
  return number;
}

int64_t Config::integer(const std::string& key) const {
  const auto value = integer_or_none(key);
  if (!value) fail(key, "is missing; expected a whole number");
  return *value;
}

int64_t Config::integer(const std::string& key, int64_t missing) const {
  return integer_or_none(key).value_or(missing);
}

int64_t Config::positive(const std::string& key) const {
  const int64_t value = integer(key);
  if (value < 1 || value > kMaxSize)
    fail(key, "expected a whole number from 1 to " + std::to_string(kMaxSize) + ", got " + std::to_string(value));
  return value;
}

int64_t Config::positive(const std::string& key, int64_t missing) const { return has(key) ? positive(key) : missing; }

std::pair<int64_t, int64_t> Config::positive_pair(const std::string& key, int64_t missing) const {
  const auto* value = json_->find(key);
  if (value == nullptr || !value->is_array()) {
    const int64_t both = positive(key, missing);
    return {both, both};
  }
  const auto fits = [](const nlohmann::json& v) {
    return v.is_number_unsigned() && v.get<uint64_t>() >= 1 && v.get<uint64_t>() <= static_cast<uint64_t>(kMaxSize);
  };
  if (value->size() != 2 || !fits((*value)[0]) || !fits((*value)[1]))
    fail(key, "expected a positive whole number or a list of two, got " + describe_json(*value));
  return {(*value)[0].get<int64_t>(), (*value)[1].get<int64_t>()};
}

std::optional<double> Config::real_or_none(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "expected a number, got " + describe_json(*value));
  return value->get<double>();
}

double Config::real(const std::string& key) const {
  const auto value = real_or_none(key);
  if (!value) fail(key, "is missing; expected a number");
  return *value;
}

double Config::real(const std::string& key, double missing) const { return real_or_none(key).value_or(missing); }

double Config::positive_real(const std::string& key, double missing) const {
  const double value = real(key, missing);
  if (!(value > 0.0) || !std::isfinite(value)) fail(key, "expected a number above 0, got " + number_text(value));
  return value;
}

double Config::non_negative_real(const std::string& key, double missing) const {
  const double value = real(key, missing);
  if (!(value >= 0.0) || !std::isfinite(value)) fail(key, "expected a number of 0 or more, got " + number_text(value));
  return value;
}

bool Config::boolean(const std::string& key, bool missing) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return missing;
  if (!value->is_boolean()) fail(key, "expected true or false, got " + describe_json(*value));
  return value->get<bool>();
}

std::string Config::string(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) fail(key, "is missing; expected a string");
  if (!value->is_string()) fail(key, "expected a string, got " + describe_json(*value));
  return value->get<std::string>();
}

std::string Config::string(const std::string& key, const std::string& missing) const {
  return has(key) ? string(key) : missing;
}

std::vector<std::string> Config::strings(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(key, "expected a list of strings, got " + describe_json(*value));
  std::vector<std::string> result;
  for (const auto& element : *value) {
    if (!element.is_string()) fail(key, "expected a list of strings, got " + describe_json(element) + " in it");
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::vector<double> Config::reals(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(key, "expected a list of numbers, got " + describe_json(*value));
  std::vector<double> result;
  for (const auto& element : *value) {
    if (!element.is_number()) fail(key, "expected a list of numbers, got " + describe_json(element) + " in it");
    result.push_back(element.get<double>());
  }
  return result;
}

std::vector<int64_t> Config::integers(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) return {};
  std::vector<int64_t> result;
  const auto add = [&](const nlohmann::json& element) {
    const auto number = whole_number(element);
    if (!number) fail(key, "expected a whole number or a list of them, got " + describe_json(element));
    result.push_back(*number);
  };
  if (value->is_array()) {
    for (const auto& element : *value) add(element);
  } else {
    add(*value);
  }
  return result;
}

Config Config::object(const std::string& key) const {
  const auto* value = json_->find(key);
  if (value == nullptr) fail(key, "is missing; expected an object");
  if (!value->is_object()) fail(key, "expected an object, got " + describe_json(*value));
  Config config;
  config.file_ = file_;
  config.path_ = path_.empty() ? key : path_ + "." + key;
  config.json_ = std::make_shared<const Json>(Json{json_->document, value});
  return config;
}

std::string Config::model_type() const { return string("model_type"); }

std::optional<c10::ScalarType> Config::dtype() const {
  const std::string key = has("dtype") ? "dtype" : "torch_dtype";
  std::string name = string(key, "auto");
  if (name == "auto") return std::nullopt;
  if (name.rfind("torch.", 0) == 0) name = name.substr(6);
  const auto dtype = dtype_from_name(name);
  if (!dtype) fail(key, "expected a type such as float32, float16 or bfloat16, got \"" + name + "\"");
  return dtype;
}

int64_t Config::num_labels() const {
  if (is_object("id2label")) {
    const auto labels = object("id2label").keys().size();
    if (labels == 0) fail("id2label", "expected at least one label, got none");
    return static_cast<int64_t>(labels);
  }
  return positive("num_labels", 2);
}

}  // namespace transporters
