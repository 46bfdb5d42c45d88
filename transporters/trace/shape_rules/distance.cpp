// Distances, similarities and statistics between vectors.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// x1 [..., P, M], x2 [..., R, M] -> [..., P, R]
Types cdist(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "x1");
  const auto& b = input(node, "x2");
  check_rank_at_least(node, "x1", a, 2);
  check_rank_at_least(node, "x2", b, 2);
  common_size(node, a.sizes.back(), b.sizes.back(), env,
              "expected vectors of one size, got " + describe(a) + " and " + describe(b));
  Sizes sizes = broadcast(Sizes(a.sizes.begin(), a.sizes.end() - 2), Sizes(b.sizes.begin(), b.sizes.end() - 2), env);
  sizes.push_back(a.sizes[a.rank() - 2]);
  sizes.push_back(b.sizes[b.rank() - 2]);
  return one(c10::promoteTypes(a.dtype, b.dtype), sizes);
}

// One distance a pair of rows.
Types pdist(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {2});
  const Expr n = self.sizes[0];
  return one(self.dtype, {floor_div(n * (n - 1), 2)});
}

Types pairwise_distance(const Node& node, ShapeEnv& env) {
  Sizes sizes = broadcast(input(node, "x1").sizes, input(node, "x2").sizes, env);
  check(!sizes.empty(), node, "expected inputs of rank 1 or more");
  sizes.pop_back();
  if (node.boolean("keepdim")) sizes.push_back(1);
  return one(to_floating(result_type({node.get("x1"), node.get("x2")})), sizes);
}

Types cosine_similarity(const Node& node, ShapeEnv& env) {
  Sizes sizes = broadcast(input(node, "x1").sizes, input(node, "x2").sizes, env);
  check(!sizes.empty(), node, "expected inputs of rank 1 or more");
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim(node, "dim", sizes.size())));
  return one(result_type({node.get("x1"), node.get("x2")}), sizes);
}

Types dist(const Node& node, ShapeEnv& env) {
  broadcast(input(node, "self").sizes, input(node, "other").sizes, env);
  return one(result_type({node.get("self"), node.get("other")}), {});
}

Types cross(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& other = input(node, "other");
  check(self.rank() == other.rank(), node,
        "expected self and other of one rank, got " + describe(self) + " and " + describe(other));
  return one(result_type({node.get("self"), node.get("other")}), broadcast(self.sizes, other.sizes, env));
}

// Rows are variables: [n, observations] -> [n, n]; one variable gives a number.
Types covariance(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {0, 1, 2});
  const ScalarType dtype = to_floating(self.dtype);
  if (self.rank() < 2) return one(dtype, {});
  if (is_one(self.sizes[0], env)) return one(dtype, {});
  return one(dtype, {self.sizes[0], self.sizes[0]});
}

Types trapezoid(const Node& node, ShapeEnv& env) {
  const auto& y = input(node, "y");
  check_rank_at_least(node, "y", y, 1);
  const auto d = static_cast<std::ptrdiff_t>(dim(node, "dim", y.rank()));
  Sizes sizes = y.sizes;
  if (node.schema().base_name().ends_with("cumulative_trapezoid")) {
    sizes[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)] - 1;
  } else {
    sizes.erase(sizes.begin() + d);
  }
  return one(to_floating(y.dtype), sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::cdist", cdist},
    {"aten::_cdist_forward", cdist},
    {"aten::_euclidean_dist", cdist},
    {"aten::pdist", pdist},
    {"aten::_pdist_forward", pdist},
    {"aten::pairwise_distance", pairwise_distance},
    {"aten::cosine_similarity", cosine_similarity},
    {"aten::dist", dist},
    {"aten::cross", cross},
    {"aten::linalg_cross", cross},
    {"aten::cov", covariance},
    {"aten::corrcoef", covariance},
    {"aten::trapezoid", trapezoid},
    {"aten::trapz", trapezoid},
    {"aten::cumulative_trapezoid", trapezoid},
};

}  // namespace

std::span<const ShapeRuleRow> distance_rules() { return kRows; }

}  // namespace transporters::shape_rules
