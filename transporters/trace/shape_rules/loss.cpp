// Losses. `reduction` 0 keeps one loss an element, 1 (mean) and 2 (sum) give a number.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

bool keeps_elements(const Node& node) { return integer(node, "reduction", kMean) == kNone; }

Types reduced(const Node& node, ScalarType dtype, Sizes sizes) {
  return one(dtype, keeps_elements(node) ? std::move(sizes) : Sizes{});
}

// The first two arguments broadcast.
Types pointwise(const Node& node, ShapeEnv& env) {
  return reduced(node, to_floating(result_type({argument(node, 0), argument(node, 1)})),
                 broadcast(input(node, 0).sizes, input(node, 1).sizes, env));
}

Types binary_cross_entropy(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_same_sizes(node, self.sizes, input(node, "target").sizes, env, "expected self and target of one shape");
  return reduced(node, self.dtype, self.sizes);
}

// self [batch, classes] or [classes] -> one loss an element of target
Types nll_loss(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return reduced(node, self.dtype, input(node, "target").sizes);
}

// -> output, total weight
Types nll_loss_forward(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  Types types = nll_loss(node, env);
  types.push_back(tensor(self.dtype, {}));
  return types;
}

// Classes as indices, or as probabilities of self's shape.
Types cross_entropy(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& target = input(node, "target");
  check_rank_at_least(node, "self", self, 1);
  const size_t classes = self.rank() == 1 ? 0 : 1;
  Sizes sizes = self.sizes;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(classes));
  const bool probabilities = target.rank() == self.rank() && !c10::isIntegralType(target.dtype, true);
  if (!probabilities) check_same_sizes(node, sizes, target.sizes, env, "expected one class an element");
  return reduced(node, self.dtype, sizes);
}

// log_probs [time, batch, classes] -> one loss a sequence
Types ctc_loss(const Node& node, ShapeEnv& env) {
  const auto& log_probs = input(node, "log_probs");
  check_rank(node, "log_probs", log_probs, {2, 3});
  return reduced(node, log_probs.dtype, log_probs.rank() == 3 ? Sizes{log_probs.sizes[1]} : Sizes{});
}

Types cosine_embedding(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "input1");
  const auto& b = input(node, "input2");
  Sizes sizes = broadcast(a.sizes, b.sizes, env);
  sizes.pop_back();
  return reduced(node, result_type({node.get("input1"), node.get("input2")}), sizes);
}

Types margin_ranking(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "input1");
  return reduced(node, a.dtype,
                 broadcast_all({a.sizes, input(node, "input2").sizes, input(node, "target").sizes}, env));
}

Types triplet_margin(const Node& node, ShapeEnv& env) {
  const auto& anchor = input(node, "anchor");
  Sizes sizes = broadcast_all({anchor.sizes, input(node, "positive").sizes, input(node, "negative").sizes}, env);
  check(!sizes.empty(), node, "expected inputs of rank 1 or more");
  sizes.pop_back();
  return reduced(node, anchor.dtype, sizes);
}

// self [batch, classes] or [classes] -> one loss a sample
Types multi_margin(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {0, 1, 2});
  return reduced(node, self.dtype, self.rank() == 2 ? Sizes{self.sizes[0]} : Sizes{});
}

Types multilabel_margin_forward(const Node& node, ShapeEnv& env) {
  Types types = multi_margin(node, env);
  types.push_back(tensor(input(node, "self").dtype, input(node, "target").sizes));
  return types;
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::mse_loss", pointwise},
    {"aten::l1_loss", pointwise},
    {"aten::smooth_l1_loss", pointwise},
    {"aten::huber_loss", pointwise},
    {"aten::kl_div", pointwise},
    {"aten::soft_margin_loss", pointwise},
    {"aten::hinge_embedding_loss", pointwise},
    {"aten::poisson_nll_loss", pointwise},
    {"aten::binary_cross_entropy", binary_cross_entropy},
    {"aten::binary_cross_entropy_with_logits", pointwise},
    {"aten::nll_loss", nll_loss},
    {"aten::nll_loss_nd", nll_loss},
    {"aten::nll_loss2d", nll_loss},
    {"aten::nll_loss_forward", nll_loss_forward},
    {"aten::nll_loss2d_forward", nll_loss_forward},
    {"aten::cross_entropy_loss", cross_entropy},
    {"aten::ctc_loss", ctc_loss},
    {"aten::cosine_embedding_loss", cosine_embedding},
    {"aten::margin_ranking_loss", margin_ranking},
    {"aten::triplet_margin_loss", triplet_margin},
    {"aten::multi_margin_loss", multi_margin},
    {"aten::multilabel_margin_loss", multi_margin},
    {"aten::multilabel_margin_loss_forward", multilabel_margin_forward},
};

}  // namespace

std::span<const ShapeRuleRow> loss_rules() { return kRows; }

}  // namespace transporters::shape_rules
