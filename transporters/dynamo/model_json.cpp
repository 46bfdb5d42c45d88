#include "transporters/dynamo/model_json.h"

#include <algorithm>
#include <unordered_set>

#include "transporters/dynamo/call_spec.h"
#include "transporters/dynamo/schema.h"
#include "transporters/dynamo/size_nodes.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

using symbolic::Type;

template <class... F>
struct Overload : F... {
  using F::operator()...;
};

[[noreturn]] void fail(const Node& node, const std::string& message) {
  throw Error({.stage = "dynamo", .op = node.op(), .module = node.module_path}, message);
}

Json name_json(const std::string& name) { return {{"name", name}}; }

Json device_json(const std::string& name) {
  const auto colon = name.find(':');
  Json index;
  if (colon != std::string::npos) index = std::stoll(name.substr(colon + 1));
  return {{"type", name.substr(0, colon)}, {"index", std::move(index)}};
}

Json meta_json(ScalarType dtype, Json sizes, Json strides, int64_t storage_offset, bool requires_grad) {
  return {{"dtype", schema_dtype(dtype)},
          {"sizes", std::move(sizes)},
          {"requires_grad", requires_grad},
          {"device", device_json("cpu")},
          {"strides", std::move(strides)},
          {"storage_offset", {{"as_int", storage_offset}}},
          {"layout", kStrided}};
}

// "aten::add.Tensor" -> "torch.ops.aten.add.Tensor"; the overload without a name is "default".
std::string target(const OpSchema& schema) {
  const std::string_view base = schema.base_name();
  const auto colons = base.find("::");
  const std::string_view overload = schema.overload();
  return "torch.ops." + std::string(base.substr(0, colons)) + "." + std::string(base.substr(colons + 2)) + "." +
         std::string(overload.empty() ? "default" : overload);
}

class ModelWriter {
 public:
  ModelWriter(const Program& program, const SymbolNames& symbols)
      : program_(program), symbols_(symbols), names_(program), sizes_(program, symbols, names_, graph_) {}

  Json write() {
    write_inputs();
    for (const Node& node : *program_.graph) write_node(node);
    write_outputs();
    Json graph = {{"inputs", std::move(graph_.inputs)},
                  {"outputs", std::move(graph_.outputs)},
                  {"nodes", std::move(graph_.nodes)},
                  {"tensor_values", std::move(graph_.tensor_values)},
                  {"sym_int_values", std::move(graph_.sym_int_values)},
                  {"sym_bool_values", std::move(graph_.sym_bool_values)},
                  {"is_single_tensor_return", false},
                  {"custom_obj_values", Json::object()},
                  {"sym_float_values", std::move(graph_.sym_float_values)}};
    const TreeSpec in_spec = input_spec(program_);
    Json module = {{"graph", std::move(graph)},
                   {"signature", {{"input_specs", input_specs_}, {"output_specs", output_specs_}}},
                   {"module_call_graph", module_call_graph(in_spec)},
                   {"metadata", Json::object()},
                   {"treespec_namedtuple_fields", Json::object()}};
    return {{"graph_module", std::move(module)},
            {"opset_version", {{"aten", kOpsetVersion}}},
            {"range_constraints", ranges()},
            {"schema_version", {{"major", kSchemaMajor}, {"minor", kSchemaMinor}}},
            // The dialect of torch.export.export; it allows assertions, which have no outputs.
            {"verifiers", Json::array({"TRAINING"})},
            {"torch_version", kTorchVersion},
            {"guards_code", guard_code(program_, in_spec)}};
  }

 private:
  Json tensor_output(const Value* value, bool requires_grad = false) {
    const TensorType& type = value->tensor();
    Json sizes = Json::array(), strides = Json::array();
    for (const Expr& size : type.sizes) sizes.push_back(sizes_.size(size));
    if (type.strides.empty()) {
      std::vector<Expr> contiguous(type.sizes.size());
      Expr stride = 1;
      for (size_t i = type.sizes.size(); i-- > 0; stride = stride * type.sizes[i]) contiguous[i] = stride;
      for (const Expr& size : contiguous) strides.push_back(sizes_.size(size));
    } else {
      for (const Expr& size : type.strides) strides.push_back(sizes_.size(size));
    }
    const std::string& name = names_[value];
    graph_.tensor_values[name] = meta_json(type.dtype, std::move(sizes), std::move(strides), 0, requires_grad);
    return {{"as_tensor", name_json(name)}};
  }

  Json tensor_name(const Value* value) const { return name_json(names_[value]); }

  // schema.Argument of a constant leaf among inputs or outputs; symbolic sizes become nodes.
  Json leaf(const Argument& argument, const std::string& where) {
    return std::visit(Overload{[](const None&) -> Json { return {{"as_none", true}}; },
                               [&](const Expr& expr) { return sizes_.argument(expr); },
                               [](double value) -> Json { return {{"as_float", real_json(value)}}; },
                               [](bool value) -> Json { return {{"as_bool", value}}; },
                               [](const std::string& value) -> Json { return {{"as_string", value}}; },
                               [&](const auto&) -> Json {
                                 throw Error({.stage = "dynamo"}, where +
                                                                      ": only None, numbers, booleans and strings " +
                                                                      "can be constants of a .pt2 file's signature");
                               }},
                      argument);
  }

  void write_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const InputSpec& input = program_.inputs[i];
      if (input.value == nullptr) {
        Json constant = leaf(input.constant, "input '" + input.target + "'");
        graph_.inputs.push_back(constant);
        input_specs_.push_back(
            {{"constant_input", {{"name", names_.constant_input(i)}, {"value", std::move(constant)}}}});
        continue;
      }
      const bool is_parameter = input.kind == InputKind::Parameter;
      Json argument = input.value->is_tensor()
                          ? tensor_output(input.value, is_parameter && at::isFloatingType(input.value->dtype()))
                          : sizes_.define(input.value);
      graph_.inputs.push_back(argument);
      switch (input.kind) {
        case InputKind::Parameter:
          input_specs_.push_back(
              {{"parameter", {{"arg", tensor_name(input.value)}, {"parameter_name", input.target}}}});
          break;
        case InputKind::Buffer:
          input_specs_.push_back(
              {{"buffer",
                {{"arg", tensor_name(input.value)}, {"buffer_name", input.target}, {"persistent", input.persistent}}}});
          break;
        case InputKind::Constant:
          input_specs_.push_back(
              {{"tensor_constant", {{"arg", tensor_name(input.value)}, {"tensor_constant_name", input.target}}}});
          break;
        case InputKind::UserInput:
          input_specs_.push_back({{"user_input", {{"arg", std::move(argument)}}}});
          break;
      }
    }
  }

  Json write_argument(const NamedArgument& argument) {
    return std::visit(Overload{[](const None&) -> Json { return {{"as_none", true}}; },
                               [&](Value* value) -> Json {
                                 if (!value->is_tensor()) return sizes_.argument(value);
                                 return {{"as_tensor", tensor_name(value)}};
                               },
                               [&](const Values& values) -> Json {
                                 const bool optional = std::find(values.begin(), values.end(), nullptr) != values.end();
                                 Json elements = Json::array();
                                 for (const Value* value : values) {
                                   if (!optional) {
                                     elements.push_back(tensor_name(value));
                                   } else if (value == nullptr) {
                                     elements.push_back({{"as_none", true}});
                                   } else {
                                     elements.push_back({{"as_tensor", tensor_name(value)}});
                                   }
                                 }
                                 return {{optional ? "as_optional_tensors" : "as_tensors", std::move(elements)}};
                               },
                               [&](const Expr& expr) { return sizes_.argument(expr); },
                               [&](const std::vector<Expr>& exprs) { return sizes_.argument(exprs); },
                               [](double value) -> Json { return {{"as_float", real_json(value)}}; },
                               [](const std::vector<double>& values) -> Json {
                                 Json elements = Json::array();
                                 for (double value : values) elements.push_back(real_json(value));
                                 return {{"as_floats", std::move(elements)}};
                               },
                               [](bool value) -> Json { return {{"as_bool", value}}; },
                               [](const std::vector<bool>& values) -> Json { return {{"as_bools", values}}; },
                               [](const std::string& value) -> Json { return {{"as_string", value}}; },
                               [](const std::vector<std::string>& values) -> Json { return {{"as_strings", values}}; },
                               [](ScalarType dtype) -> Json { return {{"as_scalar_type", schema_dtype(dtype)}}; },
                               [](const Layout& layout) -> Json { return {{"as_layout", schema_layout(layout.name)}}; },
                               [](const MemoryFormat& format) -> Json {
                                 return {{"as_memory_format", schema_memory_format(format.name)}};
                               },
                               [](const Device& device) -> Json { return {{"as_device", device_json(device.name)}}; }},
                      argument.value);
  }

  Json define_output(const Value* value) {
    names_.add(value);
    return value->is_tensor() ? tensor_output(value) : sizes_.define(value);
  }

  Json write_node_outputs(const Node& node) {
    const auto& returns = node.schema().returns;
    const auto outputs = node.outputs();
    const auto is_list = [](const SchemaReturn& r) { return r.kind == ArgumentKind::TensorList; };
    const auto lists = std::count_if(returns.begin(), returns.end(), is_list);
    if (lists > 1) fail(node, "returns several lists of tensors, which is not supported");
    if (lists == 0 && outputs.size() != returns.size())
      throw InternalError("'" + node.op() + "' has " + std::to_string(outputs.size()) + " outputs, its schema " +
                          std::to_string(returns.size()));
    Json json = Json::array();
    size_t next = 0;
    for (const SchemaReturn& r : returns) {
      if (!is_list(r)) {
        json.push_back(define_output(outputs[next++]));
        continue;
      }
      Json elements = Json::array();
      for (size_t left = outputs.size() - (returns.size() - 1); left > 0; --left)
        elements.push_back(define_output(outputs[next++]).front());
      json.push_back({{"as_tensors", std::move(elements)}});
    }
    return json;
  }

  // "L__self__,,M;L__self__model,model,M": each module on the way with its path and type.
  std::string module_stack(const std::string& path) {
    const std::string root = program_.architecture.empty() ? "torch.nn.modules.module.Module" : program_.architecture;
    std::string stack = "L__self__,," + root;
    for (size_t dot = 0; !path.empty() && dot != std::string::npos;) {
      dot = path.find('.', dot + (dot > 0 ? 1 : 0));
      const std::string module = path.substr(0, dot);
      if (seen_modules_.insert(module).second) modules_.push_back(module);
      std::string key = module;
      std::replace(key.begin(), key.end(), '.', '_');
      stack += ";L__self__" + key + "," + module + ",torch.nn.modules.module.Module";
    }
    return stack;
  }

  void write_node(const Node& node) {
    Json metadata = Json::object();
    if (!node.source.empty()) metadata["stack_trace"] = node.source;
    metadata["nn_module_stack"] = module_stack(node.module_path);
    sizes_.set_metadata(metadata);

    Json inputs = Json::array();
    const auto& schema = node.schema().arguments;
    size_t next_positional = 0;
    for (const NamedArgument& argument : node.arguments()) {
      const size_t position = *node.schema().find(argument.name);
      const bool positional = !schema[position].keyword_only && position == next_positional;
      if (positional) ++next_positional;
      inputs.push_back(
          {{"name", argument.name}, {"arg", write_argument(argument)}, {"kind", positional ? kPositional : kKeyword}});
    }
    Json outputs = write_node_outputs(node);
    const bool is_single = node.outputs().size() == 1 && !outputs.empty() && !outputs[0].contains("as_tensors");
    std::string name;
    if (is_single) {
      name = names_[node.outputs()[0]];
    } else {
      const std::string_view base = node.schema().base_name();
      name = names_.unique(std::string(base.substr(base.find("::") + 2)) + (outputs.empty() ? "_default" : ""));
    }
    graph_.nodes.push_back({{"target", target(node.schema())},
                            {"inputs", std::move(inputs)},
                            {"outputs", std::move(outputs)},
                            {"metadata", std::move(metadata)},
                            {"is_hop_single_tensor_return", nullptr},
                            {"name", std::move(name)}});
  }

  void write_outputs() {
    sizes_.set_metadata({{"nn_module_stack", module_stack("")}});
    for (const OutputSpec& output : program_.outputs) {
      Json argument;
      if (output.value == nullptr) {
        argument = leaf(output.constant, "output '" + output.target + "'");
        if (argument.contains("as_string"))
          throw Error({.stage = "dynamo"},
                      "output '" + output.target + "' is a string, which torch.export.load refuses");
      } else if (output.value->is_tensor()) {
        argument = {{"as_tensor", tensor_name(output.value)}};
      } else {
        argument = sizes_.argument(output.value);
      }
      graph_.outputs.push_back(argument);
      switch (output.kind) {
        case OutputKind::UserOutput:
          output_specs_.push_back({{"user_output", {{"arg", std::move(argument)}}}});
          break;
        case OutputKind::BufferMutation:
          output_specs_.push_back(
              {{"buffer_mutation", {{"arg", tensor_name(output.value)}, {"buffer_name", output.target}}}});
          break;
        case OutputKind::UserInputMutation: {
          const InputSpec* input = program_.find_input(output.target);
          if (input == nullptr || input->value == nullptr)
            throw InternalError("the mutated input '" + output.target + "' is no tensor input of the program");
          output_specs_.push_back({{"user_input_mutation",
                                    {{"arg", tensor_name(output.value)}, {"user_input_name", names_[input->value]}}}});
          break;
        }
      }
    }
  }

  Json module_call_graph(const TreeSpec& in_spec) {
    Json entries = Json::array();
    entries.push_back({{"fqn", ""},
                       {"signature",
                        {{"inputs", Json::array()},
                         {"outputs", Json::array()},
                         {"in_spec", in_spec.dumps()},
                         {"out_spec", output_spec(program_).dumps()},
                         {"forward_arg_names", argument_names(program_, in_spec)}}}});
    for (const std::string& module : modules_) entries.push_back({{"fqn", module}, {"signature", nullptr}});
    return entries;
  }

  Json ranges() const {
    Json json = Json::object();
    for (const auto& [symbol, name] : symbols_.all()) {
      const auto found = program_.ranges.find(symbol);
      const symbolic::Range range = found == program_.ranges.end() ? symbolic::Range{} : found->second;
      Json max;
      if (range.max != symbolic::Range::kInfinity) max = range.max;
      json[name] = {{"min_val", range.min}, {"max_val", std::move(max)}};
    }
    return json;
  }

  const Program& program_;
  const SymbolNames& symbols_;
  ValueNames names_;
  GraphJson graph_;
  SizeNodes sizes_;
  Json input_specs_ = Json::array();
  Json output_specs_ = Json::array();
  std::vector<std::string> modules_;
  std::unordered_set<std::string> seen_modules_;
};

}  // namespace

std::string model_json(const Program& program, const SymbolNames& symbols) {
  return ModelWriter(program, symbols).write().dump(-1, ' ', /*ensure_ascii=*/true);
}

nlohmann::ordered_json tensor_meta(const TensorData& data, int64_t storage_offset, bool requires_grad) {
  Json sizes = Json::array(), strides = Json::array();
  for (int64_t size : data.sizes) sizes.push_back({{"as_int", size}});
  for (int64_t stride : data.strides) strides.push_back({{"as_int", stride}});
  return meta_json(data.dtype, std::move(sizes), std::move(strides), storage_offset, requires_grad);
}

}  // namespace transporters::dynamo
