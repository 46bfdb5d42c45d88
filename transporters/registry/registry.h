// What extends an export, by backend: reversible patches, in place while a model is traced; irreversible fixes of the
// traced graph; translations and fixes of the target's own form. Backends: "dynamo", "onnx", "openvino", "executorch".
// Every export starts with the patches of "dynamo".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/program.h"
#include "transporters/onnx/ir_fixes.h"
#include "transporters/onnx/lower.h"
#include "transporters/passes/pass.h"
#include "transporters/registry/method.h"
#include "transporters/registry/op_patch.h"

namespace transporters {

// Looks at one node and may rewrite the graph around it (insert, replace, erase nodes). Returns whether it did.
using NodeFix = std::function<bool(Program& program, Node& node)>;
// Rewrites a program. Returns whether it did.
using ProgramFix = std::function<bool(Program& program)>;

// Names one registration, to take it back.
enum class RegistrationId : uint64_t {};

class Registry {
 public:
  // The registry that exporters use, with the built-in patches and fixes.
  static Registry& global();

  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Replaces ATen ops ("aten::where.self") while tracing for `backend`. Throws Error for an unknown backend or op.
  RegistrationId register_patch(std::string_view backend, const std::vector<std::string>& paths,
                                OpPatchFactory factory);

  // Replaces methods of the native zoo ("layers.rope.apply"); `factory` receives the original. Throws Error for an
  // unknown path (with near names) or one of another signature.
  template <typename Signature>
  RegistrationId register_patch(std::string_view backend, const std::vector<std::string>& paths,
                                typename Method<Signature>::Factory factory) {
    std::vector<MethodPatch> patches;
    for (const std::string& path : paths) {
      auto* method = static_cast<Method<Signature>*>(find_method(path, typeid(Signature)));
      patches.push_back({path, [method, factory] { return method->patch(factory); }});
    }
    return add_method_patches(backend, std::move(patches));
  }

  // Applied to each node of the graph in order, before and again after decompositions.
  RegistrationId register_fx_node_fix(std::string_view backend, std::string name, NodeFix fix);
  // Applied to the whole program, before node fixes.
  RegistrationId register_fx_program_fix(std::string_view backend, std::string name, ProgramFix fix);
  // Says in ONNX what ops compute ("aten::add.Tensor", or "aten::add" for all its overloads, or an op of the user's
  // own); wins over the built-in translation. Throws Error for a name without namespace.
  RegistrationId register_onnx_translation(const std::vector<std::string>& ops, onnx::OnnxTranslation translation);
  // Applied to the ONNX model after the built-in fixes.
  RegistrationId register_onnx_ir_fix(std::string name, std::function<bool(onnx::Model&)> fix);
  // Takes a registration back; unknown ids are ignored.
  void unregister(RegistrationId id);

  std::vector<OpPatch> op_patches(std::string_view backend) const;
  std::vector<std::string> patch_paths(std::string_view backend) const;
  // Fixes as passes, for the pass driver.
  std::vector<Pass> program_fixes(std::string_view backend) const;
  std::vector<Pass> node_fixes(std::string_view backend) const;
  onnx::TranslationTable onnx_translations() const;
  std::vector<onnx::IrFix> onnx_ir_fixes() const;

 private:
  friend class MethodPatchScope;
  using Undo = std::function<void()>;
  struct MethodPatch {
    std::string path;
    std::function<Undo()> apply;
  };
  static MethodBase* find_method(const std::string& path, const std::type_info& signature);
  RegistrationId add_method_patches(std::string_view backend, std::vector<MethodPatch> patches);

  struct Entries;
  std::unique_ptr<Entries> entries_;
};

// Keeps the method patches of some backends in place on this thread for its lifetime; they come off in reverse order,
// also when an exception passes.
class MethodPatchScope {
 public:
  MethodPatchScope(const Registry& registry, const std::vector<std::string>& backends);
  ~MethodPatchScope();
  MethodPatchScope(const MethodPatchScope&) = delete;
  MethodPatchScope& operator=(const MethodPatchScope&) = delete;

 private:
  void restore();

  std::vector<std::function<void()>> undo_;
};

// Checks a backend's name. Throws Error with near names.
void check_backend(std::string_view backend);

}  // namespace transporters
