// Reading JSON that may hold anything: every access checks, and an error knows where in the document it happened.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace transporters::dynamo {

using ConstJson = nlohmann::json;

// What is wrong with one value of the document; with_json() turns it into an Error.
struct JsonProblem {
  const ConstJson* where;
  std::string message;
};

[[noreturn]] void json_fail(const ConstJson& json, std::string message);

// Members and values; each throws JsonProblem for what is missing or of another type.
const ConstJson& field(const ConstJson& json, const char* key);
const ConstJson* find_field(const ConstJson& json, const char* key);  // null when absent or null
const ConstJson& object(const ConstJson& json);                       // the value itself, an object
const ConstJson& array(const ConstJson& json);
const std::string& string(const ConstJson& json);
int64_t integer(const ConstJson& json);
bool boolean(const ConstJson& json);
double real(const ConstJson& json);  // also "Infinity", "-Infinity", "NaN"
// schema unions are objects with one member: its name and value.
std::pair<std::string_view, const ConstJson&> tagged(const ConstJson& json);

// Parses `text` and runs f(document). Problems become an Error that names `record` of `path` and the place:
// "models/model.json: graph_module.graph.nodes[3].inputs: ...".
void with_json(std::string_view text, const std::string& path, const std::string& record,
               const std::function<void(const ConstJson&)>& f);

}  // namespace transporters::dynamo
