// Ops that give numbers about a tensor's shape or dtype, and asserts, which give nothing.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types number_of(Expr expr) { return {NumberType{std::move(expr)}}; }

Types size_at(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return number_of(self.sizes[dim(node, "dim", self.rank())]);
}

Types size_list(const Node& node, ShapeEnv& env) {
  Types types;
  for (const auto& size : input(node, "self").sizes) types.push_back(NumberType{size});
  return types;
}

Types stride_at(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return number_of(strides_of(self)[dim(node, "dim", self.rank())]);
}

Types stride_list(const Node& node, ShapeEnv& env) {
  Types types;
  for (const auto& stride : strides_of(input(node, "self"))) types.push_back(NumberType{stride});
  return types;
}

Types element_count(const Node& node, ShapeEnv& env) { return number_of(numel(input(node, "self").sizes)); }

Types rank_of(const Node& node, ShapeEnv& env) { return number_of(static_cast<int64_t>(input(node, "self").rank())); }

Types is_floating_point(const Node& node, ShapeEnv& env) {
  return number_of(Expr::boolean(c10::isFloatingType(input(node, "self").dtype)));
}

Types is_complex(const Node& node, ShapeEnv& env) {
  return number_of(Expr::boolean(c10::isComplexType(input(node, "self").dtype)));
}

Types is_signed(const Node& node, ShapeEnv& env) {
  const ScalarType dtype = input(node, "self").dtype;
  return number_of(Expr::boolean(dtype != ScalarType::Bool && c10::isSignedType(dtype)));
}

Types element_size(const Node& node, ShapeEnv& env) {
  return number_of(static_cast<int64_t>(c10::elementSize(input(node, "self").dtype)));
}

Types contiguity(const Node& node, ShapeEnv& env) {
  return number_of(Expr::boolean(is_contiguous(input(node, "self"), env)));
}

Types is_same_size(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& other = input(node, "other");
  bool same = self.rank() == other.rank();
  for (size_t i = 0; same && i < self.rank(); ++i) same = sizes_match(self.sizes[i], other.sizes[i], env);
  return number_of(Expr::boolean(same));
}

Types shape_as_tensor(const Node& node, ShapeEnv& env) {
  return one(ScalarType::Long, {static_cast<int64_t>(input(node, "self").rank())});
}

Types nothing(const Node& node, ShapeEnv& env) { return {}; }

// An assert in functional form returns a token that orders it.
Types token(const Node& node, ShapeEnv& env) { return one(kDefaultFloat, {0}); }
Types passed_token(const Node& node, ShapeEnv& env) { return {input(node, "dep_token")}; }

constexpr ShapeRuleRow kRows[] = {
    {"aten::sym_size.int", size_at},
    {"aten::sym_size", size_list},
    {"aten::size.int", size_at},
    {"aten::size", size_list},
    {"aten::sym_stride.int", stride_at},
    {"aten::sym_stride", stride_list},
    {"aten::stride.int", stride_at},
    {"aten::stride", stride_list},
    {"aten::sym_numel", element_count},
    {"aten::numel", element_count},
    {"aten::dim", rank_of},
    {"aten::is_floating_point", is_floating_point},
    {"aten::is_complex", is_complex},
    {"aten::is_signed", is_signed},
    {"aten::element_size", element_size},
    {"aten::is_contiguous", contiguity},
    {"aten::sym_is_contiguous", contiguity},
    {"aten::is_same_size", is_same_size},
    {"aten::_shape_as_tensor", shape_as_tensor},
    {"aten::_assert_async", nothing},
    {"aten::_assert_scalar", nothing},
    {"aten::_assert_tensor_metadata", nothing},
    {"aten::sym_constrain_range", nothing},
    {"aten::sym_constrain_range_for_size", nothing},
    {"aten::_make_dep_token", token},
    {"aten::_functional_assert_async", passed_token},
    {"aten::_functional_assert_scalar", passed_token},
    {"aten::_functional_sym_constrain_range", passed_token},
    {"aten::_functional_sym_constrain_range_for_size", passed_token},
};

}  // namespace

std::span<const ShapeRuleRow> size_rules() { return kRows; }

}  // namespace transporters::shape_rules
