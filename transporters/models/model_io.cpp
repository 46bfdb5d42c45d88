#include "transporters/models/model_io.h"

#include "transporters/error.h"

namespace transporters {
namespace {

const char* kind_of(const ModelValue& value) {
  if (std::holds_alternative<at::Tensor>(value)) return "tensor";
  return std::holds_alternative<Cache>(value) ? "cache" : "dictionary";
}

}  // namespace

at::Tensor TensorDict::find(const std::string& name) const {
  for (const auto& [key, tensor] : entries)
    if (key == name) return tensor;
  return {};
}

const ModelValue* NamedValues::find(const std::string& name) const {
  for (const auto& [field, value] : fields_)
    if (field == name) return &value;
  return nullptr;
}

at::Tensor NamedValues::tensor(const std::string& name) const {
  const auto* value = find(name);
  if (value == nullptr) return {};
  if (const auto* tensor = std::get_if<at::Tensor>(value)) return *tensor;
  throw Error("'" + name + "': expected a tensor, got a " + std::string(kind_of(*value)));
}

const Cache* NamedValues::cache() const {
  const auto* value = find("cache");
  if (value == nullptr) return nullptr;
  if (const auto* cache = std::get_if<Cache>(value)) return cache;
  throw Error("'cache': expected a cache, got a " + std::string(kind_of(*value)));
}

const TensorDict* NamedValues::dict(const std::string& name) const {
  const auto* value = find(name);
  return value == nullptr ? nullptr : std::get_if<TensorDict>(value);
}

void NamedValues::set(const std::string& name, at::Tensor tensor) {
  if (tensor.defined()) replace(name, std::move(tensor));
}

void NamedValues::replace(const std::string& name, ModelValue value) {
  for (auto& [field, old] : fields_)
    if (field == name) {
      old = std::move(value);
      return;
    }
  fields_.emplace_back(name, std::move(value));
}

std::vector<std::string> NamedValues::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields_) names.push_back(name);
  return names;
}

std::vector<NamedTensor> NamedValues::leaves() const {
  std::vector<NamedTensor> leaves;
  for (const auto& [name, value] : fields_) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      leaves.emplace_back(name, *tensor);
      continue;
    }
    const auto* cache = std::get_if<Cache>(&value);
    for (auto& [path, part] : cache == nullptr ? std::get<TensorDict>(value).entries : cache->tensors())
      leaves.emplace_back(name + "." + path, std::move(part));
  }
  return leaves;
}

void NamedValues::set_leaves(std::span<const at::Tensor> leaves) {
  const auto take = [&](size_t count) {
    if (count > leaves.size()) throw InternalError("fewer leaves than the values have");
    const auto taken = leaves.first(count);
    leaves = leaves.subspan(count);
    return taken;
  };
  for (auto& [name, value] : fields_) {
    if (auto* cache = std::get_if<Cache>(&value)) {
      cache->set_tensors(take(cache->tensors().size()));
    } else if (auto* dict = std::get_if<TensorDict>(&value)) {
      for (auto& [key, tensor] : dict->entries) tensor = take(1)[0];
    } else {
      value = take(1)[0];
    }
  }
  if (!leaves.empty()) throw InternalError("more leaves than the values have");
}

std::vector<TreeSpec> NamedValues::field_specs() const {
  std::vector<TreeSpec> specs;
  for (const auto& [name, value] : fields_) {
    if (const auto* cache = std::get_if<Cache>(&value)) {
      specs.push_back(cache->spec());
    } else if (const auto* dict = std::get_if<TensorDict>(&value)) {
      std::vector<std::string> keys;
      for (const auto& [key, tensor] : dict->entries) keys.push_back(key);
      std::vector<TreeSpec> leaves(keys.size(), TreeSpec::leaf());
      if (dict->type == kTuple) {
        specs.push_back(TreeSpec::tuple(std::move(leaves)));
        continue;
      }
      specs.push_back(TreeSpec::dict(keys, std::move(leaves)));
      if (!dict->type.empty()) specs.back().type = dict->type;
    } else {
      specs.push_back(TreeSpec::leaf());
    }
  }
  return specs;
}

ModelInputs::ModelInputs(std::initializer_list<std::pair<std::string, at::Tensor>> tensors) {
  for (const auto& [name, tensor] : tensors) set(name, tensor);
}

ModelInputs ModelInputs::copied() const {
  std::vector<at::Tensor> tensors;
  for (const auto& [path, tensor] : leaves()) tensors.push_back(tensor.clone());
  ModelInputs copy = *this;
  copy.set_leaves(tensors);
  return copy;
}

TreeSpec ModelInputs::spec() const {
  return TreeSpec::tuple({TreeSpec::tuple({}), TreeSpec::dict(names(), field_specs())});
}

ModelOutput::ModelOutput(const std::string& type)
    : type_(type.find('.') == std::string::npos ? "transformers.modeling_outputs." + type : type) {}

ModelOutput ModelOutput::of_tensor(at::Tensor tensor) {
  ModelOutput output("");
  output.type_.clear();
  output.set("output", std::move(tensor));
  return output;
}

TreeSpec ModelOutput::spec() const {
  if (type_.empty()) return TreeSpec::leaf();
  // A model output flattens like a dict: its context is the list of field names.
  TreeSpec spec = TreeSpec::dict(names(), field_specs());
  spec.type = type_;
  return spec;
}

}  // namespace transporters
