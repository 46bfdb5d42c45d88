#include "transporters/passes/eliminate_dead_code.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "transporters/graph/symbol_sources.h"

namespace transporters {
namespace {

class Eliminator {
 public:
  explicit Eliminator(Program& program) : program_(program), graph_(*program.graph) {}

  bool run() {
    for (const auto& [symbol, source] : find_symbol_sources(program_))
      if (source.value->producer() != nullptr) computed_[source.value->producer()].push_back(symbol);
    for (const auto* output : graph_.outputs()) need(symbols_of(output->type()));
    for (const auto& output : program_.outputs) need(symbols_of(output.constant));
    bool changed = erase_nodes();
    changed |= erase_state();
    changed |= erase_symbols();
    return changed;
  }

 private:
  void need(const std::vector<std::string>& symbols) { needed_.insert(symbols.begin(), symbols.end()); }

  bool is_dead(const Node& node) const {
    if (node.schema().has_side_effects()) return false;
    for (const auto* output : node.outputs())
      if (!output->uses().empty() || graph_.is_output(output)) return false;
    const auto computed = computed_.find(&node);
    return computed == computed_.end() ||
           std::none_of(computed->second.begin(), computed->second.end(),
                        [&](const std::string& symbol) { return needed_.contains(symbol); });
  }

  // From the end: all readers of a node have been seen when its turn comes.
  bool erase_nodes() {
    bool changed = false;
    std::vector<Node*> nodes;
    for (auto& node : graph_) nodes.push_back(&node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (is_dead(**node)) {
        graph_.erase(*node);
        changed = true;
        continue;
      }
      for (const auto& argument : (*node)->arguments()) need(symbols_of(argument.value));
      for (const auto* output : (*node)->outputs()) need(symbols_of(output->type()));
    }
    return changed;
  }

  bool is_mutated(const InputSpec& input) const {
    return input.kind == InputKind::Buffer &&
           std::any_of(program_.outputs.begin(), program_.outputs.end(), [&](const auto& output) {
             return output.kind == OutputKind::BufferMutation && output.target == input.target;
           });
  }

  bool erase_state() {
    std::vector<Value*> unused;
    for (const auto& input : program_.inputs)
      if (input.kind != InputKind::UserInput && input.value->uses().empty() && !graph_.is_output(input.value) &&
          !is_mutated(input))
        unused.push_back(input.value);
    for (auto* value : unused) program_.erase_input(value);
    return !unused.empty();
  }

  bool erase_symbols() {
    for (const auto* input : graph_.inputs()) need(symbols_of(input->type()));
    const auto unused = [&](const auto& entry) { return !needed_.contains(entry.first); };
    const size_t ranges = std::erase_if(program_.ranges, unused);
    const size_t hints = std::erase_if(program_.hints, unused);
    return ranges + hints > 0;
  }

  Program& program_;
  Graph& graph_;
  std::unordered_map<const Node*, std::vector<std::string>> computed_;  // symbols whose value a node gives
  std::set<std::string> needed_;                                        // symbols that what is alive mentions
};

}  // namespace

bool eliminate_dead_code(Program& program) { return Eliminator(program).run(); }

}  // namespace transporters
