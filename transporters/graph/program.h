// An exported program: a graph with its signature, state, ranges and calling convention (torch.export.ExportedProgram).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/graph/graph.h"
#include "transporters/graph/tensor_data.h"
#include "transporters/graph/tree_spec.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

enum class InputKind : uint8_t { Parameter, Buffer, Constant, UserInput };
enum class OutputKind : uint8_t { UserOutput, BufferMutation, UserInputMutation };

// One graph input. Parameters, buffers and constants come before user inputs.
struct InputSpec {
  InputKind kind = InputKind::UserInput;
  Value* value = nullptr;  // null for a user input that is a constant (None, a number, a string): see `constant`
  // Dotted name of the parameter, buffer or constant; for a user input its leaf path ("input_ids",
  // "cache.layers.0.keys").
  std::string target;
  bool persistent = true;  // buffers only
  Argument constant = None{};
};

// One output. Mutations come before user outputs, as torch.export orders them.
struct OutputSpec {
  OutputKind kind = OutputKind::UserOutput;
  Value* value = nullptr;      // null for a constant output: see `constant`
  std::string target;          // buffer or user input that takes the value; for a user output its leaf path ("logits")
  Argument constant = None{};  // None, number, string, or a symbolic size that is returned
};

// What a program is called with: named for keyword arguments, in order.
struct ExampleInput {
  std::string path;  // leaf path
  TensorData data;
};

class Program {
 public:
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  // In the order of graph->inputs() and graph->outputs(), with constant leaves in between.
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  // Bytes of parameters, buffers and constants by target; tied parameters share `data`.
  std::map<std::string, TensorData> state;
  // Ranges of the symbols in the graph.
  std::map<std::string, symbolic::Range> ranges;
  // Example values of the symbols (hints), for the formats that store them.
  std::map<std::string, int64_t> hints;
  // Structure of (args, kwargs) and of the result.
  TreeSpec in_spec;
  TreeSpec out_spec;
  std::vector<ExampleInput> example_inputs;
  // Class of the exported module ("LlamaForCausalLM"), for the manifest.
  std::string architecture;

  Program clone() const;
  // The spec of that target or value; null when there is none.
  const InputSpec* find_input(std::string_view target) const;
  const InputSpec* find_input(const Value* value) const;

  // Graph::replace_all_uses, and the outputs of the signature follow.
  void replace_all_uses(Value* from, Value* to);
  // Takes the values of `outputs` from graph->outputs() again, after uses were replaced in the graph alone.
  void update_outputs();
  // Removes an unused graph input with its spec and its state.
  void erase_input(Value* input);

  // Text that reads back with parse_program: inputs with their role, nodes, outputs, ranges. Weights are named, their
  // bytes are not part of it.
  std::string str() const;
};

// Parses Program::str(); state is left empty. Throws Error with line and column.
Program parse_program(std::string_view text);

// Throws InternalError that names the first broken rule: values defined before use, use lists in step, types match the
// schema, symbols have a source and a range, inputs and outputs agree with the signature.
void verify(const Program& program);

}  // namespace transporters
