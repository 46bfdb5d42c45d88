// verify(program): the invariants of a program, each with its own message.
#include "transporters/graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/symbol_sources.h"
#include "transporters/graph/text.h"

namespace transporters {
namespace {

[[noreturn]] void broken(const std::string& message) { throw InternalError("invalid program: " + message); }

std::string in(const Node& node) {
  std::string text = " in '";
  for (const auto* output : node.outputs()) text += (output->index() ? ", %" : "%") + output->name();
  text += (node.outputs().empty() ? "" : " = ") + node.op() + "'";
  return node.module_path.empty() ? text : text + " at " + node.module_path;
}

template <typename T>
bool holds(const Argument& argument) {
  return std::holds_alternative<T>(argument);
}

bool is_number(const Value* value) { return !value->is_tensor(); }

// Whether the schema's type takes the argument, given whole.
bool fits(const SchemaArgument& schema, const Argument& argument) {
  if (holds<None>(argument)) return schema.optional || schema.kind == ArgumentKind::Other;
  const auto* value = std::get_if<Value*>(&argument);
  const bool computed_number = value != nullptr && is_number(*value);
  const auto* expr = std::get_if<Expr>(&argument);
  switch (schema.kind) {
    case ArgumentKind::Tensor:
      return value != nullptr || expr != nullptr || holds<double>(argument) || holds<bool>(argument);
    case ArgumentKind::TensorList: {
      const auto* values = std::get_if<Values>(&argument);
      return values != nullptr && std::all_of(values->begin(), values->end(), [](const Value* element) {
               return element != nullptr && element->is_tensor();
             });
    }
    case ArgumentKind::OptionalTensorList: {
      const auto* values = std::get_if<Values>(&argument);
      return values != nullptr && std::all_of(values->begin(), values->end(), [](const Value* element) {
               return element == nullptr || element->is_tensor();
             });
    }
    case ArgumentKind::Int:
      return computed_number || (expr != nullptr && expr->type() == symbolic::Type::Integer);
    case ArgumentKind::IntList:
      return expr != nullptr || holds<std::vector<Expr>>(argument);
    case ArgumentKind::Float:
      return computed_number || holds<double>(argument) || expr != nullptr;
    case ArgumentKind::FloatList:
      return holds<std::vector<double>>(argument);
    case ArgumentKind::Bool:
      return computed_number || holds<bool>(argument) || (expr != nullptr && expr->type() == symbolic::Type::Boolean);
    case ArgumentKind::BoolList:
      return holds<std::vector<bool>>(argument);
    case ArgumentKind::Scalar:
      return computed_number || expr != nullptr || holds<double>(argument) || holds<bool>(argument);
    case ArgumentKind::String:
      return holds<std::string>(argument);
    case ArgumentKind::StringList:
      return holds<std::vector<std::string>>(argument);
    case ArgumentKind::ScalarType:
      return holds<ScalarType>(argument);
    case ArgumentKind::Layout:
      return holds<Layout>(argument);
    case ArgumentKind::MemoryFormat:
      return holds<MemoryFormat>(argument);
    case ArgumentKind::Device:
      return holds<Device>(argument);
    case ArgumentKind::Other:
      return false;
  }
  return false;
}

std::optional<std::string> output_misfit(const Node& node) {
  const auto& returns = node.schema().returns;
  const bool list =
      returns.size() == 1 && (returns[0].kind == ArgumentKind::TensorList || returns[0].kind == ArgumentKind::IntList);
  if (!list && node.outputs().size() != returns.size())
    return "the schema has " + std::to_string(returns.size()) + " outputs, the node " +
           std::to_string(node.outputs().size());
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const auto kind = returns[list ? 0 : i].kind;
    const bool tensor = kind == ArgumentKind::Tensor || kind == ArgumentKind::TensorList;
    if (node.outputs()[i]->is_tensor() != tensor)
      return "output %" + node.outputs()[i]->name() + " is " + to_text(node.outputs()[i]->type()) +
             " where the schema returns " + (tensor ? "a tensor" : "a number");
  }
  return std::nullopt;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), graph_(*program.graph) {}

  void run() {
    graph_inputs();
    for (const auto& node : graph_) this->node(node);
    for (const auto* output : graph_.outputs())
      if (!defined_.contains(output)) broken("graph output %" + output->name() + " is not defined in the graph");
    uses_in_step();
    signature_inputs();
    signature_outputs();
    symbols();
  }

 private:
  void define(const Value* value, const Node* producer, size_t index) {
    if (&value->graph() != &graph_) broken("value %" + value->name() + " belongs to another graph");
    if (value->producer() != producer || value->index() != index)
      broken("value %" + value->name() + " does not know its producer");
    if (graph_.find_value(value->name()) != value)
      broken("two values are named %" + value->name() + ", or the name is not registered");
    if (!defined_.insert(value).second) broken("value %" + value->name() + " is defined twice");
    if (value->is_tensor() && !value->tensor().strides.empty() && value->tensor().strides.size() != value->rank())
      broken("value %" + value->name() + " has " + std::to_string(value->tensor().strides.size()) + " strides for " +
             std::to_string(value->rank()) + " sizes");
  }

  void graph_inputs() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) define(graph_.inputs()[i], nullptr, i);
  }

  void node(const Node& node) {
    if (node.schema().is_mutable()) broken("an op that writes to its inputs" + in(node));
    std::optional<size_t> last;
    for (size_t i = 0; i < node.arguments().size(); ++i) {
      const auto& [name, argument] = node.arguments()[i];
      const auto index = node.schema().find(name);
      if (!index) broken("the schema has no argument '" + name + "'" + in(node));
      if (last && *index <= *last) broken("the argument '" + name + "' is out of the schema's order" + in(node));
      last = index;
      const auto& schema = node.schema().arguments[*index];
      if (schema.default_value && identical(argument, *schema.default_value))
        broken("the argument '" + name + "' stores the schema's default" + in(node));
      for_each_value(argument, [&](const Value* value) {
        if (!defined_.contains(value)) broken("value %" + value->name() + " is read before it is defined" + in(node));
      });
      record_uses(node, i, argument);
    }
    if (const auto problem = schema_misfit(node)) broken(*problem + in(node));
    for (size_t i = 0; i < node.outputs().size(); ++i) define(node.outputs()[i], &node, i);
  }

  void record_uses(const Node& node, size_t index, const Argument& argument) {
    const auto record = [&](const Value* value, size_t element) {
      ++reads_[value];
      const Use use{const_cast<Node*>(&node), index, element};
      if (std::find(value->uses().begin(), value->uses().end(), use) == value->uses().end())
        broken("value %" + value->name() + " misses the use" + in(node));
    };
    if (auto* const* value = std::get_if<Value*>(&argument)) {
      record(*value, 0);
    } else if (const auto* values = std::get_if<Values>(&argument)) {
      for (size_t element = 0; element < values->size(); ++element)
        if ((*values)[element] != nullptr) record((*values)[element], element);
    }
  }

  void uses_in_step() {
    const auto check = [&](const Value* value) {
      const auto found = reads_.find(value);
      const size_t reads = found == reads_.end() ? 0 : found->second;
      if (reads != value->uses().size())
        broken("value %" + value->name() + " has " + std::to_string(value->uses().size()) + " uses recorded, " +
               std::to_string(reads) + " reads in the graph");
    };
    for (const auto* input : graph_.inputs()) check(input);
    for (const auto& node : graph_)
      for (const auto* output : node.outputs()) check(output);
  }

  void signature_inputs() {
    size_t index = 0;
    bool user_inputs = false;
    for (const auto& input : program_.inputs) {
      const std::string what = "input '" + input.target + "'";
      if (!(input.kind == InputKind::UserInput ? user_targets_ : state_targets_).insert(input.target).second)
        broken("two inputs are named '" + input.target + "'");
      if (input.kind == InputKind::UserInput) {
        user_inputs = true;
      } else if (user_inputs) {
        broken(what + " is a parameter, buffer or constant after a user input");
      }
      if (!input.persistent && input.kind != InputKind::Buffer) broken(what + " is not persistent, but no buffer");
      if (input.value == nullptr) {
        if (input.kind != InputKind::UserInput) broken(what + " has no value, but is no user input");
        continue;
      }
      if (index == graph_.inputs().size() || graph_.inputs()[index] != input.value)
        broken(what + " is not the graph's input number " + std::to_string(index));
      ++index;
      if (input.kind != InputKind::UserInput) state_of(input);
    }
    if (index != graph_.inputs().size())
      broken("graph input %" + graph_.inputs()[index]->name() + " is not in the signature");
  }

  void state_of(const InputSpec& input) {
    const std::string what = "input '" + input.target + "'";
    if (!input.value->is_tensor()) broken(what + " is a number, expected a tensor");
    if (program_.state.empty()) return;  // as parse_program leaves it
    const auto found = program_.state.find(input.target);
    if (found == program_.state.end()) broken(what + " has no state");
    const auto& data = found->second;
    const auto& sizes = input.value->sizes();
    const bool same_sizes = std::equal(sizes.begin(), sizes.end(), data.sizes.begin(), data.sizes.end(),
                                       [](const Expr& size, int64_t value) { return size.is(value); });
    if (data.dtype != input.value->dtype() || !same_sizes)
      broken(what + " is " + to_text(input.value->type()) + ", its state " +
             to_text(TensorType{data.dtype, {data.sizes.begin(), data.sizes.end()}, {}}));
  }

  void signature_outputs() {
    size_t index = 0;
    bool user_outputs = false;
    std::set<std::string> mutated_buffers, mutated_inputs;
    for (const auto& output : program_.outputs) {
      const std::string what = "output '" + output.target + "'";
      const bool mutation = output.kind != OutputKind::UserOutput;
      if (mutation && user_outputs) broken("the mutation of '" + output.target + "' comes after a user output");
      user_outputs |= !mutation;
      if (output.value != nullptr) {
        if (index == graph_.outputs().size() || graph_.outputs()[index] != output.value)
          broken(what + " is not the graph's output number " + std::to_string(index));
        ++index;
      } else if (mutation) {
        broken("the mutation of '" + output.target + "' has no value");
      }
      if (!mutation) continue;
      const bool buffer = output.kind == OutputKind::BufferMutation;
      if (!(buffer ? mutated_buffers : mutated_inputs).insert(output.target).second)
        broken("'" + output.target + "' is mutated by two outputs");
      mutation_target(output, buffer);
    }
    if (index != graph_.outputs().size())
      broken("graph output %" + graph_.outputs()[index]->name() + " is not in the signature");
  }

  void mutation_target(const OutputSpec& output, bool buffer) {
    const auto kind = buffer ? InputKind::Buffer : InputKind::UserInput;
    const auto found = std::find_if(program_.inputs.begin(), program_.inputs.end(), [&](const auto& input) {
      return input.kind == kind && input.target == output.target && input.value != nullptr;
    });
    if (found == program_.inputs.end())
      broken("the mutated " + std::string(buffer ? "buffer" : "user input") + " '" + output.target +
             "' does not exist");
    if (!output.value->is_tensor() || !found->value->is_tensor() || output.value->dtype() != found->value->dtype() ||
        output.value->sizes() != found->value->sizes())
      broken("the new value of '" + output.target + "' is " + to_text(output.value->type()) + ", expected " +
             to_text(found->value->type()));
  }

  void symbols() {
    const auto sources = find_symbol_sources(program_);
    std::set<std::string> known;
    std::unordered_map<const Node*, std::vector<std::string>> computed;
    for (const auto& [name, source] : sources) {
      if (source.value->producer() == nullptr) {
        known.insert(name);
      } else {
        computed[source.value->producer()].push_back(name);
      }
    }
    const auto check = [&](const std::vector<std::string>& names, const std::string& where) {
      for (const auto& name : names) {
        if (!program_.ranges.contains(name)) broken("the symbol '" + name + "' has no range, " + where);
        if (!sources.contains(name))
          broken("the symbol '" + name + "' has no source: no input and no node has it as a size or number, " + where);
        if (!known.contains(name)) broken("the symbol '" + name + "' is read before it is computed, " + where);
      }
    };
    for (const auto* input : graph_.inputs()) check(symbols_of(input->type()), "read by input %" + input->name());
    for (const auto& node : graph_) {
      const std::string where = "read" + in(node);
      for (const auto& argument : node.arguments()) check(symbols_of(argument.value), where);
      if (const auto found = computed.find(&node); found != computed.end())
        known.insert(found->second.begin(), found->second.end());
      for (const auto* output : node.outputs()) check(symbols_of(output->type()), where);
    }
    for (const auto& output : program_.outputs)
      check(symbols_of(output.constant), "read by output '" + output.target + "'");
    for (const auto& [name, range] : program_.ranges)
      if (range.min > range.max) broken("the range of the symbol '" + name + "' is empty");
  }

  const Program& program_;
  const Graph& graph_;
  std::unordered_set<const Value*> defined_;
  std::unordered_map<const Value*, size_t> reads_;
  std::set<std::string> user_targets_;
  std::set<std::string> state_targets_;
};

}  // namespace

std::optional<std::string> schema_misfit(const Node& node) {
  for (const auto& [name, argument] : node.arguments()) {
    const auto index = node.schema().find(name);
    if (!index) return "the schema has no argument '" + name + "'";
    if (!fits(node.schema().arguments[*index], argument))
      return "the argument '" + name + "' does not match the schema's type: " + to_text(argument);
  }
  for (const auto& argument : node.schema().arguments)
    if (node.try_get(argument.name) == nullptr && argument.kind != ArgumentKind::Other)
      return "the argument '" + argument.name + "' is missing";
  return output_misfit(node);
}

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace transporters
