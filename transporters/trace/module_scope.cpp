#include "transporters/trace/module_scope.h"

namespace transporters {
namespace {

thread_local std::string path;

}  // namespace

ModuleScope::ModuleScope(std::string_view name) : previous_length_(path.size()) {
  if (!path.empty() && !name.empty()) path += '.';
  path += name;
}

ModuleScope::~ModuleScope() { path.resize(previous_length_); }

const std::string& current_module_path() { return path; }

}  // namespace transporters
