// Embeddings and one-hot vectors.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types embedding(const Node& node, ShapeEnv& env) {
  const auto& weight = input(node, "weight");
  const auto& indices = input(node, "indices");
  check_rank(node, "weight", weight, {2});
  check(indices.dtype == ScalarType::Long || indices.dtype == ScalarType::Int, node,
        "expected indices of int64 or int32, got " + describe(indices));
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return one(weight.dtype, sizes);
}

// -> output, offset2bag, bag_size, max_indices. Bags start at `offsets`; the last offset can be an end.
Types embedding_bag(const Node& node, ShapeEnv& env) {
  const auto& weight = input(node, "weight");
  const auto& indices = input(node, "indices");
  const auto& offsets = input(node, "offsets");
  check_rank(node, "weight", weight, {2});
  check_rank(node, "indices", indices, {1});
  check_rank(node, "offsets", offsets, {1});
  const bool include_last = flag(node, "include_last_offset");
  const Expr bags = include_last ? offsets.sizes[0] - 1 : offsets.sizes[0];
  constexpr int64_t kSum = 0, kMax = 2;
  const int64_t mode = integer(node, "mode", kSum);
  // The CPU kernel skips its book-keeping for plain sums where the row is contiguous.
  const bool forward_only_sum = mode == kSum;
  const ValueType offset_to_bag = tensor(indices.dtype, {forward_only_sum ? Expr(0) : indices.sizes[0]});
  const ValueType bag_size = tensor(indices.dtype, {bags});
  const ValueType max_indices =
      mode == kMax ? tensor(indices.dtype, {bags, weight.sizes[1]}) : tensor(indices.dtype, {bags});
  return {tensor(weight.dtype, {bags, weight.sizes[1]}), offset_to_bag, bag_size, max_indices};
}

Types one_hot(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check(self.dtype == ScalarType::Long, node, "expected classes of int64, got " + describe(self));
  const Expr classes = node.size("num_classes");
  Sizes sizes = self.sizes;
  // -1: the greatest class plus one, which the data decides.
  sizes.push_back(classes.is(-1) ? unbacked_size(node, env, Range::kInfinity) : classes);
  return one(ScalarType::Long, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::embedding", embedding},
    {"aten::embedding_bag", embedding_bag},
    {"aten::_embedding_bag", embedding_bag},
    {"aten::_embedding_bag_forward_only", embedding_bag},
    {"aten::embedding_renorm", same_as_input},
    {"aten::one_hot", one_hot},
};

}  // namespace

std::span<const ShapeRuleRow> embedding_rules() { return kRows; }

}  // namespace transporters::shape_rules
