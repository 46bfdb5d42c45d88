#include "transporters/registry/registry.h"

#include <algorithm>
#include <mutex>

#include "transporters/error.h"
#include "transporters/fixes/all.h"
#include "transporters/graph/schema.h"
#include "transporters/patches/all.h"

namespace transporters {
namespace {

const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = {"dynamo", "onnx", "openvino", "executorch"};
  return names;
}

template <typename T>
struct Registered {
  RegistrationId id;
  std::string backend;
  std::string name;
  T value;
};

bool holds(const Graph& graph, const Node* node) {
  return std::any_of(graph.begin(), graph.end(), [node](const Node& other) { return &other == node; });
}

// Applies a node fix to every node. A fix may erase any of them: the walk goes on after the nearest one that is left.
bool for_each_node(Program& program, const NodeFix& fix) {
  const Graph& graph = *program.graph;
  bool changed = false;
  for (Node* node = graph.front(); node != nullptr;) {
    Node* const next = node->next();
    Node* const before = node->prev();
    if (!fix(program, *node)) {
      node = next;
      continue;
    }
    changed = true;
    if (next == nullptr || holds(graph, next))
      node = next;
    else if (holds(graph, node))
      node = node->next();
    else
      node = before != nullptr && holds(graph, before) ? before->next() : graph.front();
  }
  return changed;
}

}  // namespace

void check_backend(std::string_view backend) {
  if (std::find(backends().begin(), backends().end(), backend) != backends().end()) return;
  throw Error("unknown backend '" + std::string(backend) + "'" + did_you_mean(backend, backends()));
}

struct Registry::Entries {
  mutable std::mutex mutex;
  uint64_t next_id = 1;
  std::vector<Registered<OpPatchFactory>> op_patches;
  std::vector<Registered<MethodPatch>> method_patches;
  std::vector<Registered<NodeFix>> node_fixes;
  std::vector<Registered<ProgramFix>> program_fixes;
  std::vector<Registered<onnx::OnnxTranslation>> onnx_translations;
  std::vector<Registered<onnx::IrFix>> onnx_ir_fixes;

  template <typename List, typename Value>
  void add(List& list, RegistrationId id, std::string_view backend, std::string name, Value value) {
    list.push_back({id, std::string(backend), std::move(name), std::move(value)});
  }
  RegistrationId new_id() { return static_cast<RegistrationId>(next_id++); }
};

Registry::Registry() : entries_(std::make_unique<Entries>()) {}
Registry::~Registry() = default;

Registry& Registry::global() {
  static Registry* registry = [] {
    auto* made = new Registry();  // never destroyed: exports may run while the process ends
    register_builtin_patches(*made);
    register_builtin_fixes(*made);
    return made;
  }();
  return *registry;
}

RegistrationId Registry::register_patch(std::string_view backend, const std::vector<std::string>& paths,
                                        OpPatchFactory factory) {
  check_backend(backend);
  for (const std::string& path : paths) get_schema(path);
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  for (const std::string& path : paths) entries_->add(entries_->op_patches, id, backend, path, factory);
  return id;
}

MethodBase* Registry::find_method(const std::string& path, const std::type_info& signature) {
  MethodBase* method = MethodBase::find(path);
  if (method == nullptr)
    throw Error("there is no method '" + path + "' to patch" + did_you_mean(path, MethodBase::paths()) +
                " ('transporters list' names them)");
  if (method->signature() != std::type_index(signature))
    throw Error("method '" + path + "' has another signature than the patch");
  return method;
}

RegistrationId Registry::add_method_patches(std::string_view backend, std::vector<MethodPatch> patches) {
  check_backend(backend);
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  for (MethodPatch& patch : patches) {
    std::string path = patch.path;
    entries_->add(entries_->method_patches, id, backend, std::move(path), std::move(patch));
  }
  return id;
}

RegistrationId Registry::register_fx_node_fix(std::string_view backend, std::string name, NodeFix fix) {
  check_backend(backend);
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  entries_->add(entries_->node_fixes, id, backend, std::move(name), std::move(fix));
  return id;
}

RegistrationId Registry::register_fx_program_fix(std::string_view backend, std::string name, ProgramFix fix) {
  check_backend(backend);
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  entries_->add(entries_->program_fixes, id, backend, std::move(name), std::move(fix));
  return id;
}

void Registry::unregister(RegistrationId id) {
  const std::lock_guard lock(entries_->mutex);
  const auto drop = [&](auto& list) { std::erase_if(list, [&](const auto& entry) { return entry.id == id; }); };
  drop(entries_->op_patches);
  drop(entries_->method_patches);
  drop(entries_->node_fixes);
  drop(entries_->program_fixes);
  drop(entries_->onnx_translations);
  drop(entries_->onnx_ir_fixes);
}

std::vector<OpPatch> Registry::op_patches(std::string_view backend) const {
  const std::lock_guard lock(entries_->mutex);
  std::vector<OpPatch> patches;
  for (const auto& entry : entries_->op_patches)
    if (entry.backend == backend) patches.push_back({entry.name, entry.value});
  return patches;
}

std::vector<std::string> Registry::patch_paths(std::string_view backend) const {
  const std::lock_guard lock(entries_->mutex);
  std::vector<std::string> paths;
  for (const auto& entry : entries_->op_patches)
    if (entry.backend == backend) paths.push_back(entry.name);
  for (const auto& entry : entries_->method_patches)
    if (entry.backend == backend) paths.push_back(entry.name);
  return paths;
}

std::vector<Pass> Registry::program_fixes(std::string_view backend) const {
  const std::lock_guard lock(entries_->mutex);
  std::vector<Pass> passes;
  for (const auto& entry : entries_->program_fixes)
    if (entry.backend == backend) passes.push_back({entry.name, entry.value});
  return passes;
}

std::vector<Pass> Registry::node_fixes(std::string_view backend) const {
  const std::lock_guard lock(entries_->mutex);
  std::vector<Pass> passes;
  for (const auto& entry : entries_->node_fixes)
    if (entry.backend == backend)
      passes.push_back({entry.name, [fix = entry.value](Program& program) { return for_each_node(program, fix); }});
  return passes;
}

RegistrationId Registry::register_onnx_translation(const std::vector<std::string>& ops,
                                                   onnx::OnnxTranslation translation) {
  for (const std::string& op : ops)
    if (op.find("::") == std::string::npos)
      throw Error("'" + op + "' is no op name: expected namespace and name, as in 'aten::gelu'");
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  for (const std::string& op : ops) entries_->add(entries_->onnx_translations, id, "onnx", op, translation);
  return id;
}

RegistrationId Registry::register_onnx_ir_fix(std::string name, std::function<bool(onnx::Model&)> fix) {
  const std::lock_guard lock(entries_->mutex);
  const RegistrationId id = entries_->new_id();
  entries_->add(entries_->onnx_ir_fixes, id, "onnx", name, onnx::IrFix{name, "registered by the user", std::move(fix)});
  return id;
}

onnx::TranslationTable Registry::onnx_translations() const {
  const std::lock_guard lock(entries_->mutex);
  onnx::TranslationTable table;
  for (const auto& entry : entries_->onnx_translations) table[entry.name] = entry.value;  // the last one wins
  return table;
}

std::vector<onnx::IrFix> Registry::onnx_ir_fixes() const {
  const std::lock_guard lock(entries_->mutex);
  std::vector<onnx::IrFix> fixes;
  for (const auto& entry : entries_->onnx_ir_fixes) fixes.push_back(entry.value);
  return fixes;
}

MethodPatchScope::MethodPatchScope(const Registry& registry, const std::vector<std::string>& backends) {
  std::vector<Registry::MethodPatch> patches;
  {
    const std::lock_guard lock(registry.entries_->mutex);
    for (const auto& entry : registry.entries_->method_patches)
      if (std::find(backends.begin(), backends.end(), entry.backend) != backends.end()) patches.push_back(entry.value);
  }
  try {
    for (const auto& patch : patches) undo_.push_back(patch.apply());
  } catch (...) {
    restore();
    throw;
  }
}

MethodPatchScope::~MethodPatchScope() { restore(); }

void MethodPatchScope::restore() {
  for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) (*it)();
}

}  // namespace transporters
