// Which value of one graph is which value of another that should compute the same.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace transporters {

// A value as far as alignment looks at it.
struct AlignedValue {
  std::string module;  // dotted path of the module that makes it
  std::string kind;    // equal for values that may be the same: the op, or what the name says of it
  std::string name;

  // An output of the graph, by the name it has for callers: whatever makes it, it should be the same.
  static AlignedValue output(const std::string& target) { return {"", "output " + target, target}; }
  bool is_output() const { return kind.starts_with("output "); }
};

struct Alignment {
  // Places in the first and in the second graph, in the order of the first one.
  std::vector<std::pair<size_t, size_t>> pairs;
  // The graphs are one program: every value of the first has its namesake, of the same module and kind.
  bool by_name = false;
};

// Both lists are in execution order. Without namesakes, values of each module are matched in order by kind, as a diff
// matches lines.
Alignment align(std::span<const AlignedValue> first, std::span<const AlignedValue> second);

}  // namespace transporters
