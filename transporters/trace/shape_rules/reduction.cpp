// Reductions over dims.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Sizes reduced(const Sizes& sizes, const std::vector<bool>& mask, bool keepdim) {
  Sizes result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!mask[i]) {
      result.push_back(sizes[i]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

// The sizes after reducing `dim`, which can be a number, a list or absent.
Sizes reduced_sizes(const Node& node, const TensorType& self) {
  return reduced(self.sizes, dim_mask(node, "dim", self.rank()), flag(node, "keepdim"));
}

Types reduced_as(const Node& node, ScalarType dtype) { return one(dtype, reduced_sizes(node, input(node, 0))); }

// sum, prod, nansum: integers become int64.
Types sum(const Node& node, ShapeEnv& env) {
  return reduced_as(node, dtype_or(node, "dtype", sum_dtype(input(node, 0).dtype)));
}

Types mean(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const ScalarType dtype = dtype_or(node, "dtype", self.dtype);
  check(!c10::isIntegralType(dtype, true), node,
        "expected floating-point numbers or a floating-point dtype, got " + describe(self));
  return reduced_as(node, dtype);
}

// amax, amin: the dtype stays.
Types extremum(const Node& node, ShapeEnv& env) { return reduced_as(node, input(node, 0).dtype); }

// max, min, median: with a dim also the indices.
Types extremum_with_indices(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  if (!node.schema().find("dim")) return one(self.dtype, {});
  const Sizes sizes = reduced_sizes(node, self);
  return {tensor(self.dtype, sizes), tensor(ScalarType::Long, sizes)};
}

Types aminmax(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Sizes sizes = reduced_sizes(node, self);
  return {tensor(self.dtype, sizes), tensor(self.dtype, sizes)};
}

Types aminmax_of_all(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return {tensor(self.dtype, {}), tensor(self.dtype, {})};
}

// argmax, argmin: without a dim the index into the flattened tensor; keepdim keeps every dim then.
Types index_of_extremum(const Node& node, ShapeEnv& env) { return reduced_as(node, ScalarType::Long); }

// all, any: booleans, but bytes stay bytes.
Types test(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return reduced_as(node, self.dtype == ScalarType::Byte ? ScalarType::Byte : ScalarType::Bool);
}

Types test_of_all(const Node& node, ShapeEnv& env) { return one(ScalarType::Bool, {}); }

Types count_nonzero(const Node& node, ShapeEnv& env) { return reduced_as(node, ScalarType::Long); }

ScalarType spread_dtype(const Node& node) {
  const auto& self = input(node, 0);
  check(!c10::isIntegralType(self.dtype, true), node, "expected floating-point numbers, got " + describe(self));
  return to_real_dtype(self.dtype);
}

// std, var: real also for complex numbers.
Types spread(const Node& node, ShapeEnv& env) { return reduced_as(node, spread_dtype(node)); }

Types spread_and_mean(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Sizes sizes = reduced_sizes(node, self);
  return {tensor(spread_dtype(node), sizes), tensor(self.dtype, sizes)};
}

Types logsumexp(const Node& node, ShapeEnv& env) { return reduced_as(node, to_floating(input(node, 0).dtype)); }

// norm, linalg_vector_norm: real also for complex numbers and for a complex dtype.
Types norm(const Node& node, ShapeEnv& env) {
  return reduced_as(node, to_real_dtype(dtype_or(node, "dtype", input(node, 0).dtype)));
}

// The two dims of a matrix norm; the last two by default.
Types matrix_norm(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check_rank_at_least(node, "self", self, 2);
  std::vector<bool> mask(self.rank(), false);
  const auto dims = dim_list(node, "dim", self.rank());
  check((dims.size() == 2 && dims[0] != dims[1]) || (dims.empty() && self.rank() == 2), node,
        "expected two different dims");
  for (const size_t d : dims) mask[d] = true;
  if (dims.empty()) mask.assign(2, true);
  return one(to_real_dtype(dtype_or(node, "dtype", self.dtype)), reduced(self.sizes, mask, flag(node, "keepdim")));
}

Types kthvalue(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Sizes sizes = reduced_sizes(node, self);
  return {tensor(self.dtype, sizes), tensor(ScalarType::Long, sizes)};
}

// quantile(self, q, dim, keepdim): one result a quantile, in a new first dim when q is a vector.
Types quantile(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  Sizes sizes = reduced_sizes(node, self);
  const Sizes quantiles = operand_sizes(node.get("q"));
  sizes.insert(sizes.begin(), quantiles.begin(), quantiles.end());
  return one(self.dtype, sizes);
}

Types trace(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check_rank(node, "self", self, {2});
  return one(sum_dtype(self.dtype), {});
}

// sum_to_size: dims that broadcasting added or spread are summed away.
Types sum_to_size(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Sizes sizes = node.sizes("size");
  check(sizes.size() <= self.rank(), node, "expected sizes that broadcast to " + describe(self));
  return one(self.dtype, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::sum", sum},
    {"aten::nansum", sum},
    {"aten::prod", sum},
    {"aten::mean", mean},
    {"aten::nanmean", mean},
    {"aten::amax", extremum},
    {"aten::amin", extremum},
    {"aten::max", extremum_with_indices},
    {"aten::min", extremum_with_indices},
    {"aten::median", extremum_with_indices},
    {"aten::nanmedian", extremum_with_indices},
    {"aten::mode", kthvalue},
    {"aten::kthvalue", kthvalue},
    {"aten::aminmax", aminmax},
    {"aten::_aminmax", aminmax_of_all},
    {"aten::_aminmax.dim", aminmax},
    {"aten::argmax", index_of_extremum},
    {"aten::argmin", index_of_extremum},
    {"aten::all", test},
    {"aten::any", test},
    {"aten::_is_all_true", test_of_all},
    {"aten::_is_any_true", test_of_all},
    {"aten::count_nonzero", count_nonzero},
    {"aten::std", spread},
    {"aten::var", spread},
    {"aten::std_mean", spread_and_mean},
    {"aten::var_mean", spread_and_mean},
    {"aten::logsumexp", logsumexp},
    {"aten::special_logsumexp", logsumexp},
    {"aten::norm", norm},
    {"aten::native_norm", norm},
    {"aten::frobenius_norm", norm},
    {"aten::linalg_vector_norm", norm},
    {"aten::linalg_norm", norm},
    {"aten::linalg_matrix_norm", matrix_norm},
    {"aten::nuclear_norm", matrix_norm},
    {"aten::quantile", quantile},
    {"aten::nanquantile", quantile},
    {"aten::trace", trace},
    {"aten::sum_to_size", sum_to_size},
};

}  // namespace

std::span<const ShapeRuleRow> reduction_rules() { return kRows; }

}  // namespace transporters::shape_rules
