#include "transporters/symbolic/layout.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace transporters::symbolic {

namespace {

bool is_known(const ShapeEnv& env, const Expr& condition) {
  return env.decide_size_oblivious(condition).value_or(false);
}

// Axes from the fastest to the slowest.
std::vector<size_t> row_major_order(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  return order;
}

std::vector<size_t> channels_last_order(size_t rank) {
  std::vector<size_t> order = {1};
  for (size_t axis = rank - 1; axis >= 2; --axis) order.push_back(axis);
  order.push_back(0);
  return order;
}

bool is_empty(std::span<const Expr> sizes) {
  return std::ranges::any_of(sizes, [](const Expr& size) { return size.is(0); });
}

bool is_dense_in_order(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides,
                       std::span<const size_t> order) {
  Expr expected = 1;
  for (size_t axis : order) {
    if (is_known(env, equal(sizes[axis], 1))) continue;
    if (!is_known(env, equal(strides[axis], expected))) return false;
    expected = expected * sizes[axis];
  }
  return true;
}

}  // namespace

bool is_contiguous(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides) {
  return is_empty(sizes) || is_dense_in_order(env, sizes, strides, row_major_order(sizes.size()));
}

bool is_channels_last_contiguous(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides,
                                 size_t rank) {
  return sizes.size() == rank && is_dense_in_order(env, sizes, strides, channels_last_order(rank));
}

bool is_channels_last_strides(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides,
                              size_t rank) {
  if (sizes.size() != rank || is_known(env, equal(strides[1], 0))) return false;
  Expr smallest = 0;
  for (size_t axis : channels_last_order(rank)) {
    if (sizes[axis].is(0) || !is_known(env, less_equal(smallest, strides[axis]))) return false;
    // With a batch or height of 1 both orders fit; the row-major one wins then.
    if (axis == 0 && is_known(env, equal(smallest, strides[1]))) return false;
    smallest = strides[axis];
    if (is_known(env, less(1, sizes[axis]))) smallest = smallest * sizes[axis];
  }
  return true;
}

bool is_non_overlapping_and_dense(const ShapeEnv& env, std::span<const Expr> sizes, std::span<const Expr> strides) {
  if (is_empty(sizes)) return true;
  std::vector<size_t> left;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (!is_known(env, equal(sizes[axis], 1))) left.push_back(axis);
  }
  Expr expected = 1;
  while (!left.empty()) {
    auto next = std::ranges::find_if(left, [&](size_t axis) { return is_known(env, equal(strides[axis], expected)); });
    if (next == left.end()) return false;
    expected = expected * sizes[*next];
    left.erase(next);
  }
  return true;
}

}  // namespace transporters::symbolic
