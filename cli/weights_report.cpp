#include "cli/weights_report.h"

#include <algorithm>
#include <map>

#include "transporters/checkpoint/config.h"

namespace transporters::cli {

std::string type_text(const Weight& weight) {
  std::string text = dtype_name(weight.dtype) + "[";
  for (size_t i = 0; i < weight.sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(weight.sizes[i]);
  return text + "]";
}

namespace {

constexpr size_t kListed = 12;  // tensors that are listed one by one

// The owner of a parameter, with layer numbers as '*': "model.layers.*.self_attn.q_proj".
std::string module_of(const std::string& name) {
  std::string module;
  size_t start = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', start)) {
    const std::string part = name.substr(start, dot - start);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    module += (module.empty() ? "" : ".") + (number ? "*" : part);
    start = dot + 1;
  }
  return module.empty() ? name : module;
}

}  // namespace

UniqueWeights unique_weights(const std::vector<Weight>& weights) {
  UniqueWeights unique;
  std::map<const void*, std::string> first_name;
  for (const Weight& weight : weights) {
    const auto [seen, fresh] = first_name.emplace(weight.data, weight.name);
    if (weight.data && !fresh)
      unique.tied.emplace_back(weight.name, seen->second);
    else
      unique.weights.push_back(weight);
  }
  std::stable_sort(unique.weights.begin(), unique.weights.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return unique;
}

Json weights_json(const std::vector<Weight>& weights) {
  struct Sum {
    uint64_t tensors = 0;
    uint64_t bytes = 0;
  };
  Sum total;
  std::map<std::string, Sum> by_dtype;
  std::map<std::string, Sum> by_module;
  const UniqueWeights unique = unique_weights(weights);
  for (const Weight& weight : unique.weights)
    for (Sum* sum : {&total, &by_dtype[dtype_name(weight.dtype)], &by_module[module_of(weight.name)]}) {
      sum->tensors += 1;
      sum->bytes += weight.bytes;
    }
  Json json;
  json["tensors"] = total.tensors;
  json["bytes"] = total.bytes;
  json["by_dtype"] = Json::array();
  for (const auto& [dtype, sum] : by_dtype)
    json["by_dtype"].push_back({{"dtype", dtype}, {"tensors", sum.tensors}, {"bytes", sum.bytes}});
  std::vector<std::pair<std::string, Sum>> modules(by_module.begin(), by_module.end());
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  json["by_module"] = Json::array();
  for (const auto& [module, sum] : modules)
    json["by_module"].push_back({{"module", module}, {"tensors", sum.tensors}, {"bytes", sum.bytes}});
  json["largest"] = Json::array();
  for (size_t i = 0; i < std::min(unique.weights.size(), kListed); ++i) {
    const Weight& weight = unique.weights[i];
    json["largest"].push_back({{"tensor", weight.name}, {"type", type_text(weight)}, {"bytes", weight.bytes}});
  }
  for (const auto& [name, same] : unique.tied) json["tied"].push_back(name + " = " + same);
  return json;
}

}  // namespace transporters::cli
