// Sizes and numbers that only the data knows: unbacked symbols with a range.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// One row of coordinates a true element.
Types nonzero(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Expr count = unbacked_size(node, env, numel(self.sizes));
  return one(ScalarType::Long, {count, static_cast<int64_t>(self.rank())});
}

// where(condition), nonzero_numpy: one vector of coordinates a dim; a 0-dim tensor counts as 1-D.
Types nonzero_per_dim(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Expr count = unbacked_size(node, env, numel(self.sizes));
  return Types(std::max<size_t>(self.rank(), 1), tensor(ScalarType::Long, {count}));
}

Types nonzero_static(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(ScalarType::Long, {node.size("size"), static_cast<int64_t>(self.rank())});
}

Types masked_select(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Sizes sizes = broadcast(self.sizes, input(node, "mask").sizes, env);
  return one(self.dtype, {unbacked_size(node, env, numel(sizes))});
}

// The number in a tensor of one element. Integers and booleans can become sizes; graphs have no real numbers of the
// data.
Types item(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  for (const auto& size : self.sizes) {
    check(is_one(size, env) || !size.is_constant(), node, "expected one element, got " + describe(self));
  }
  if (self.dtype == ScalarType::Bool) {
    return {NumberType{equal(env.add_unbacked(Range{0, 1}, node.op()), 1)}};
  }
  if (c10::isIntegralType(self.dtype, false)) {
    return {NumberType{env.add_unbacked(Range{Range::kMinusInfinity, Range::kInfinity}, node.op())}};
  }
  fail(node, "data-dependent: the code needs a plain number of " + describe(self) +
                 ", which is computed from the data; compute with the tensor itself in place of its item()");
}

// A yes or no about the data.
Types data_boolean(const Node& node, ShapeEnv& env) {
  return {NumberType{equal(env.add_unbacked(Range{0, 1}, node.op()), 1)}};
}

// ── Distinct elements ──

// unique over all elements -> values, inverse (self's sizes), counts
Types unique(const Node& node, const TensorType& self, const Expr& count) {
  const bool inverse = flag(node, "return_inverse"), counts = flag(node, "return_counts");
  Types types = {tensor(self.dtype, {count}), tensor(ScalarType::Long, inverse ? self.sizes : Sizes{0})};
  if (node.schema().returns.size() == 3) types.push_back(tensor(ScalarType::Long, {counts ? count : Expr(0)}));
  return types;
}

Types unique_elements(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return unique(node, self, unbacked_size(node, env, numel(self.sizes)));
}

// unique slices along a dim -> values, inverse (one a slice), counts; the kernels give the latter two unasked
Types unique_slices(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  if (!has(node, "dim")) return unique_elements(node, env);
  const size_t d = dim(node, "dim", self.rank());
  const Expr count = unbacked_size(node, env, self.sizes.at(d));
  Sizes sizes = self.sizes;
  sizes[d] = count;
  return {tensor(self.dtype, sizes), tensor(ScalarType::Long, {self.sizes[d]}), tensor(ScalarType::Long, {count})};
}

Types bincount(const Node& node, ShapeEnv& env) {
  const auto* weights = input_or_null(node, "weights");
  const ScalarType dtype = !weights                              ? ScalarType::Long
                           : weights->dtype == ScalarType::Float ? ScalarType::Float
                                                                 : ScalarType::Double;
  const Expr least = node.size("minlength");
  const Expr length = env.add_unbacked(Range{env.bounds(least).min, Range::kInfinity}, node.op());
  return one(dtype, {length});
}

Types histc(const Node& node, ShapeEnv& env) { return one(input(node, "self").dtype, {node.size("bins")}); }

// -> counts, edges: one edge more than bins, which are a number or the edges themselves
Types histogram(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto* edges = as_tensor(node.get("bins"));
  const Expr bins = edges ? edges->sizes.at(0) - 1 : node.size("bins");
  return {tensor(self.dtype, {bins}), tensor(self.dtype, {bins + 1})};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::nonzero", nonzero},
    {"aten::argwhere", nonzero},
    {"aten::nonzero_numpy", nonzero_per_dim},
    {"aten::where", nonzero_per_dim},
    {"aten::nonzero_static", nonzero_static},
    {"aten::masked_select", masked_select},
    {"aten::item", item},
    {"aten::_local_scalar_dense", item},
    {"aten::is_nonzero", data_boolean},
    {"aten::equal", data_boolean},
    {"aten::allclose", data_boolean},
    {"aten::_unique", unique_elements},
    {"aten::_unique2", unique_elements},
    {"aten::unique_dim", unique_slices},
    {"aten::unique_dim_consecutive", unique_slices},
    {"aten::unique_consecutive", unique_slices},
    {"aten::bincount", bincount},
    {"aten::histc", histc},
    {"aten::histogram", histogram},
};

}  // namespace

std::span<const ShapeRuleRow> data_dependent_rules() { return kRows; }

}  // namespace transporters::shape_rules
