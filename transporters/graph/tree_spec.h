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
  // The node's context as its type serialises it, JSON text for most: "null", "[\"input_ids\"]", ...
  std::string context = "null";
  std::vector<TreeSpec> children;

  static TreeSpec leaf() { return {}; }
  static TreeSpec tuple(std::vector<TreeSpec> children);
  static TreeSpec list(std::vector<TreeSpec> children);
  static TreeSpec dict(const std::vector<std::string>& keys, std::vector<TreeSpec> children);

  bool is_leaf() const { return type.empty(); }
  size_t num_leaves() const;
  // Dotted path of each leaf, in order: "logits", "cache.layers.0.keys", "0". A leaf alone has the path "".
  // Steps are the names that the context gives (dict keys, fields of model outputs, attributes of cache objects), else
  // positions.
  std::vector<std::string> leaf_paths() const;

  // The JSON text that treespec_dumps(spec, 1) gives, byte for byte.
  std::string dumps() const;
  // Reads it back. Throws Error for text that is no protocol-1 tree.
  static TreeSpec loads(const std::string& json);
  bool operator==(const TreeSpec&) const = default;
};

}  // namespace transporters
