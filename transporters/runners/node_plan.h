// One node made ready to run: its operator, its constants as IValues, and where its values lie.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "transporters/graph/graph.h"
#include "transporters/runners/symbol_values.h"

namespace transporters {

// Place of each value among a run's registers.
using Slots = std::unordered_map<const Value*, size_t>;
using Registers = std::vector<c10::IValue>;

class NodePlan {
 public:
  NodePlan(const Node& node, const Slots& slots, SymbolValues& symbols);

  // Runs the op and stores its outputs. Throws Error naming op, module and the inputs' types when the op fails.
  void run(Registers& registers, SymbolValues& symbols, std::vector<c10::IValue>& stack) const;
  // Its outputs, between run() and release().
  std::vector<c10::IValue> outputs(const Registers& registers) const;
  // Frees what no later node reads.
  void release(Registers& registers) const;

  // Registers that no later node reads.
  std::vector<size_t> last_uses;
  // Whether the next runs write into the first argument, where find_in_place() found an op for that.
  bool is_in_place = false;
  // Looks for the op that writes its result into its first argument ("aten::index_copy_"); false when there is none.
  bool find_in_place();
  // The register that the first argument is read from.
  std::optional<size_t> first_input() const;

 private:
  enum class Source : uint8_t { Constant, Slot, Slots, OptionalSlots, Expr, Exprs };
  struct Input {
    Source source = Source::Constant;
    ArgumentKind kind = ArgumentKind::Other;
    c10::IValue constant;
    std::vector<std::ptrdiff_t> slots;  // -1 for None in a list
    std::vector<size_t> exprs;
  };

  Input input(const Argument& argument, ArgumentKind kind, const c10::Argument& schema, const Slots& slots,
              SymbolValues& symbols) const;
  c10::IValue read(const Input& input, const Registers& registers, SymbolValues& symbols) const;
  void store(Registers& registers, SymbolValues& symbols, std::vector<c10::IValue>& stack) const;
  std::string describe(const Registers& registers) const;

  c10::OperatorHandle op_;
  std::optional<c10::OperatorHandle> in_place_op_;
  ErrorContext context_;
  std::vector<Input> inputs_;
  std::vector<size_t> outputs_;
  std::vector<std::string> output_names_;
  std::vector<const std::vector<SymbolBinding>*> bindings_;  // one per output
  bool list_output_ = false;
};

}  // namespace transporters
