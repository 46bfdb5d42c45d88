#include "transporters/graph/schema.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "transporters/error.h"
#include "transporters/graph/ivalue_torch.h"

namespace transporters {
namespace {

ArgumentKind element_kind(ArgumentKind element) {
  switch (element) {
    case ArgumentKind::Tensor:
      return ArgumentKind::TensorList;
    case ArgumentKind::Int:
      return ArgumentKind::IntList;
    case ArgumentKind::Float:
      return ArgumentKind::FloatList;
    case ArgumentKind::Bool:
      return ArgumentKind::BoolList;
    case ArgumentKind::String:
      return ArgumentKind::StringList;
    default:
      return ArgumentKind::Other;
  }
}

// `type` is a schema's real type, where ScalarType, Layout and SymInt have not become int yet.
ArgumentKind kind_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::Tensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ArgumentKind::Int;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return ArgumentKind::Float;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return ArgumentKind::Bool;
    case c10::TypeKind::NumberType:
      return ArgumentKind::Scalar;
    case c10::TypeKind::StringType:
      return ArgumentKind::String;
    case c10::TypeKind::ScalarTypeType:
      return ArgumentKind::ScalarType;
    case c10::TypeKind::LayoutType:
      return ArgumentKind::Layout;
    case c10::TypeKind::MemoryFormatType:
      return ArgumentKind::MemoryFormat;
    case c10::TypeKind::DeviceObjType:
      return ArgumentKind::Device;
    case c10::TypeKind::OptionalType:
      return kind_of(*type.expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType: {
      const auto& element = *type.expectRef<c10::ListType>().getElementType();
      if (element.kind() == c10::TypeKind::OptionalType)
        return kind_of(element) == ArgumentKind::Tensor ? ArgumentKind::OptionalTensorList : ArgumentKind::Other;
      return element_kind(kind_of(element));
    }
    default:
      return ArgumentKind::Other;
  }
}

std::string alias_set(const c10::AliasInfo* info) {
  if (info == nullptr) return "";
  // The set is unordered; an argument of an ATen schema has one name in it.
  std::string name;
  for (const auto& symbol : info->beforeSets()) {
    const std::string text = symbol.toUnqualString();
    if (name.empty() || text < name) name = text;
  }
  // Tensor(a)[]: the set belongs to the elements.
  if (name.empty() && !info->containedTypes().empty()) return alias_set(&info->containedTypes().front());
  return name;
}

OpSchema read_schema(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OpSchema result;
  result.name = schema.name();
  if (!schema.overload_name().empty()) result.name += "." + schema.overload_name();
  for (const auto& argument : schema.arguments()) {
    SchemaArgument row;
    row.name = argument.name();
    row.kind = kind_of(*argument.real_type());
    row.optional = argument.real_type()->kind() == c10::TypeKind::OptionalType;
    row.keyword_only = argument.kwarg_only();
    row.is_write = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    row.alias_set = alias_set(argument.alias_info());
    if (argument.default_value()) row.default_value = to_argument(*argument.default_value(), row.kind);
    result.arguments.push_back(std::move(row));
  }
  for (const auto& value : schema.returns())
    result.returns.push_back({kind_of(*value.real_type()), alias_set(value.alias_info()),
                              value.alias_info() != nullptr && value.alias_info()->isWrite()});
  result.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  return result;
}

c10::OperatorName operator_name(std::string_view op) {
  const auto colons = op.find("::");
  const auto dot = op.find('.', colons == std::string_view::npos ? 0 : colons);
  return {std::string(op.substr(0, dot)), dot == std::string_view::npos ? "" : std::string(op.substr(dot + 1))};
}

// Schemas by name, filled on first use; never erased, so that references stay valid.
class Cache {
 public:
  const OpSchema* find(std::string_view op) {
    std::string key(op);
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = schemas_.find(key); found != schemas_.end()) return found->second.get();
    }
    const auto handle = c10::Dispatcher::singleton().findSchema(operator_name(op));
    if (!handle) return nullptr;
    auto schema = std::make_unique<OpSchema>(read_schema(*handle));
    const std::unique_lock lock(mutex_);
    return schemas_.try_emplace(std::move(key), std::move(schema)).first->second.get();
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<OpSchema>> schemas_;
};

// "; its overloads are ..." for a known op with another overload, else names near the wanted one.
std::string suggestions(std::string_view op) {
  const std::string wanted = operator_name(op).name;
  std::set<std::string> overloads, names;
  for (const auto& known : c10::Dispatcher::singleton().getAllOpNames()) {
    names.insert(known.name);
    if (known.name == wanted)
      overloads.insert(known.overload_name.empty() ? known.name : known.name + "." + known.overload_name);
  }
  if (overloads.empty()) return did_you_mean(wanted, {names.begin(), names.end()});
  std::string text;
  for (const auto& overload : overloads) text += (text.empty() ? "; its overloads are '" : ", '") + overload + "'";
  return text;
}

}  // namespace

std::string_view OpSchema::base_name() const {
  const auto colons = name.find("::");
  const auto dot = name.find('.', colons == std::string::npos ? 0 : colons);
  return std::string_view(name).substr(0, dot);
}

std::string_view OpSchema::overload() const {
  const size_t size = base_name().size();
  return size == name.size() ? std::string_view() : std::string_view(name).substr(size + 1);
}

std::optional<size_t> OpSchema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument) return i;
  return std::nullopt;
}

bool OpSchema::is_mutable() const {
  return std::any_of(arguments.begin(), arguments.end(), [](const auto& argument) { return argument.is_write; });
}

bool OpSchema::is_view() const {
  return !is_mutable() &&
         std::any_of(returns.begin(), returns.end(), [](const auto& value) { return !value.alias_set.empty(); });
}

bool OpSchema::has_side_effects() const {
  if (returns.empty() || is_mutable()) return true;
  const std::string_view base = base_name();
  return base.starts_with("aten::_functional_assert") || base.starts_with("aten::_functional_sym_constrain");
}

const OpSchema* find_schema(std::string_view op) {
  static Cache cache;
  return cache.find(op);
}

const OpSchema& get_schema(std::string_view op) {
  if (const auto* schema = find_schema(op)) return *schema;
  throw Error("unknown op '" + std::string(op) + "'" + suggestions(op));
}

}  // namespace transporters
