// Activations, softmax and dropout.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types softmax(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  if (has(node, "dim")) dim(node, "dim", self.rank());
  return one(dtype_or(node, "dtype", self.dtype), self.sizes);
}

// _softmax(self, dim, half_to_float): half in, float32 out, when asked.
Types softmax_half_to_float(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  dim(node, "dim", self.rank());
  return one(node.boolean("half_to_float") ? ScalarType::Float : self.dtype, self.sizes);
}

Types glu(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  Sizes sizes = self.sizes;
  sizes[d] = exact_quotient(node, {sizes[d]}, {2}, env,
                            "expected an even size at dim " + std::to_string(d) + ", got " + describe(self));
  return one(self.dtype, sizes);
}

Types prelu(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& weight = input(node, "weight");
  check_same_dtype(node, self, weight, "self", "weight");
  if (weight.rank() > 0 && !is_one(numel(weight.sizes), env)) {
    check(weight.rank() == 1, node, "expected weight of rank 0 or 1, got " + describe(weight));
    const Expr channels = self.rank() > 1 ? self.sizes[1] : Expr(1);
    common_size(node, channels, weight.sizes[0], env,
                "expected one weight a channel, got " + describe(weight) + " for " + describe(self));
  }
  return one(self.dtype, self.sizes);
}

Types prelu_kernel(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(self.dtype, broadcast(self.sizes, input(node, "weight").sizes, env));
}

// log_sigmoid_forward gives the CPU kernel's buffer too, which has self's sizes.
Types log_sigmoid_forward(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return {tensor(self.dtype, self.sizes), tensor(self.dtype, self.sizes)};
}

// native_dropout(input, p, train) -> (output, mask)
Types native_dropout(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return {tensor(self.dtype, self.sizes), tensor(ScalarType::Bool, self.sizes)};
}

Types rrelu_with_noise(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& noise = input(node, "noise");
  return {tensor(self.dtype, self.sizes), tensor(noise.dtype, noise.sizes)};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::relu", same_as_input},
    {"aten::relu6", same_as_input},
    {"aten::leaky_relu", same_as_input},
    {"aten::rrelu", same_as_input},
    {"aten::rrelu_with_noise_functional", rrelu_with_noise},
    {"aten::elu", same_as_input},
    {"aten::celu", same_as_input},
    {"aten::selu", same_as_input},
    {"aten::gelu", same_as_input},
    {"aten::silu", same_as_input},
    {"aten::mish", same_as_input},
    {"aten::hardtanh", same_as_input},
    {"aten::hardsigmoid", same_as_input},
    {"aten::hardswish", same_as_input},
    {"aten::hardshrink", same_as_input},
    {"aten::softshrink", same_as_input},
    {"aten::softplus", same_as_input},
    {"aten::threshold", same_as_input},
    {"aten::log_sigmoid", same_as_input},
    {"aten::log_sigmoid_forward", log_sigmoid_forward},
    {"aten::glu", glu},
    {"aten::prelu", prelu},
    {"aten::_prelu_kernel", prelu_kernel},
    {"aten::softmax", softmax},
    {"aten::log_softmax", softmax},
    {"aten::special_softmax", softmax},
    {"aten::special_log_softmax", softmax},
    {"aten::_safe_softmax", softmax},
    {"aten::_softmax", softmax_half_to_float},
    {"aten::_log_softmax", softmax_half_to_float},
    {"aten::_masked_softmax", same_as_input},
    {"aten::dropout", same_as_input},
    {"aten::_masked_scale", same_as_input},
    {"aten::alpha_dropout", same_as_input},
    {"aten::feature_dropout", same_as_input},
    {"aten::feature_alpha_dropout", same_as_input},
    {"aten::native_dropout", native_dropout},
};

}  // namespace

std::span<const ShapeRuleRow> activation_rules() { return kRows; }

}  // namespace transporters::shape_rules
