// Functions of the native zoo that a patch can replace while an export runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

namespace transporters {

// A replaceable function under a dotted path ("layers.rope.apply_rotary"). Objects live at namespace scope and enter
// the table of methods when they are constructed.
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

  // What stands in for the method on this thread, or null. Exports on other threads see the original.
  const std::shared_ptr<void>& replacement() const;
  void set_replacement(std::shared_ptr<void> replacement);

 private:
  std::string path_;
};

template <typename Signature>
class Method;

template <typename Result, typename... Arguments>
class Method<Result(Arguments...)> final : public MethodBase {
 public:
  using Function = std::function<Result(Arguments...)>;
  using Factory = std::function<Function(Function original)>;

  Method(std::string path, Function original) : MethodBase(std::move(path)), original_(std::move(original)) {}

  Result operator()(Arguments... arguments) const {
    const std::shared_ptr<void> replacement = this->replacement();  // alive while it runs
    const Function& function = replacement ? *static_cast<const Function*>(replacement.get()) : original_;
    return function(std::forward<Arguments>(arguments)...);
  }
  std::type_index signature() const override { return typeid(Result(Arguments...)); }

  // Puts `factory(what runs now)` in place on this thread and returns what puts the former back.
  std::function<void()> patch(const Factory& factory) {
    const std::shared_ptr<void> before = replacement();
    set_replacement(
        std::make_shared<Function>(factory(before ? *static_cast<const Function*>(before.get()) : original_)));
    return [this, before] { set_replacement(before); };
  }

 private:
  Function original_;
};

}  // namespace transporters
