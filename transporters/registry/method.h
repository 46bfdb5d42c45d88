// Functions of the native zoo that a patch can replace while an export runs.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "transporters/error.h"

namespace transporters {

// A replaceable function under a dotted path ("layers.rope.apply"). Objects live at namespace scope and enter the table
// of methods when they are constructed.
class MethodBase {
 public:
  const std::string& path() const { return path_; }
  virtual std::type_index signature() const = 0;

  // The method of that path, or null; and all paths, sorted.
  static MethodBase* find(const std::string& path);
  static std::vector<std::string> paths();

 protected:
  explicit MethodBase(std::string path);
  ~MethodBase();

 private:
  std::string path_;
};

template <typename Signature>
class Method;

template <typename Result, typename... Arguments>
class Method<Result(Arguments...)> final : public MethodBase {
 public:
  using Function = std::function<Result(Arguments...)>;

  Method(std::string path, Function original) : MethodBase(std::move(path)), current_(std::move(original)) {}

  Result operator()(Arguments... arguments) const { return current_(std::forward<Arguments>(arguments)...); }
  std::type_index signature() const override { return typeid(Result(Arguments...)); }

  const Function& current() const { return current_; }
  void set(Function function) { current_ = std::move(function); }

 private:
  Function current_;
};

}  // namespace transporters
