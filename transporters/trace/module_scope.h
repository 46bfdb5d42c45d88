// Which module runs now: models say it, the tracer writes it into each node.
#pragma once

#include <string>

namespace transporters {

// While it lives, current_module_path() is `path` ("model.layers.0.self_attn") on this thread.
class ModuleScope {
 public:
  // `path` must outlive the scope.
  explicit ModuleScope(const std::string& path);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  const std::string* outer_;
};

// "" outside of every module.
std::string current_module_path();

}  // namespace transporters
