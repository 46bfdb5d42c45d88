// Random tensors and samples.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

template <ScalarType otherwise>
Types sized(const Node& node, ShapeEnv& env) {
  const Sizes sizes = node.sizes("size");
  for (const auto& size : sizes) check_not_negative(node, size, env, "a size");
  return one(dtype_or(node, "dtype", otherwise), sizes);
}

Types sized_like(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(dtype_or(node, "dtype", self.dtype), self.sizes);
}

Types randperm(const Node& node, ShapeEnv& env) {
  return one(dtype_or(node, "dtype", ScalarType::Long), {node.size("n")});
}

Types multinomial(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {1, 2});
  Sizes sizes = self.sizes;
  sizes.back() = node.size("num_samples");
  return one(ScalarType::Long, sizes);
}

// normal(mean, std), either of which can be a number.
Types normal_of_tensors(const Node& node, ShapeEnv& env) {
  const Argument& mean = node.get("mean");
  const Argument& std = node.get("std");
  const auto* first = as_tensor(mean);
  return one(first ? first->dtype : input(node, "std").dtype, broadcast(operand_sizes(mean), operand_sizes(std), env));
}

Types binomial(const Node& node, ShapeEnv& env) {
  const auto& count = input(node, "count");
  return one(count.dtype, broadcast(count.sizes, input(node, "prob").sizes, env));
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::rand", sized<kDefaultFloat>},
    {"aten::randn", sized<kDefaultFloat>},
    {"aten::normal.float_float", sized<kDefaultFloat>},
    {"aten::randint", sized<ScalarType::Long>},
    {"aten::rand_like", sized_like},
    {"aten::randn_like", sized_like},
    {"aten::randint_like", sized_like},
    {"aten::randperm", randperm},
    {"aten::bernoulli", same_as_input},
    {"aten::poisson", same_as_input},
    {"aten::binomial", binomial},
    {"aten::multinomial", multinomial},
    {"aten::normal", normal_of_tensors},
    {"aten::normal_functional", same_as_input},
    {"aten::uniform", same_as_input},
    {"aten::random", same_as_input},
    {"aten::exponential", same_as_input},
    {"aten::geometric", same_as_input},
    {"aten::cauchy", same_as_input},
    {"aten::log_normal", same_as_input},
    {"aten::_standard_gamma", same_as_input},
    {"aten::_sample_dirichlet", same_as_input},
};

}  // namespace

std::span<const ShapeRuleRow> random_rules() { return kRows; }

}  // namespace transporters::shape_rules
