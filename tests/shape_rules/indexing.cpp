#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("advanced indexing") {
  check_calls({
      "aten::index.Tensor(f32[a=4, b=3], [i64[c=2]])",
      "aten::index.Tensor(f32[a=4, b=3], [i64[c=2, 1], i64[5]])",
      "aten::index.Tensor(f32[a=4, b=3, 5], [None, i64[c=2]])",
      "aten::index.Tensor(f32[a=4, b=3, 5], [i64[c=2], None, i64[c]])",
      "aten::index.Tensor(f32[a=4, b=3, 5, 6], [None, i64[c=2], i64[]])",
      "aten::index.Tensor(f32[a=4, b=3, 5, 6], [None, i64[c=2], None, i64[]])",
      "aten::index.Tensor(f32[a=4, b=3], [None, None])",
      "aten::index.Tensor(f32[a=4], [i64[]])",
      "aten::index.Tensor(f32[a=4, b=3], [i32[2]])",
      "aten::_unsafe_index.Tensor(f32[a=4, b=3, 5], [None, i64[c=2, 1], i64[2]])",
      "aten::index_select(f32[a=4, b=3], 1, i64[c=2])",
      "aten::index_select(f32[a=4, b=3], -2, i32[2])",
      "aten::gather(f32[a=4, b=3], 1, i64[a, c=2])",
      "aten::gather(f32[a=4, b=3], 0, i64[2, 2])",
      "aten::take(f32[a=4, b=3], i64[c=2, 3])",
      "aten::take_along_dim(f32[a=4, b=3], i64[1, 2], 1)",
      "aten::take_along_dim(f32[a=4, b=3], i64[2, 2])",
      "aten::searchsorted.Tensor(f32[a=4, b=3], f32[a, c=2])",
      "aten::searchsorted.Tensor(f32[b=3], f32[a=2, 4], out_int32=true)",
      "aten::searchsorted.Scalar(f32[b=3], 2)",
      "aten::bucketize.Tensor(f32[a=4, b=3], f32[5])",
      "aten::bucketize.Scalar(2, f32[5], out_int32=true)",
  });
  // At size 1 a too short `b` would make these indices invalid, so ATen is asked at the example.
  check_calls({"aten::index.Tensor(f32[4, 3]:(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), [bool[4]:(1, 0, 1, 1)])"},
              {.all_symbolic = false});
  check_error("aten::index.Tensor(f32[2], [i64[1], i64[1]])", "too many indices for f32[2]");
  check_error("aten::index.Tensor(f32[4, 3], [None, None, None])", "too many indices for f32[4, 3]");
  check_error("aten::index.Tensor(f32[2], [f32[1]])", "expected indices of int64, int32, bool or uint8");
  check_error("aten::index.Tensor(f32[2, 3], [bool[3]])", "expected a mask of the sizes it indexes");
  check_error("aten::gather(f32[2, 3], 0, i64[2])", "of one rank, got f32[2, 3] and i64[2]");
}

TEST_CASE("masks give sizes that the data decides") {
  ShapeEnv env;
  CHECK(to_text(run_rule("aten::index.Tensor(f32[a=4, b=3], [bool[a]])", env)) == "f32[u0, b]");
  CHECK(to_text(run_rule("aten::index.Tensor(f32[a=4, b=3, 5], [bool[a, b]])", env)) == "f32[u1, 5]");
  CHECK(to_text(run_rule("aten::index.Tensor(f32[a=4, b=3, 5], [None, bool[b], i64[]])", env)) == "f32[a, u2]");
  CHECK(to_text(run_rule("aten::nonzero(i64[4, 5])", env)) == "i64[u3, 2]");
  CHECK(env.info("u3").range == symbolic::Range{0, 20});
  CHECK_FALSE(env.info("u3").hint);
  CHECK(to_text(run_rule("aten::masked_select(f32[a=4, 1], bool[3])", env)) == "f32[u4]");
}

TEST_CASE("data-dependent sizes and numbers lie in their ranges") {
  check_calls(
      {
          "aten::nonzero(f32[3, 4])",
          "aten::nonzero(bool[])",
          "aten::argwhere(bool[5])",
          "aten::where(bool[3, 4])",
          "aten::nonzero_numpy(bool[3])",
          "aten::nonzero_static(i64[3, 4], size=5)",
          "aten::masked_select(f32[3, 4], bool[4])",
          "aten::item(i64[])",
          "aten::item(i32[1, 1])",
          "aten::_local_scalar_dense(bool[])",
          "aten::is_nonzero(i64[])",
          "aten::equal(f32[2], f32[2])",
          "aten::allclose(f32[2], f32[2])",
          "aten::_unique2(i64[6])",
          "aten::_unique2(i64[2, 3], true, true, true)",
          "aten::_unique(i64[6], true, true)",
          "aten::unique_dim(f32[4, 3], 0, true, true, true)",
          "aten::unique_consecutive(i64[6], true, true)",
          "aten::unique_consecutive(i64[4, 3], false, false, 1)",
          "aten::unique_dim_consecutive(i64[4, 3], 1, true)",
          "aten::unique_dim(f32[4, 3], 1)",
          "aten::unique_consecutive(i64[4, 3], false, true)",
          "aten::bincount(i64[6])",
          "aten::bincount(i64[6], f32[6], 4)",
          "aten::histc(f32[6], 10)",
          "aten::histogram.bin_ct(f32[6], 10)",
          "aten::histogram.bins_tensor(f32[6], f32[4]:(0, 1, 2, 3))",
      },
      {.may_specialize = true});
  check_error("aten::item(f32[2])", "expected one element, got f32[2]");
  check_error("aten::item(f32[1, 1])", "a plain number of f32[1, 1], which is computed from the data");
}

TEST_CASE("writes keep self's dtype and sizes") {
  check_calls(
      {
          "aten::index_put(f32[a=4, b=3], [i64[c=2]], f32[c, b])",
          "aten::index_put(f32[a=4, b=3], [None, i64[c=2]], f32[])",
          "aten::index_put(f32[a=4, b=3], [i64[2], i64[2]], f32[2], true)",
          "aten::index_put(f32[4, b=3], [bool[4]], f32[])",
          "aten::_unsafe_index_put(f32[a=4, b=3], [i64[c=2]], f32[b])",
          "aten::index_add(f32[a=4, b=3], 0, i64[2], f32[2, b])",
          "aten::index_copy(f32[a=4, b=3], 1, i64[2], f32[a, 2])",
          "aten::index_fill.int_Scalar(f32[a=4, b=3], 1, i64[2], 1)",
          "aten::index_fill.int_Tensor(f32[a=4, b=3], 1, i64[2], f32[])",
          "aten::index_reduce(f32[a=4, b=3], 0, i64[2], f32[2, b], 'mean')",
          "aten::scatter.src(f32[a=4, b=3], 1, i64[a, 2], f32[a, 2])",
          "aten::scatter.value(f32[a=4, b=3], 0, i64[2, b], 1)",
          "aten::scatter.reduce(f32[a=4, b=3], 1, i64[a, 2], f32[a, 2], reduce='add')",
          "aten::scatter.value_reduce(f32[a=4, b=3], 1, i64[a, 2], 2, reduce='multiply')",
          "aten::scatter_add(f32[a=4, b=3], 1, i64[a, 2], f32[a, 2])",
          "aten::scatter_reduce.two(f32[a=4, b=3], 1, i64[a, 2], f32[a, 2], 'amax')",
          "aten::masked_scatter(f32[a=4, b=3], bool[b], f32[a, b])",
          "aten::put(f32[a=4, b=3], i64[2], f32[2])",
          "aten::slice_scatter(f32[a=4, 3], f32[a, 2], 1, 0, 2)",
          "aten::select_scatter(f32[a=4, b=3], f32[b], 0, 0)",
          "aten::diagonal_scatter(f32[3, 3], f32[3])",
          "aten::as_strided_scatter(f32[6], f32[2], [2], [1])",
      },
      {.least = 2, .all_symbolic = false});
  check_error("aten::index_put(f32[4, 3], [i64[2]], f32[3, 3])",
              "expected values that broadcast to the indexed places, got [3, 3] and [2, 3]");
  check_error("aten::index_put(f32[4, 3], [i64[1]], f32[2, 3])", "expected values that broadcast");
  check_error("aten::copy(f32[1, 3], f32[2, 3])", "expected src that broadcasts to self");
  check_error("aten::scatter_add(f32[4, 3], 1, i64[4, 2], f64[4, 2])", "of one dtype");
}

TEST_CASE("embeddings") {
  check_calls({
      "aten::embedding(f32[10, 8], i64[a=2, b=3])",
      "aten::embedding(f32[v=10, 8], i32[a=2, b=3], 0)",
      "aten::embedding(f32[10, 8], i64[])",
      "aten::one_hot(i64[a=2, b=3], 5)",
  });
  check_calls(
      {"aten::embedding_bag(f32[10, 8], i64[6], i64[2]:(0, 3))",
       "aten::embedding_bag(f32[10, 8], i64[6], i64[2]:(0, 3), false, 1)",
       "aten::embedding_bag(f32[10, 8], i64[6], i64[2]:(0, 3), false, 2)",
       "aten::embedding_bag(f32[10, 8], i64[6], i64[3]:(0, 3, 6), false, 1, false, None, true)",
       "aten::_embedding_bag(f32[10, 8], i64[6], i64[2]:(0, 3), false, 0)",
       "aten::_embedding_bag_forward_only(f32[10, 8], i64[6], i64[2]:(0, 3), false, 1)", "aten::one_hot(i64[4], -1)"},
      {.may_specialize = true, .all_symbolic = false});
  check_error("aten::embedding(f32[10, 8], f32[2])", "expected indices of int64 or int32, got f32[2]");
}
