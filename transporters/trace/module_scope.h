// Which module is running: a thread-local stack of names, so that every traced op knows its place in the model.
#pragma once

#include <string>
#include <string_view>

namespace transporters {

// Enters a module for the scope's lifetime. Names nest: "model" > "layers.0" gives "model.layers.0".
class ModuleScope {
 public:
  explicit ModuleScope(std::string_view name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  size_t previous_length_;
};

// Dotted path of the running module; empty at the root.
const std::string& current_module_path();

}  // namespace transporters
