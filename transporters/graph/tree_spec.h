// How a caller's nested inputs and outputs flatten into tensors: torch.utils._pytree's TreeSpec, for the kinds that
// exports carry. Its JSON form is the one `treespec_dumps` writes (protocol 1).
#pragma once

#include <string>
#include <vector>

namespace transporters {

struct TreeSpec {
  // Python type as treespec_dumps names it ("builtins.tuple", "builtins.dict",
  // "transformers.modeling_outputs.CausalLMOutputWithPast", "transformers.cache_utils:DynamicCache"); empty for a leaf.
  std::string type;
  // The node's context as JSON text: "null", "[\"input_ids\"]", ...
  std::string context = "null";
  std::vector<TreeSpec> children;

  static TreeSpec leaf() { return {}; }
  static TreeSpec tuple(std::vector<TreeSpec> children);
  static TreeSpec list(std::vector<TreeSpec> children);
  static TreeSpec dict(const std::vector<std::string>& keys, std::vector<TreeSpec> children);

  bool is_leaf() const { return type.empty(); }
  size_t num_leaves() const;
  std::string dumps() const;
  static TreeSpec loads(const std::string& json);  // throws Error
  bool operator==(const TreeSpec&) const = default;
};

}  // namespace transporters
