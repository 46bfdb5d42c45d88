#include "transporters/export/metadata.h"

#include <nlohmann/json.hpp>

#include "transporters/checkpoint/config.h"
#include "transporters/error.h"
#include "transporters/export/versions.h"
#include "transporters/version.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;

Json describe_tensor(ScalarType dtype, const std::vector<int64_t>& sizes) {
  return {{"rank", sizes.size()}, {"shape", sizes}, {"dtype", dtype_name(dtype)}};
}

// Sizes at the hints: for programs that carry no example inputs.
std::vector<int64_t> hinted_sizes(const Program& program, const TensorType& type) {
  std::vector<int64_t> sizes;
  for (const Expr& size : type.sizes) {
    const auto value = size.evaluate([&](std::string_view symbol) -> std::optional<int64_t> {
      const auto found = program.hints.find(std::string(symbol));
      return found == program.hints.end() ? std::nullopt : std::optional(found->second);
    });
    const int64_t* integer = value ? std::get_if<int64_t>(&*value) : nullptr;
    sizes.push_back(integer ? *integer : -1);
  }
  return sizes;
}

// The JSON of a leaf that is a constant; nothing for what JSON can't hold.
std::optional<Json> constant_json(const Argument& constant) {
  if (std::holds_alternative<None>(constant)) return Json(nullptr);
  if (const auto* value = std::get_if<bool>(&constant)) return Json(*value);
  if (const auto* value = std::get_if<double>(&constant)) return Json(*value);
  if (const auto* value = std::get_if<std::string>(&constant)) return Json(*value);
  if (const auto* value = std::get_if<Expr>(&constant))
    if (const auto integer = value->as_integer()) return Json(*integer);
  return std::nullopt;
}

std::string python_type_of(const Json& constant) {
  if (constant.is_null()) return "NoneType";
  if (constant.is_boolean()) return "bool";
  if (constant.is_string()) return "str";
  return constant.is_number_float() ? "float" : "int";
}

// "transformers.cache_utils:DynamicCache" -> "DynamicCache".
std::string class_of(const std::string& type) { return type.substr(type.find_last_of(".:") + 1); }

// Walks the keyword arguments of in_spec along with the leaves that the signature lists.
class KwargsWalk {
 public:
  explicit KwargsWalk(const Program& program) : program_(program) {
    for (const auto& input : program.inputs)
      if (input.kind == InputKind::UserInput) leaves_.push_back(&input);
  }

  void run(ExportMetadata& metadata) {
    Json kwargs = Json::object();
    Json constants = Json::object();
    const TreeSpec& spec = program_.in_spec;
    if (spec.children.size() == 2) {
      next_ = spec.children[0].num_leaves();
      const TreeSpec& named = spec.children[1];
      const std::vector<std::string> names = keys(named);
      for (size_t i = 0; i < named.children.size(); ++i) {
        if (named.children[i].is_leaf() && !leaf().value)
          if (const auto constant = constant_json(leaf().constant)) constants[names.at(i)] = *constant;
        kwargs[names.at(i)] = describe(named.children[i]);
      }
    }
    metadata.kwargs = kwargs.dump();
    metadata.in_constants = constants.dump();
  }

 private:
  static std::vector<std::string> keys(const TreeSpec& dict) {
    std::vector<std::string> names;
    for (const Json& key : Json::parse(dict.context))
      names.push_back(key.is_string() ? key.get<std::string>() : key.dump());
    return names;
  }

  const InputSpec& leaf() const {
    if (next_ >= leaves_.size()) throw InternalError("the input structure has more leaves than the program has inputs");
    return *leaves_[next_];
  }

  Json describe(const TreeSpec& spec) {
    if (spec.is_leaf()) {
      const InputSpec& input = leaf();
      ++next_;
      if (!input.value) {
        const auto constant = constant_json(input.constant);
        return {{"container", constant ? python_type_of(*constant) : "object"}};
      }
      if (!input.value->is_tensor()) return {{"container", "int"}};
      for (const auto& example : program_.example_inputs)
        if (example.path == input.target) return describe_tensor(example.data.dtype, example.data.sizes);
      return describe_tensor(input.value->dtype(), hinted_sizes(program_, input.value->tensor()));
    }
    if (spec.type != "builtins.dict") {
      next_ += spec.num_leaves();
      return {{"container", class_of(spec.type)}};
    }
    Json leaves = Json::object();
    const std::vector<std::string> names = keys(spec);
    for (size_t i = 0; i < spec.children.size(); ++i) leaves[names.at(i)] = describe(spec.children[i]);
    return {{"leaves", leaves}};
  }

  const Program& program_;
  std::vector<const InputSpec*> leaves_;
  size_t next_ = 0;
};

// The dtype of the first floating-point parameter, as transformers' module_dtype.
std::string module_dtype(const Program& program) {
  for (const auto& input : program.inputs)
    if (input.kind == InputKind::Parameter && input.value && c10::isFloatingType(input.value->dtype()))
      return dtype_name(input.value->dtype());
  return "float32";
}

std::string output_constants(const Program& program) {
  Json constants = Json::array();
  size_t index = 0;
  for (const auto& output : program.outputs) {
    if (output.kind != OutputKind::UserOutput) continue;
    if (!output.value)
      if (const auto constant = constant_json(output.constant)) constants.push_back(Json::array({index, *constant}));
    ++index;
  }
  return constants.dump();
}

}  // namespace

ExportMetadata build_metadata(const Program& program, ExportFormat format, const std::string& export_config) {
  ExportMetadata metadata;
  metadata.architecture = program.architecture;
  metadata.packages = {{"transporters", TRANSPORTERS_VERSION}, {"torch", torch_version()}};
  metadata.export_config = export_config;
  metadata.export_dtype = module_dtype(program);
  KwargsWalk(program).run(metadata);
  metadata.in_spec = program.in_spec.dumps();
  metadata.out_spec = program.out_spec.dumps();
  // A .pt2 holds constant leaves itself; the other formats return tensors only.
  if (format != ExportFormat::Dynamo) metadata.out_constants = output_constants(program);
  return metadata;
}

}  // namespace transporters
