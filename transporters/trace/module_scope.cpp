#include "transporters/trace/module_scope.h"

namespace transporters {
namespace {

thread_local const std::string* current = nullptr;

}  // namespace

ModuleScope::ModuleScope(const std::string& path) : outer_(current) { current = &path; }

ModuleScope::~ModuleScope() { current = outer_; }

std::string current_module_path() { return current == nullptr ? "" : *current; }

}  // namespace transporters
