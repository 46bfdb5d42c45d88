#include <nlohmann/json.hpp>

#include "transporters/dynamo/pickle_reader.h"
#include "transporters/dynamo/sample_inputs.h"
#include "transporters/error.h"
#include "transporters/json_depth.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 100;

// Raised inside when the values do not have the structure that the tree spec describes.
struct Mismatch {};

const PickleValue* find(const PickleDict& dict, const std::string& key) {
  for (const auto& [name, value] : dict)
    if (const auto* text = name.get_if<std::string>(); text != nullptr && *text == key) return &value;
  return nullptr;
}

// The leaves of an object that a context of transformers describes (see sample_inputs_writer.cpp), by index.
void object_leaves(const Json& context, const PickleValue& value, std::vector<const PickleValue*>& leaves, int depth) {
  if (depth > kMaxDepth) throw Mismatch();
  if (context.is_array()) {
    const PickleList* list = value.list();
    if (list == nullptr || list->size() != context.size()) throw Mismatch();
    for (size_t i = 0; i < list->size(); ++i) object_leaves(context[i], (*list)[i], leaves, depth + 1);
    return;
  }
  if (!context.is_object()) return;
  const Json tag = context.value("_t", Json());
  if (tag == "tensor" || tag == "sym") {
    const Json index = context.value("i", Json());
    if (!index.is_number_unsigned() || index.get<size_t>() >= leaves.size()) throw Mismatch();
    leaves[index.get<size_t>()] = &value;
    return;
  }
  const Json* members = tag == "obj" && context.contains("s") ? &context["s"] : tag.is_null() ? &context : nullptr;
  if (members == nullptr || !members->is_object()) return;
  const PickleValue* holder = &value;
  if (const PickleObject* object = value.object()) holder = object->state.get();
  const PickleDict* dict = holder == nullptr ? nullptr : holder->dict();
  if (dict == nullptr) throw Mismatch();
  for (const auto& [key, inner] : members->items())
    if (const PickleValue* member = find(*dict, key)) object_leaves(inner, *member, leaves, depth + 1);
}

Json parse_context(const TreeSpec& spec) {
  if (json_nests_too_deep(spec.context)) throw Mismatch();
  return Json::parse(spec.context, nullptr, /*allow_exceptions=*/false);
}

void flatten(const TreeSpec& spec, const PickleValue& value, std::vector<const PickleValue*>& leaves) {
  if (spec.is_leaf()) {
    leaves.push_back(&value);
    return;
  }
  if (const PickleList* list = value.list()) {
    if (list->size() != spec.children.size()) throw Mismatch();
    for (size_t i = 0; i < list->size(); ++i) flatten(spec.children[i], (*list)[i], leaves);
    return;
  }
  if (const PickleDict* dict = value.dict()) {
    const Json keys = parse_context(spec);
    if (!keys.is_array() || keys.size() != spec.children.size()) throw Mismatch();
    for (size_t i = 0; i < spec.children.size(); ++i) {
      const PickleValue* element = keys[i].is_string() ? find(*dict, keys[i].get<std::string>()) : nullptr;
      if (element == nullptr) throw Mismatch();
      flatten(spec.children[i], *element, leaves);
    }
    return;
  }
  std::vector<const PickleValue*> found(spec.children.size(), nullptr);
  object_leaves(parse_context(spec), value, found, 0);
  for (const PickleValue* leaf : found) {
    if (leaf == nullptr) throw Mismatch();
    leaves.push_back(leaf);
  }
}

}  // namespace

std::vector<ExampleInput> read_sample_inputs(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                             const Program& program) {
  std::vector<ExampleInput> examples;
  try {
    const PickleValue root = read_pickle_archive(bytes, owner, "sample inputs");
    std::vector<const PickleValue*> leaves;
    flatten(program.in_spec, root, leaves);
    size_t next = 0;
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputKind::UserInput) continue;
      const PickleValue& leaf = *leaves.at(next++);
      if (input.value == nullptr || !input.value->is_tensor()) continue;
      examples.push_back({input.target, leaf.tensor(input.target)});
    }
  } catch (const Mismatch&) {
    return {};
  } catch (const Error&) {  // examples are a help, a program runs without them
    return {};
  }
  return examples;
}

}  // namespace transporters::dynamo
