// Elements picked by tensors of indices: index, gather, take, index_select, and searches that give indices.
#include <algorithm>

#include "transporters/trace/shape_rules/index_sizes.h"
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

bool is_mask(const TensorType& type) { return type.dtype == ScalarType::Bool || type.dtype == ScalarType::Byte; }

}  // namespace

Sizes indexed_sizes(const Node& node, const TensorType& self, const std::vector<const TensorType*>& indices,
                    ShapeEnv& env) {
  // A mask over k dims stands for k index vectors, as long as it has true elements.
  Sizes index_sizes;
  size_t d = 0;
  size_t first = 0, last = 0;
  bool any = false, adjacent = true;
  std::vector<bool> indexed(self.rank(), false);
  for (const auto* index : indices) {
    const size_t width = index && is_mask(*index) ? index->rank() : 1;
    check(d + width <= self.rank(), node, "too many indices for " + describe(self));
    if (!index) {
      d += 1;
      continue;
    }
    check(is_mask(*index) || index->dtype == ScalarType::Long || index->dtype == ScalarType::Int, node,
          "expected indices of int64, int32, bool or uint8, got " + describe(*index));
    Sizes sizes = index->sizes;
    if (is_mask(*index)) {
      for (size_t i = 0; i < width; ++i) {
        common_size(node, self.sizes[d + i], index->sizes[i], env,
                    "expected a mask of the sizes it indexes, got " + describe(*index) + " for " + describe(self));
      }
      sizes = {unbacked_size(node, env, numel(index->sizes))};
    }
    if (any && d != last) adjacent = false;
    if (!any) first = d;
    any = true;
    for (size_t i = 0; i < width; ++i) indexed[d + i] = true;
    d += width;
    last = d;
    index_sizes = broadcast(index_sizes, sizes, env);
  }
  if (!any) return self.sizes;

  // The indices' dims take the place of the indexed ones, or come first when these are apart.
  Sizes result;
  const size_t position = adjacent ? first : 0;
  for (size_t i = 0; i <= self.rank(); ++i) {
    if (i == position) result.insert(result.end(), index_sizes.begin(), index_sizes.end());
    if (i < self.rank() && !indexed[i]) result.push_back(self.sizes[i]);
  }
  return result;
}

namespace {

Types index(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(self.dtype, indexed_sizes(node, self, inputs(node, "indices"), env));
}

// _unsafe_masked_index(self, mask, indices, fill): indices outside are masked.
Types masked_index(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Sizes sizes = indexed_sizes(node, self, inputs(node, "indices"), env);
  return one(self.dtype, broadcast(sizes, input(node, "mask").sizes, env));
}

void check_index(const Node& node, const TensorType& index) {
  check(index.dtype == ScalarType::Long || index.dtype == ScalarType::Int, node,
        "expected indices of int64 or int32, got " + describe(index));
}

Types index_select(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& index = input(node, "index");
  check_rank(node, "index", index, {0, 1});
  check_index(node, index);
  if (self.rank() == 0) return one(self.dtype, {});
  Sizes sizes = self.sizes;
  sizes[dim(node, "dim", self.rank())] = numel(index.sizes);
  return one(self.dtype, sizes);
}

Types gather(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& index = input(node, "index");
  const auto rank_of = [](const TensorType& type) { return std::max<size_t>(type.rank(), 1); };
  check_index(node, index);
  dim(node, "dim", self.rank());
  check(rank_of(self) == rank_of(index) || is_zero(numel(index.sizes), env), node,
        "expected self and index of one rank, got " + describe(self) + " and " + describe(index));
  return one(self.dtype, index.sizes);
}

Types take(const Node& node, ShapeEnv& env) {
  const auto& index = input(node, "index");
  return one(input(node, "self").dtype, index.sizes);
}

// take_along_dim broadcasts the other dims; without a dim both are flat.
Types take_along_dim(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& indices = input(node, "indices");
  if (!has(node, "dim")) return one(self.dtype, {numel(indices.sizes)});
  check(self.rank() == indices.rank(), node,
        "expected self and indices of one rank, got " + describe(self) + " and " + describe(indices));
  const size_t d = dim(node, "dim", self.rank());
  Sizes sizes = indices.sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i != d) sizes[i] = broadcast({self.sizes[i]}, {indices.sizes[i]}, env)[0];
  }
  return one(self.dtype, sizes);
}

// ── Searches ──

ScalarType index_dtype(const Node& node) { return flag(node, "out_int32") ? ScalarType::Int : ScalarType::Long; }

// searchsorted(sorted_sequence, self), bucketize(self, boundaries): one index a searched value.
Types searched(const Node& node, ShapeEnv& env) { return one(index_dtype(node), operand_sizes(node.get("self"))); }

constexpr ShapeRuleRow kRows[] = {
    {"aten::index.Tensor", index},
    {"aten::_unsafe_index", index},
    {"aten::_unsafe_masked_index", masked_index},
    {"aten::index_select", index_select},
    {"aten::gather", gather},
    {"aten::take", take},
    {"aten::take_along_dim", take_along_dim},
    {"aten::searchsorted", searched},
    {"aten::bucketize", searched},
};

}  // namespace

std::span<const ShapeRuleRow> indexing_rules() { return kRows; }

}  // namespace transporters::shape_rules
