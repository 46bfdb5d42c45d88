// Ops that give numbers about a tensor's shape or dtype, and asserts, which give nothing.
#include <numeric>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types number_of(Expr expr) { return {NumberType{std::move(expr)}}; }

Types size_at(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return number_of(self.sizes[dim(node, "dim", self.rank())]);
}

Types stride_at(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  return number_of(strides_of(self)[dim(node, "dim", self.rank())]);
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

// Whether the dims in `order`, innermost first, lie densely: exact at every size, as strides of dims of 1 do not count.
Expr is_dense(const TensorType& type, const std::vector<size_t>& order) {
  const Sizes strides = strides_of(type);
  Expr dense = Expr::boolean(true), expected = 1;
  for (const size_t d : order) {
    dense = logical_and(dense, logical_or(equal(type.sizes[d], 1), equal(strides[d], expected)));
    expected = expected * type.sizes[d];
  }
  return dense;
}

Types contiguity(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const Argument* format = node.try_get("memory_format");
  const auto* name = format ? std::get_if<MemoryFormat>(format) : nullptr;
  if (!name || name->name == "contiguous_format") {
    if (self.strides.empty()) return number_of(Expr::boolean(true));
    std::vector<size_t> order(self.rank());
    std::iota(order.rbegin(), order.rend(), 0);
    return number_of(logical_or(equal(numel(self.sizes), 0), is_dense(self, order)));
  }
  check(name->name.starts_with("channels_last"), node,
        "expected contiguous_format, channels_last or channels_last_3d, got " + name->name);
  const std::vector<size_t> order =
      name->name == "channels_last" ? std::vector<size_t>{1, 3, 2, 0} : std::vector<size_t>{1, 4, 3, 2, 0};
  if (self.rank() != order.size()) return number_of(Expr::boolean(false));
  return number_of(is_dense(self, order));
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
    {"aten::size.int", size_at},
    {"aten::sym_stride.int", stride_at},
    {"aten::stride.int", stride_at},
    {"aten::sym_numel", element_count},
    {"aten::numel", element_count},
    {"aten::dim", rank_of},
    {"aten::is_floating_point", is_floating_point},
    {"aten::is_complex", is_complex},
    {"aten::is_signed", is_signed},
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
