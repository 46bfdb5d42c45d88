// Copies and changes of dtype or memory format.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types to_copy(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(dtype_or(node, "dtype", self.dtype), self.sizes);
}

// `to` gives the tensor itself when nothing changes.
TensorType converted(const Node& node, ScalarType dtype) {
  const auto& self = input(node, "self");
  const bool copies = dtype != self.dtype || flag(node, "copy");
  return {dtype, self.sizes, copies ? Sizes{} : self.strides};
}

Types to(const Node& node, ShapeEnv& env) {
  return {converted(node, dtype_or(node, "dtype", input(node, "self").dtype))};
}

Types to_other(const Node& node, ShapeEnv& env) { return {converted(node, input(node, "other").dtype)}; }

// copy(self, src) and its forms: self's dtype and sizes, which src broadcasts to.
Types copy_into(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto& source = input(node, "src");
  check_expands(node, source.sizes, self.sizes, env, "expected src that broadcasts to self");
  return one(self.dtype, self.sizes);
}

template <ScalarType dtype>
Types cast(const Node& node, ShapeEnv& env) {
  return one(dtype, input(node, 0).sizes);
}

// data: the tensor without its history.
Types unchanged(const Node& node, ShapeEnv& env) { return {input(node, 0)}; }

Types resize_as(const Node& node, ShapeEnv& env) {
  return one(input(node, "self").dtype, input(node, "the_template").sizes);
}

Types resize(const Node& node, ShapeEnv& env) { return one(input(node, "self").dtype, node.sizes("size")); }

constexpr ShapeRuleRow kRows[] = {
    {"aten::clone", same_as_input},
    {"aten::contiguous", same_as_input},
    {"aten::lift", same_as_input},
    {"aten::lift_fresh_copy", same_as_input},
    {"aten::_lazy_clone", same_as_input},
    {"aten::_to_copy", to_copy},
    {"aten::to", to},
    {"aten::to.other", to_other},
    {"aten::type_as", to_other},
    {"aten::copy", copy_into},
    {"aten::resize", resize},
    {"aten::resize_as", resize_as},
    {"aten::data", unchanged},
    {"aten::chalf", cast<ScalarType::ComplexHalf>},
    {"aten::_cast_Byte", cast<ScalarType::Byte>},
    {"aten::_cast_Char", cast<ScalarType::Char>},
    {"aten::_cast_Double", cast<ScalarType::Double>},
    {"aten::_cast_Float", cast<ScalarType::Float>},
    {"aten::_cast_Half", cast<ScalarType::Half>},
    {"aten::_cast_Int", cast<ScalarType::Int>},
    {"aten::_cast_Long", cast<ScalarType::Long>},
    {"aten::_cast_Short", cast<ScalarType::Short>},
};

}  // namespace

std::span<const ShapeRuleRow> conversion_rules() { return kRows; }

}  // namespace transporters::shape_rules
