#include "transporters/models/model_io.h"

#include "transporters/error.h"

namespace transporters {

const ModelValue* NamedValues::find(const std::string& name) const {
  for (const auto& [field, value] : fields_)
    if (field == name) return &value;
  return nullptr;
}

at::Tensor NamedValues::tensor(const std::string& name) const {
  const auto* value = find(name);
  if (value == nullptr) return {};
  if (const auto* tensor = std::get_if<at::Tensor>(value)) return *tensor;
  throw Error("'" + name + "': expected a tensor, got a cache");
}

const Cache* NamedValues::cache() const {
  const auto* value = find("cache");
  if (value == nullptr) return nullptr;
  if (const auto* cache = std::get_if<Cache>(value)) return cache;
  throw Error("'cache': expected a cache, got a tensor");
}

void NamedValues::set(const std::string& name, at::Tensor tensor) {
  if (!tensor.defined()) return;
  for (auto& [field, value] : fields_)
    if (field == name) {
      value = std::move(tensor);
      return;
    }
  fields_.emplace_back(name, std::move(tensor));
}

void NamedValues::set(const std::string& name, Cache cache) {
  for (auto& [field, value] : fields_)
    if (field == name) {
      value = std::move(cache);
      return;
    }
  fields_.emplace_back(name, std::move(cache));
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
    } else {
      for (auto& [path, part] : std::get<Cache>(value).tensors())
        leaves.emplace_back(name + "." + path, std::move(part));
    }
  }
  return leaves;
}

void NamedValues::set_leaves(std::span<const at::Tensor> leaves) {
  for (auto& [name, value] : fields_) {
    auto* cache = std::get_if<Cache>(&value);
    const size_t count = cache == nullptr ? 1 : cache->tensors().size();
    if (count > leaves.size()) throw InternalError("fewer leaves than the values have");
    if (cache == nullptr) {
      value = leaves[0];
    } else {
      cache->set_tensors(leaves.first(count));
    }
    leaves = leaves.subspan(count);
  }
  if (!leaves.empty()) throw InternalError("more leaves than the values have");
}

std::vector<TreeSpec> NamedValues::field_specs() const {
  std::vector<TreeSpec> specs;
  for (const auto& [name, value] : fields_) {
    const auto* cache = std::get_if<Cache>(&value);
    specs.push_back(cache == nullptr ? TreeSpec::leaf() : cache->spec());
  }
  return specs;
}

ModelInputs::ModelInputs(std::initializer_list<std::pair<std::string, at::Tensor>> tensors) {
  for (const auto& [name, tensor] : tensors) set(name, tensor);
}

TreeSpec ModelInputs::spec() const {
  return TreeSpec::tuple({TreeSpec::tuple({}), TreeSpec::dict(names(), field_specs())});
}

ModelOutput::ModelOutput(const std::string& type)
    : type_(type.find('.') == std::string::npos ? "transformers.modeling_outputs." + type : type) {}

TreeSpec ModelOutput::spec() const {
  // A model output flattens like a dict: its context is the list of field names.
  TreeSpec spec = TreeSpec::dict(names(), field_specs());
  spec.type = type_;
  return spec;
}

}  // namespace transporters
