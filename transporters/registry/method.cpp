#include "transporters/registry/method.h"

#include <map>
#include <mutex>
#include <unordered_map>

#include "transporters/error.h"

namespace transporters {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, MethodBase*> methods;
};

// Made on first use: methods at namespace scope enter it before main.
Table& table() {
  static Table* made = new Table();
  return *made;
}

// Methods are few and patched ones fewer: empty almost always.
thread_local std::unordered_map<const MethodBase*, std::shared_ptr<void>> replacements;

}  // namespace

MethodBase::MethodBase(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(table().mutex);
  if (!table().methods.emplace(path_, this).second) throw InternalError("two methods are called '" + path_ + "'");
}

MethodBase::~MethodBase() {
  const std::lock_guard lock(table().mutex);
  table().methods.erase(path_);
}

MethodBase* MethodBase::find(const std::string& path) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().methods.find(path);
  return found == table().methods.end() ? nullptr : found->second;
}

std::vector<std::string> MethodBase::paths() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::string> paths;
  for (const auto& [path, method] : table().methods) paths.push_back(path);
  return paths;
}

const std::shared_ptr<void>& MethodBase::replacement() const {
  static const std::shared_ptr<void> kNone;
  if (replacements.empty()) return kNone;
  const auto found = replacements.find(this);
  return found == replacements.end() ? kNone : found->second;
}

void MethodBase::set_replacement(std::shared_ptr<void> replacement) {
  if (replacement) {
    replacements[this] = std::move(replacement);
  } else {
    replacements.erase(this);
  }
}

}  // namespace transporters
