// The calling convention of a written program: tree specs, argument names, guards between inputs.
#include "transporters/dynamo/call_spec.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>

#include "transporters/dynamo/names.h"
#include "transporters/error.h"
#include "transporters/graph/symbol_sources.h"

namespace transporters::dynamo {
namespace {

using symbolic::Kind;
using symbolic::Type;

std::string first_step(const std::string& path) { return path.substr(0, path.find('.')); }

std::vector<const InputSpec*> user_inputs(const Program& program) {
  std::vector<const InputSpec*> inputs;
  for (const InputSpec& input : program.inputs)
    if (input.kind == InputKind::UserInput) inputs.push_back(&input);
  return inputs;
}

// Python source of an integer expression; nullopt when a part has no plain form.
std::optional<std::string> to_python(const Expr& expr,
                                     const std::function<std::optional<std::string>(const std::string&)>& symbol) {
  const auto joined = [&](const char* separator, const char* open) -> std::optional<std::string> {
    std::string text = open;
    const char* between = "";
    for (const Expr& operand : expr.operands()) {
      const auto part = to_python(operand, symbol);
      if (!part) return std::nullopt;
      text += between + *part;
      between = separator;
    }
    return text + ")";
  };
  switch (expr.kind()) {
    case Kind::Integer:
      return std::to_string(*expr.as_integer());
    case Kind::Symbol:
      return symbol(expr.name());
    case Kind::Add:
      return joined(" + ", "(");
    case Kind::Mul:
      return joined(" * ", "(");
    case Kind::FloorDiv:
      return joined(" // ", "(");
    case Kind::Mod:
      return joined(" % ", "(");
    case Kind::Min:
      return joined(", ", "min(");
    case Kind::Max:
      return joined(", ", "max(");
    default:
      return std::nullopt;
  }
}

bool has_keys(const TreeSpec& spec) { return !spec.context.empty() && spec.context.front() == '['; }

void collect_key_paths(const TreeSpec& spec, const KeyPath& prefix, std::vector<KeyPath>& paths) {
  if (spec.is_leaf()) {
    paths.push_back(prefix);
    return;
  }
  TreeSpec shallow = spec;
  for (TreeSpec& child : shallow.children) child = TreeSpec::leaf();
  const auto names = shallow.leaf_paths();
  for (size_t i = 0; i < spec.children.size(); ++i) {
    KeyPath path = prefix;
    path.steps.push_back(has_keys(spec) ? names[i] : std::to_string(i));
    path.text += "[" + (has_keys(spec) ? "'" + names[i] + "'" : std::to_string(i)) + "]";
    collect_key_paths(spec.children[i], path, paths);
  }
}

}  // namespace

TreeSpec input_spec(const Program& program) {
  const auto inputs = user_inputs(program);
  if (!program.in_spec.is_leaf()) {
    if (program.in_spec.num_leaves() != inputs.size() || program.in_spec.children.size() != 2 ||
        program.in_spec.children[0].is_leaf() || program.in_spec.children[1].is_leaf())
      throw InternalError("the input structure " + program.in_spec.dumps() + " does not hold the program's " +
                          std::to_string(inputs.size()) + " user inputs as (args, kwargs)");
    return program.in_spec;
  }
  std::vector<std::string> keys;
  for (const InputSpec* input : inputs) keys.push_back(input->target);
  std::vector<TreeSpec> leaves(inputs.size());
  if (!std::all_of(keys.begin(), keys.end(), is_argument_name))
    return TreeSpec::tuple({TreeSpec::tuple(std::move(leaves)), TreeSpec::dict({}, {})});
  return TreeSpec::tuple({TreeSpec::tuple({}), TreeSpec::dict(keys, std::move(leaves))});
}

TreeSpec output_spec(const Program& program) {
  const auto count =
      static_cast<size_t>(std::count_if(program.outputs.begin(), program.outputs.end(), [](const OutputSpec& output) {
        return output.kind == OutputKind::UserOutput;
      }));
  if (program.out_spec.num_leaves() == count) return program.out_spec;
  if (!program.out_spec.is_leaf())
    throw InternalError("the output structure " + program.out_spec.dumps() + " does not hold the program's " +
                        std::to_string(count) + " outputs");
  return TreeSpec::tuple(std::vector<TreeSpec>(count));
}

std::vector<std::string> argument_names(const Program& program, const TreeSpec& spec) {
  TreeSpec keyword_spec = spec.children[1];
  for (TreeSpec& child : keyword_spec.children) child = TreeSpec::leaf();
  const auto keywords = keyword_spec.leaf_paths();
  for (const std::string& name : keywords)
    if (!is_argument_name(name))
      throw Error({.stage = "dynamo"}, "the keyword argument '" + name +
                                           "' can't be an argument of the Python code that torch makes of a .pt2 file; "
                                           "rename it, or pass it by position");
  std::vector<std::string> names;
  std::unordered_set<std::string> taken(keywords.begin(), keywords.end());
  const auto inputs = user_inputs(program);
  size_t leaf = 0;
  for (const TreeSpec& argument : spec.children[0].children) {
    const size_t leaves = argument.num_leaves();
    // An argument without leaves leaves no name behind.
    std::string name = leaves > 0 ? first_step(inputs[leaf]->target) : "";
    if (!is_python_name(name) || taken.contains(name)) name = "arg_" + std::to_string(names.size());
    while (!taken.insert(name).second) name += "_";
    names.push_back(std::move(name));
    leaf += leaves;
  }
  names.insert(names.end(), keywords.begin(), keywords.end());
  return names;
}

std::vector<KeyPath> key_paths(const TreeSpec& spec, const std::vector<std::string>& argument_names) {
  std::vector<KeyPath> paths;
  size_t argument = 0;
  for (const TreeSpec& group : spec.children) {
    for (const TreeSpec& child : group.children) {
      const std::string& name = argument_names.at(argument++);
      collect_key_paths(child, {{name}, "L['" + name + "']"}, paths);
    }
  }
  return paths;
}

std::vector<std::string> leaf_paths(const TreeSpec& spec, const std::vector<std::string>& argument_names) {
  std::vector<std::string> paths;
  size_t argument = 0;
  for (const TreeSpec& group : spec.children) {
    for (const TreeSpec& child : group.children) {
      const std::string& name = argument_names.at(argument++);
      for (const std::string& path : child.leaf_paths()) paths.push_back(path.empty() ? name : name + "." + path);
    }
  }
  return paths;
}

std::vector<std::string> guard_code(const Program& program, const TreeSpec& spec) {
  const auto keys = key_paths(spec, argument_names(program, spec));
  const auto inputs = user_inputs(program);
  const auto sources = find_symbol_sources(program);
  const auto size_text = [&](const Value* value, size_t dim) -> std::optional<std::string> {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]->value == value) return keys[i].text + ".size()[" + std::to_string(dim) + "]";
    return std::nullopt;
  };
  const auto symbol_text = [&](const std::string& symbol) -> std::optional<std::string> {
    const auto found = sources.find(symbol);
    if (found == sources.end() || !found->second.dim) return std::nullopt;
    const SymbolSource& source = found->second;
    const auto text = size_text(source.value, *source.dim);
    if (!text || (source.scale == 1 && source.offset == 0)) return text;
    return "((" + *text + " - " + std::to_string(source.offset) + ") // " + std::to_string(source.scale) + ")";
  };
  std::vector<std::string> guards;
  for (const InputSpec* input : inputs) {
    if (input->value == nullptr || !input->value->is_tensor()) continue;
    for (size_t dim = 0; dim < input->value->rank(); ++dim) {
      const Expr& size = input->value->sizes()[dim];
      if (size.is_constant() || size.kind() == Kind::Symbol) continue;  // torch checks these itself
      const auto wanted = to_python(size, symbol_text);
      const auto actual = size_text(input->value, dim);
      if (wanted && actual) guards.push_back(*actual + " == " + *wanted);
    }
  }
  return guards;
}

}  // namespace transporters::dynamo
