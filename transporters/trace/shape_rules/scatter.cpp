// Writes of elements or parts into a copy of a tensor: self's dtype and sizes.
#include <algorithm>

#include "transporters/trace/shape_rules/index_sizes.h"
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types index_put(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& values = input(node, "values");
  const auto indices = inputs(node, "indices");
  const bool has_mask = std::any_of(indices.begin(), indices.end(), [](const TensorType* index) {
    return index && (index->dtype == ScalarType::Bool || index->dtype == ScalarType::Byte);
  });
  // With a mask the number of places is the data's, and the op checks it when it runs.
  if (!has_mask) {
    const Sizes places = indexed_sizes(node, self, indices, env);
    check_expands(node, values.sizes, places, env, "expected values that broadcast to the indexed places");
  }
  return one(self.dtype, self.sizes);
}

// scatter, scatter_add, scatter_reduce, index_add, ...: `index` along `dim`.
Types along_dim(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& index = input(node, "index");
  dim(node, "dim", self.rank());
  check(index.dtype == ScalarType::Long || index.dtype == ScalarType::Int, node,
        "expected indices of int64 or int32, got " + describe(index));
  const auto* source = node.schema().find("src")      ? &input(node, "src")
                       : node.schema().find("source") ? &input(node, "source")
                                                      : nullptr;
  if (source) {
    check(source->dtype == self.dtype, node,
          "expected self and src of one dtype, got " + describe(self) + " and " + describe(*source));
  }
  return one(self.dtype, self.sizes);
}

Types masked_scatter(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& source = input(node, "source");
  check_same_dtype(node, self, source, "self", "source");
  return one(self.dtype, broadcast(self.sizes, input(node, "mask").sizes, env));
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::index_put", index_put},
    {"aten::_index_put_impl", index_put},
    {"aten::_unsafe_index_put", index_put},
    {"aten::_unsafe_masked_index_put_accumulate", same_as_input},
    {"aten::index_add", along_dim},
    {"aten::index_copy", along_dim},
    {"aten::index_fill", along_dim},
    {"aten::index_reduce", along_dim},
    {"aten::scatter", along_dim},
    {"aten::scatter_add", along_dim},
    {"aten::scatter_reduce", along_dim},
    {"aten::masked_scatter", masked_scatter},
    {"aten::put", same_as_input},
    {"aten::slice_scatter", same_as_input},
    {"aten::select_scatter", same_as_input},
    {"aten::diagonal_scatter", same_as_input},
    {"aten::as_strided_scatter", same_as_input},
};

}  // namespace

std::span<const ShapeRuleRow> scatter_rules() { return kRows; }

}  // namespace transporters::shape_rules
