#include "transporters/generation/cache_layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "transporters/error.h"
#include "transporters/graph/tree_spec.h"

namespace transporters {
namespace {

using Json = nlohmann::json;

constexpr const char* kStatic = "StaticLayer";
constexpr const char* kStaticSliding = "StaticSlidingWindowLayer";

// Objects nest in lists and members; numbers belong to the object around them.
void collect(const Json& json, const std::string& path, std::map<std::string, CacheLayout::Layer>& layers) {
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) collect(json[i], path + "." + std::to_string(i), layers);
    return;
  }
  if (!json.is_object() || json.value("_t", "") != "obj" || !json.contains("s")) return;
  CacheLayout::Layer& layer = layers[path];
  const std::string type = json.value("p", "");
  layer.python_class = type.substr(type.find_last_of(".:") + 1);
  for (const auto& [name, value] : json["s"].items()) {
    if (value.is_boolean()) layer.numbers[name] = value.get<bool>();
    if (value.is_number_integer()) layer.numbers[name] = value.get<int64_t>();
    collect(value, path + "." + name, layers);
  }
}

}  // namespace

int64_t CacheLayout::Layer::number(const std::string& name, int64_t otherwise) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

CacheLayout CacheLayout::read(const std::string& in_spec) {
  CacheLayout layout;
  const TreeSpec spec = TreeSpec::loads(in_spec);
  if (spec.children.size() != 2) return layout;
  const TreeSpec& kwargs = spec.children[1];
  const Json names = Json::parse(kwargs.context, nullptr, /*allow_exceptions=*/false);
  for (size_t i = 0; i < kwargs.children.size() && i < names.size(); ++i) {
    const Json context = Json::parse(kwargs.children[i].context, nullptr, /*allow_exceptions=*/false);
    if (!context.is_discarded() && names[i].is_string()) collect(context, names[i].get<std::string>(), layout.layers);
  }
  return layout;
}

const CacheLayout::Layer* CacheLayout::of_leaf(const std::string& path) const {
  const auto found = layers.find(path.substr(0, path.rfind('.')));
  return found == layers.end() ? nullptr : &found->second;
}

namespace {

// Of an encoder's states, which are as many as they are.
bool is_cross(const std::string& path) { return path.find("cross_attention_cache.") != std::string::npos; }

}  // namespace

std::optional<int64_t> CacheLayout::capacity() const {
  std::optional<int64_t> capacity;
  for (const auto& [path, layer] : layers) {
    const bool holds_all =
        layer.python_class == kStatic || (layer.python_class == kStaticSliding && layer.number("_is_croppable") != 0);
    if (!holds_all || is_cross(path)) continue;
    const int64_t size = layer.number("max_cache_len");
    capacity = std::min(capacity.value_or(size), size);
  }
  return capacity;
}

std::optional<int64_t> CacheLayout::buffer_size(bool sliding) const {
  for (const auto& [path, layer] : layers)
    if (layer.python_class == (sliding ? kStaticSliding : kStatic) && !is_cross(path))
      return layer.number("max_cache_len");
  return std::nullopt;
}

}  // namespace transporters
