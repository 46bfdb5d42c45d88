#include "transporters/dynamo/graph_reader.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "transporters/dynamo/call_spec.h"
#include "transporters/dynamo/guard_reader.h"
#include "transporters/dynamo/schema.h"
#include "transporters/dynamo/size_reader.h"
#include "transporters/error.h"
#include "transporters/graph/symbol_sources.h"
#include "transporters/graph/verify.h"

namespace transporters::dynamo {
namespace {

using symbolic::Type;

// "torch.ops.aten.add.Tensor" -> "aten::add.Tensor".
std::string op_name(const std::string& target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  std::string name = target.substr(kPrefix.size());
  const auto dot = name.find('.');
  if (dot != std::string::npos) name.replace(dot, 1, "::");
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) name.resize(name.size() - kDefault.size());
  return name;
}

// Nodes that compute a number from numbers and sizes alone.
bool computes_size(const std::string& target) {
  static const std::unordered_set<std::string> kSizeOps = {
      "torch.ops.aten.sym_size.int", "torch.ops.aten.sym_stride.int", "torch.ops.aten.sym_numel.default",
      "torch.ops.aten.sym_storage_offset.default"};
  return target.starts_with("_operator.") || target.starts_with("math.") || target.starts_with("torch.sym_") ||
         target.starts_with("torch._sym_") || target.starts_with("builtins.") || kSizeOps.contains(target);
}

// Checks and switches that say nothing which the types of the graph do not say.
bool is_redundant(const std::string& target) {
  return target == "torch.ops.aten._assert_tensor_metadata.default" || target == "torch._C._set_grad_enabled";
}

// Graphs inside graphs; more come from damaged files.
constexpr int kMaxDepth = 16;

class GraphReader {
 public:
  GraphReader(const ConstJson& root, const ExtraNames& extra)
      : root_(root),
        module_(field(root, "graph_module")),
        graph_json_(field(module_, "graph")),
        extra_(extra),
        sizes_(extra.symbols) {}

  Program read() {
    check_version();
    sizes_.read_values(graph_json_);
    tensor_values_ = &object(field(graph_json_, "tensor_values"));
    read_call_signature();
    read_inputs();
    for (const ConstJson& node : array(field(graph_json_, "nodes"))) read_node(node);
    read_outputs();
    program_.hints = sizes_.hints();
    program_.ranges = ranges();
    if (const ConstJson* guards = find_field(root_, "guards_code"))
      read_guards(*guards, guard_paths_, sizes_, program_);
    program_.architecture = extra_.architecture;
    return std::move(program_);
  }

 private:
  void check_version() {
    const ConstJson& version = field(root_, "schema_version");
    const int64_t major = integer(field(version, "major"));
    if (major != kSchemaMajor)
      json_fail(version, "schema version " + std::to_string(major) + "." + field(version, "minor").dump() +
                             " is not supported; this version reads " + std::to_string(kSchemaMajor) +
                             ".x, which torch 2.6 and later write");
  }

  TensorType tensor_type(const ConstJson& name_json) {
    const auto found = tensor_values_->find(string(name_json));
    if (found == tensor_values_->end())
      json_fail(name_json, "the tensor '" + string(name_json) + "' is not described in tensor_values");
    return sizes_.read_tensor(*found);
  }

  Value* value(const ConstJson& name_json) {
    const auto found = values_.find(string(name_json));
    if (found == values_.end()) json_fail(name_json, "'" + string(name_json) + "' is used before it is defined");
    return found->second;
  }

  void define(const ConstJson& name_json, Value* value) {
    if (!values_.emplace(string(name_json), value).second)
      json_fail(name_json, "'" + string(name_json) + "' is defined twice");
  }

  // The number behind {"as_name": ...} or {"as_int": ...}.
  Expr number(const ConstJson& json) {
    const auto [tag, value] = tagged(json);
    if (tag != "as_name") return sizes_.read(json);
    const Expr* expr = sizes_.find(string(value));
    if (expr == nullptr) json_fail(value, "the number '" + string(value) + "' is not described in sym_int_values");
    return *expr;
  }

  // ── signature ──

  void read_call_signature() {
    for (const ConstJson& entry : array(field(module_, "module_call_graph"))) {
      if (!string(field(entry, "fqn")).empty()) continue;
      const ConstJson* signature = find_field(entry, "signature");
      if (signature == nullptr) break;
      program_.in_spec = TreeSpec::loads(string(field(*signature, "in_spec")));
      program_.out_spec = TreeSpec::loads(string(field(*signature, "out_spec")));
      if (const ConstJson* names = find_field(*signature, "forward_arg_names"))
        for (const ConstJson& name : array(*names)) argument_names_.push_back(string(name));
      break;
    }
    if (program_.in_spec.children.size() != 2)
      json_fail(module_, "the module call graph has no input structure of (args, kwargs)");
    input_paths_ = extra_.inputs;
    const auto names = all_argument_names();
    guard_paths_ = key_paths(program_.in_spec, names);
    if (input_paths_.size() != guard_paths_.size()) input_paths_ = leaf_paths(program_.in_spec, names);
    output_paths_ = program_.out_spec.leaf_paths();
    // Results that the caller gets without names.
    const std::string& type = program_.out_spec.type;
    if (type.empty() || type == "builtins.tuple" || type == "builtins.list")
      for (std::string& path : output_paths_) path = path.empty() ? "output" : "output." + path;
    if (extra_.outputs.size() == output_paths_.size()) output_paths_ = extra_.outputs;
  }

  // Names of all arguments; older archives have none for positional ones.
  std::vector<std::string> all_argument_names() const {
    TreeSpec keywords = program_.in_spec.children[1];
    for (TreeSpec& child : keywords.children) child = TreeSpec::leaf();
    std::vector<std::string> names;
    for (size_t i = 0; i < program_.in_spec.children[0].children.size(); ++i)
      names.push_back(i < argument_names_.size() ? argument_names_[i] : "arg_" + std::to_string(i));
    for (std::string& name : keywords.leaf_paths()) names.push_back(std::move(name));
    return names;
  }

  Argument constant(const ConstJson& json) {
    const auto [tag, value] = tagged(json);
    if (tag == "as_none") return None{};
    if (tag == "as_int") return Expr(integer(value));
    if (tag == "as_float") return real(value);
    if (tag == "as_bool") return boolean(value);
    if (tag == "as_string") return string(value);
    json_fail(json, "expected a constant, got '" + std::string(tag) + "'");
  }

  void read_inputs() {
    const ConstJson& inputs = array(field(graph_json_, "inputs"));
    const ConstJson& specs = array(field(field(module_, "signature"), "input_specs"));
    if (inputs.size() != specs.size())
      json_fail(specs, "the graph has " + std::to_string(inputs.size()) + " inputs, its signature " +
                           std::to_string(specs.size()));
    size_t next_user = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto [kind, spec] = tagged(specs[i]);
      InputSpec input;
      if (kind == "parameter") {
        input.kind = InputKind::Parameter;
        input.target = string(field(spec, "parameter_name"));
      } else if (kind == "buffer") {
        input.kind = InputKind::Buffer;
        input.target = string(field(spec, "buffer_name"));
        input.persistent = boolean(field(spec, "persistent"));
      } else if (kind == "tensor_constant") {
        input.kind = InputKind::Constant;
        input.target = string(field(spec, "tensor_constant_name"));
      } else if (kind == "user_input" || kind == "constant_input") {
        if (next_user >= input_paths_.size())
          json_fail(specs[i], "more user inputs than the input structure has leaves");
        input.target = input_paths_[next_user++];
      } else {
        json_fail(specs[i], "inputs of kind '" + std::string(kind) + "' are not supported");
      }
      const auto [tag, argument] = tagged(inputs[i]);
      if (tag == "as_tensor") {
        const ConstJson& name = field(argument, "name");
        input.value = program_.graph->add_input(string(name), tensor_type(name));
        define(name, input.value);
      } else if (tag == "as_sym_int") {
        const auto [how, name] = tagged(argument);
        if (how != "as_name") json_fail(argument, "a symbolic input without a name");
        input.value = program_.graph->add_input(string(name), NumberType{number(argument)});
        define(name, input.value);
      } else {
        input.constant = constant(inputs[i]);
      }
      if (input.kind != InputKind::UserInput && (input.value == nullptr || !input.value->is_tensor()))
        json_fail(inputs[i], "'" + input.target + "' is no tensor");
      if (input.kind != InputKind::UserInput && next_user > 0)
        json_fail(specs[i], "'" + input.target + "' comes after the user inputs");
      program_.inputs.push_back(std::move(input));
    }
    if (next_user != input_paths_.size())
      json_fail(specs, "the input structure has " + std::to_string(input_paths_.size()) + " leaves, the graph " +
                           std::to_string(next_user) + " user inputs");
  }

  void read_outputs() {
    const ConstJson& outputs = array(field(graph_json_, "outputs"));
    const ConstJson& specs = array(field(field(module_, "signature"), "output_specs"));
    if (outputs.size() != specs.size())
      json_fail(specs, "the graph has " + std::to_string(outputs.size()) + " outputs, its signature " +
                           std::to_string(specs.size()));
    size_t next_user = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto [kind, spec] = tagged(specs[i]);
      OutputSpec output;
      if (kind == "user_output") {
        if (next_user >= output_paths_.size()) json_fail(specs[i], "more outputs than the output structure has leaves");
        output.target = output_paths_[next_user++];
      } else if (kind == "buffer_mutation") {
        output.kind = OutputKind::BufferMutation;
        output.target = string(field(spec, "buffer_name"));
      } else if (kind == "user_input_mutation") {
        output.kind = OutputKind::UserInputMutation;
        const InputSpec* input = program_.find_input(value(field(spec, "user_input_name")));
        if (input == nullptr) json_fail(specs[i], "writes to a value that is no input");
        output.target = input->target;
      } else {
        json_fail(specs[i], "outputs of kind '" + std::string(kind) + "' are not supported");
      }
      const auto [tag, argument] = tagged(outputs[i]);
      if (tag == "as_tensor") {
        output.value = value(field(argument, "name"));
      } else if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") {
        output.constant = number(argument);
      } else {
        output.constant = constant(outputs[i]);
      }
      if (output.value != nullptr) program_.graph->add_output(output.value);
      if (output.kind != OutputKind::UserOutput && output.value == nullptr)
        json_fail(outputs[i], "a mutation is no tensor");
      program_.outputs.push_back(std::move(output));
    }
    if (next_user != output_paths_.size())
      json_fail(specs, "the output structure has " + std::to_string(output_paths_.size()) + " leaves, the graph " +
                           std::to_string(next_user) + " outputs");
  }

  // ── nodes ──

  void read_node(const ConstJson& node) {
    const std::string& target = string(field(node, "target"));
    if (is_redundant(target)) return;
    if (computes_size(target)) return check_size_node(node);
    if (!target.starts_with("torch.ops.")) json_fail(node, "'" + target + "' is not supported");
    if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") return inline_graph(node);
    if (target == "torch.ops.higher_order.wrap_with_autocast")
      json_fail(node,
                "a region under torch.autocast is not supported; call run_decompositions() on the program before "
                "saving it, which makes the casts explicit");
    if (target.starts_with("torch.ops.higher_order."))
      json_fail(node, "the higher-order op '" + target.substr(23) +
                          "' is not supported; export the model without control flow, under torch.no_grad()");
    const std::string op = op_name(target);
    if (op == "aten::sym_constrain_range" || op == "aten::sym_constrain_range_for_size") return read_range(node);
    const OpSchema* schema = find_schema(op);
    if (schema == nullptr)
      json_fail(node, "the op '" + op + "' is not registered in this process; load the library that defines it first");

    std::vector<NamedArgument> arguments;
    for (const ConstJson& input : array(field(node, "inputs"))) {
      const std::string& name = string(field(input, "name"));
      const auto position = schema->find(name);
      if (!position) json_fail(input, "'" + op + "' has no argument '" + name + "'");
      arguments.push_back({name, read_argument(field(input, "arg"), schema->arguments[*position].kind)});
    }
    // An assertion that the sizes fulfil anyway.
    if (op == "aten::_assert_scalar" && !arguments.empty())
      if (const auto* condition = std::get_if<Expr>(&arguments[0].value); condition && condition->as_boolean() == true)
        return;
    std::vector<const ConstJson*> names;
    std::vector<ValueType> types;
    read_output_types(node, names, types);
    Node* made = program_.graph->append(op, std::move(arguments), std::move(types));
    for (size_t i = 0; i < names.size(); ++i) {
      program_.graph->rename(made->outputs()[i], string(*names[i]));
      define(*names[i], made->outputs()[i]);
    }
    if (const auto problem = schema_misfit(*made)) json_fail(node, "'" + op + "': " + *problem);
    read_metadata(node, *made);
  }

  // A region under torch.no_grad(): (enabled, graph, inputs...). Programs have no gradients, its nodes are as any
  // others.
  void inline_graph(const ConstJson& node) {
    const ConstJson& inputs = array(field(node, "inputs"));
    if (inputs.size() < 2) json_fail(node, "expected a mode and a graph");
    const auto [tag, argument] = tagged(field(inputs[1], "arg"));
    if (tag != "as_graph") json_fail(inputs[1], "expected a graph");
    const ConstJson& inner = field(argument, "graph");
    const ConstJson& parameters = array(field(inner, "inputs"));
    if (parameters.size() != inputs.size() - 2)
      json_fail(inner, "the inner graph has " + std::to_string(parameters.size()) + " inputs, it is given " +
                           std::to_string(inputs.size() - 2));
    std::unordered_map<std::string, Value*> outer_values;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto [kind, parameter] = tagged(parameters[i]);
      if (kind != "as_tensor") continue;  // numbers are described by the inner graph's own values
      const auto [given_kind, given] = tagged(field(inputs[i + 2], "arg"));
      if (given_kind != "as_tensor") json_fail(inputs[i + 2], "expected a tensor");
      outer_values[string(field(parameter, "name"))] = value(field(given, "name"));
    }
    // The inner graph has names of its own.
    if (++depth_ > kMaxDepth) json_fail(node, "graphs are nested too deeply");
    values_.swap(outer_values);
    const ConstJson* const outer_tensors = std::exchange(tensor_values_, &object(field(inner, "tensor_values")));
    const auto outer_numbers = sizes_.exchange_values({});
    sizes_.read_values(inner);
    for (const ConstJson& inner_node : array(field(inner, "nodes"))) read_node(inner_node);
    std::vector<Value*> results;
    for (const ConstJson& output : array(field(inner, "outputs"))) {
      const auto [kind, result] = tagged(output);
      results.push_back(kind == "as_tensor" ? value(field(result, "name")) : nullptr);
    }
    values_.swap(outer_values);
    tensor_values_ = outer_tensors;
    sizes_.exchange_values(outer_numbers);
    --depth_;

    size_t next = 0;
    for (const ConstJson& output : array(field(node, "outputs"))) {
      const auto [kind, result] = tagged(output);
      const auto bind = [&](const ConstJson& name) {
        if (next >= results.size() || results[next] == nullptr) json_fail(output, "the inner graph has no such output");
        define(name, results[next++]);
      };
      if (kind == "as_tensor") {
        bind(field(result, "name"));
      } else if (kind == "as_tensors") {
        for (const ConstJson& element : array(result)) bind(field(element, "name"));
      } else {
        ++next;  // numbers are described by this graph's values
      }
    }
  }

  // The node's value is in sym_int_values; that it is there is all that matters.
  void check_size_node(const ConstJson& node) {
    for (const ConstJson& output : array(field(node, "outputs"))) {
      const auto [tag, argument] = tagged(output);
      if (tag != "as_sym_int" && tag != "as_sym_float" && tag != "as_sym_bool")
        json_fail(output, "'" + string(field(node, "target")) + "' should compute a number");
      number(argument);
    }
  }

  // aten::sym_constrain_range_for_size(u0, min, max) narrows a range.
  void read_range(const ConstJson& node) {
    std::optional<Expr> symbol;
    symbolic::Range range{0, symbolic::Range::kInfinity};
    for (const ConstJson& input : array(field(node, "inputs"))) {
      const std::string& name = string(field(input, "name"));
      const auto [tag, value] = tagged(field(input, "arg"));
      if (name == "size") {
        symbol = tag == "as_sym_int" ? number(value) : Expr(0);
      } else if (tag == "as_int" && (name == "min" || name == "max")) {
        (name == "min" ? range.min : range.max) = integer(value);
      }
    }
    if (symbol && symbol->kind() == symbolic::Kind::Symbol) constrained_.emplace_back(symbol->name(), range);
  }

  void read_output_types(const ConstJson& node, std::vector<const ConstJson*>& names, std::vector<ValueType>& types) {
    const auto tensor = [&](const ConstJson& argument) {
      names.push_back(&field(argument, "name"));
      types.emplace_back(tensor_type(*names.back()));
    };
    for (const ConstJson& output : array(field(node, "outputs"))) {
      const auto [tag, argument] = tagged(output);
      if (tag == "as_tensor") {
        tensor(argument);
      } else if (tag == "as_tensors") {
        for (const ConstJson& element : array(argument)) tensor(element);
      } else if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") {
        const auto [how, name] = tagged(argument);
        if (how != "as_name") json_fail(argument, "a computed number without a name");
        // Symbols stand for integers.
        if (tag == "as_sym_float" && number(argument).type() == Type::Integer)
          json_fail(output, "a floating-point number that is read from a tensor ('" + string(name) +
                                "') is not supported; keep it a tensor: leave out item() or float()");
        names.push_back(&name);
        types.emplace_back(NumberType{number(argument)});
      } else {
        json_fail(output, "'" + string(field(node, "target")) + "' has an output of kind '" + std::string(tag) +
                              "', which is not supported");
      }
    }
  }

  Argument read_argument(const ConstJson& json, ArgumentKind kind) {
    const auto [tag, value] = tagged(json);
    const auto map = [&](auto f) {
      std::vector<decltype(f(value))> list;
      for (const ConstJson& element : array(value)) list.push_back(f(element));
      return list;
    };
    if (tag == "as_none") return None{};
    if (tag == "as_tensor") return this->value(field(value, "name"));
    if (tag == "as_tensors") return map([&](const ConstJson& e) { return this->value(field(e, "name")); });
    if (tag == "as_optional_tensor") {
      Value* const tensor = optional_tensor(value);
      return tensor == nullptr ? Argument(None{}) : Argument(tensor);
    }
    if (tag == "as_optional_tensors") return map([&](const ConstJson& e) { return optional_tensor(e); });
    if (tag == "as_int") {
      if (kind == ArgumentKind::Float) return static_cast<double>(integer(value));
      return Expr(integer(value));
    }
    if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") return number(value);
    if (array_kind(tag) && value.is_array() && value.empty()) return empty_list(kind);
    if (tag == "as_ints") {
      if (kind == ArgumentKind::FloatList) return map([](const ConstJson& e) { return real(e); });
      return map([](const ConstJson& e) { return Expr(integer(e)); });
    }
    if (tag == "as_sym_ints" || tag == "as_sym_floats" || tag == "as_sym_bools")
      return map([&](const ConstJson& e) { return number(e); });
    if (tag == "as_float") return real(value);
    if (tag == "as_floats") return map([](const ConstJson& e) { return real(e); });
    if (tag == "as_bool") return boolean(value);
    if (tag == "as_bools") return map([](const ConstJson& e) { return boolean(e); });
    if (tag == "as_string") return string(value);
    if (tag == "as_strings") return map([](const ConstJson& e) { return string(e); });
    if (tag == "as_scalar_type") {
      if (const auto dtype = dtype_from_schema(integer(value))) return *dtype;
      json_fail(value, "unknown element type " + value.dump());
    }
    if (tag == "as_layout") {
      if (auto name = layout_from_schema(integer(value))) return Layout{std::move(*name)};
      json_fail(value, "unknown layout " + value.dump());
    }
    if (tag == "as_memory_format") {
      if (auto name = memory_format_from_schema(integer(value))) return MemoryFormat{std::move(*name)};
      json_fail(value, "unknown memory format " + value.dump());
    }
    if (tag == "as_device") {
      const std::string& type = string(field(value, "type"));
      if (type != "cpu" && type != "meta")
        json_fail(value, "the op runs on '" + type + "'; move the model to the CPU before exporting it");
      return Device{type};
    }
    json_fail(json, "arguments of kind '" + std::string(tag) + "' are not supported");
  }

  static bool array_kind(std::string_view tag) { return tag.ends_with("s"); }

  // What an empty list holds follows from the schema alone.
  static Argument empty_list(ArgumentKind kind) {
    switch (kind) {
      case ArgumentKind::TensorList:
      case ArgumentKind::OptionalTensorList:
        return Values{};
      case ArgumentKind::FloatList:
        return std::vector<double>{};
      case ArgumentKind::BoolList:
        return std::vector<bool>{};
      case ArgumentKind::StringList:
        return std::vector<std::string>{};
      default:
        return std::vector<Expr>{};
    }
  }

  Value* optional_tensor(const ConstJson& json) {
    const auto [tag, value] = tagged(json);
    return tag == "as_none" ? nullptr : this->value(field(value, "name"));
  }

  // "L__self__,,M;L__self__model,model,M": the last path is the module that ran the op.
  void read_metadata(const ConstJson& node, Node& made) {
    const ConstJson* metadata = find_field(node, "metadata");
    if (metadata == nullptr) return;
    if (const ConstJson* trace = find_field(*metadata, "stack_trace")) made.source = string(*trace);
    const ConstJson* stack = find_field(*metadata, "nn_module_stack");
    if (stack == nullptr) return;
    const std::string_view all = string(*stack);
    const std::string_view last = all.substr(all.rfind(';') + 1);
    const auto first = last.find(',');
    if (first == std::string_view::npos) return;
    std::string path(last.substr(first + 1, last.find(',', first + 1) - first - 1));
    // "@1" marks a module's second call.
    made.module_path = path.substr(0, path.find('@'));
  }

  // ── sizes ──

  std::map<std::string, symbolic::Range> ranges() const {
    auto declared = sizes_.read_ranges(field(root_, "range_constraints"));
    // torch.export says "at least 2" of every dynamic size, and does not insist on it when the program runs.
    constexpr int64_t kUncheckedMin = 2;
    if (extra_.symbols.empty()) {
      for (const auto& [symbol, source] : find_symbol_sources(program_)) {
        const auto found = declared.find(symbol);
        const bool is_input = source.value->producer() == nullptr;
        if (found != declared.end() && is_input && found->second.min <= kUncheckedMin) found->second.min = 0;
      }
    }
    for (const auto& [symbol, range] : constrained_) {
      auto& known = declared.try_emplace(symbol).first->second;
      known = {std::max(known.min, range.min), std::min(known.max, range.max)};
    }
    // Files name symbols that an export got rid of, and leave out what has no bounds.
    std::map<std::string, symbolic::Range> used;
    const auto use = [&](const std::vector<std::string>& symbols) {
      for (const std::string& symbol : symbols) {
        const auto found = declared.find(symbol);
        used.emplace(symbol, found == declared.end() ? symbolic::Range{} : found->second);
      }
    };
    for (const InputSpec& input : program_.inputs)
      if (input.value != nullptr) use(symbols_of(input.value->type()));
    for (const Node& node : *program_.graph) {
      for (const Value* output : node.outputs()) use(symbols_of(output->type()));
      for (const NamedArgument& argument : node.arguments()) use(symbols_of(argument.value));
    }
    return used;
  }

  const ConstJson& root_;
  const ConstJson& module_;
  const ConstJson& graph_json_;
  const ExtraNames& extra_;
  SizeReader sizes_;
  const ConstJson* tensor_values_ = nullptr;
  std::vector<std::string> argument_names_, input_paths_, output_paths_;
  std::vector<KeyPath> guard_paths_;  // of the user inputs
  std::unordered_map<std::string, Value*> values_;
  std::vector<std::pair<std::string, symbolic::Range>> constrained_;
  int depth_ = 0;
  Program program_;
};

}  // namespace

Program read_graph(const ConstJson& exported_program, const ExtraNames& extra) {
  return GraphReader(exported_program, extra).read();
}

}  // namespace transporters::dynamo
