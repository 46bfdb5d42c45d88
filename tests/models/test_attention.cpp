#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/layers/attention.h"

namespace tp = transporters;

namespace {

tp::MaskArguments arguments(int64_t batch, int64_t length) {
  tp::MaskArguments result;
  result.batch = batch;
  result.query_length = length;
  return result;
}

// One row per query: "110" allows the first two keys.
std::vector<std::string> rows(const at::Tensor& mask, int64_t batch = 0) {
  std::vector<std::string> result;
  const auto matrix = mask.select(0, batch).select(0, 0).contiguous();
  for (int64_t q = 0; q < matrix.size(0); ++q) {
    std::string row;
    for (int64_t k = 0; k < matrix.size(1); ++k) row += matrix[q][k].item<bool>() ? '1' : '0';
    result.push_back(row);
  }
  return result;
}

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("causal masks: plain, padded on either side, with a window") {
  auto a = arguments(2, 3);
  CHECK(tp::causal_mask(a).sizes() == at::IntArrayRef({2, 1, 3, 3}));
  CHECK(rows(tp::causal_mask(a)) == Rows{"100", "110", "111"});
  a.attention_mask = at::tensor({0, 1, 1, 1, 1, 0}, at::kLong).view({2, 3});
  CHECK(rows(tp::causal_mask(a), 0) == Rows{"000", "010", "011"});
  CHECK(rows(tp::causal_mask(a), 1) == Rows{"100", "110", "110"});
  a.attention_mask = at::Tensor();
  a.sliding_window = 2;
  CHECK(rows(tp::causal_mask(a)) == Rows{"100", "110", "011"});
}

TEST_CASE("causal masks after a past") {
  tp::DynamicLayer layer(at::zeros({1, 1, 2, 4}), at::zeros({1, 1, 2, 4}));
  auto a = arguments(1, 2);
  a.cache = &layer;
  CHECK(rows(tp::causal_mask(a)) == Rows{"1110", "1111"});
  a.attention_mask = at::tensor({0, 1, 1, 1}, at::kLong).view({1, 4});
  CHECK(rows(tp::causal_mask(a)) == Rows{"0110", "0111"});
  a.sliding_window = 2;
  CHECK(rows(tp::causal_mask(a)) == Rows{"0110", "0011"});
}

TEST_CASE("packed sequences don't see each other") {
  auto a = arguments(1, 4);
  a.position_ids = at::tensor({0, 1, 0, 1}, at::kLong).view({1, 4});
  CHECK(rows(tp::causal_mask(a)) == Rows{"1000", "1100", "0010", "0011"});
  a.attention_mask = at::ones({1, 4}, at::kLong);
  CHECK(rows(tp::causal_mask(a)) == Rows{"1000", "1100", "1110", "1111"});
}

TEST_CASE("additive masks have the lowest number of their type") {
  auto a = arguments(1, 2);
  a.implementation = tp::AttentionImplementation::Eager;
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    a.dtype = dtype;
    const auto mask = tp::causal_mask(a);
    CHECK((mask.scalar_type() == dtype));
    CHECK(mask[0][0][1][0].item<double>() == 0.0);
    CHECK(std::isfinite(mask[0][0][0][1].item<double>()));
    CHECK(mask[0][0][0][1].item<double>() < -6e4);
  }
}

TEST_CASE("bidirectional masks") {
  auto a = arguments(1, 2);
  CHECK(!tp::bidirectional_mask(a).defined());
  a.attention_mask = at::tensor({1, 0}, at::kLong).view({1, 2});
  CHECK(rows(tp::bidirectional_mask(a)) == Rows{"10", "10"});
  const auto ready = at::ones({1, 1, 2, 2}, at::kBool);
  a.attention_mask = ready;
  CHECK(tp::bidirectional_mask(a).is_same(ready));
  CHECK(tp::causal_mask(a).is_same(ready));
}

TEST_CASE("both implementations agree, with shared key/value heads") {
  at::manual_seed(0);
  const auto q = at::randn({2, 4, 3, 8});
  const auto k = at::randn({2, 2, 5, 8});
  const auto v = at::randn({2, 2, 5, 8});
  const auto visible = at::rand({2, 1, 3, 5}).gt(0.3).logical_or(at::eye(3, 5).to(at::kBool));
  const auto additive = at::where(visible, 0.0, -3e38).to(at::kFloat);
  const tp::AttentionArguments sdpa{tp::AttentionImplementation::Sdpa, 0.5};
  const tp::AttentionArguments eager{tp::AttentionImplementation::Eager, 0.5};
  const auto a = tp::attention(q, k, v, visible, sdpa);
  CHECK(a.sizes() == at::IntArrayRef({2, 3, 32}));
  CHECK(at::allclose(a, tp::attention(q, k, v, additive, eager), 1e-5, 1e-6));
  CHECK(at::allclose(tp::attention(q, k, v, {}, sdpa), tp::attention(q, k, v, {}, eager), 1e-5, 1e-6));
}
