#include <doctest/doctest.h>

#include <array>
#include <string>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("sums and means") {
  check_calls({
      "aten::sum(f32[a=2, b=3])",
      "aten::sum(i32[a=2])",
      "aten::sum(bool[a=2], dtype=f32)",
      "aten::sum.dim_IntList(f32[a=2, b=3, 4], [1])",
      "aten::sum.dim_IntList(f32[a=2, b=3, 4], [0, -1], true)",
      "aten::sum.dim_IntList(u8[a=2, b=3], [], true)",
      "aten::sum.dim_IntList(f16[a=2, b=3], None)",
      "aten::sum.dim_IntList(f16[a=2, b=3], [1], dtype=f64)",
      "aten::sum.dim_IntList(f32[], [0])",
      "aten::nansum(f32[a=2, b=3], [1])",
      "aten::mean(f32[a=2, b=3])",
      "aten::mean(i64[a=2], dtype=f32)",
      "aten::mean.dim(f32[a=2, b=3, 4], [-1], true)",
      "aten::mean.dim(bf16[a=2, b=3, 4], [1, 2])",
      "aten::mean.dim(f32[a=2, b=3], None, true)",
      "aten::nanmean(f32[a=2, b=3], [1])",
      "aten::prod(i32[a=2, b=3])",
      "aten::prod.dim_int(f32[a=2, b=3], 1, true)",
      "aten::prod.dim_int(bool[a=2, b=3], 0)",
      "aten::trace(i32[a=3, b=3])",
      "aten::sum_to_size(f32[a=2, 3], [1, 3])",
  });
  check_error("aten::mean(i64[2])", "expected floating-point numbers or a floating-point dtype, got i64[2]");
  check_error("aten::sum.dim_IntList(f32[2, 3], [0, -2])", "each dim once");
}

TEST_CASE("extrema") {
  check_calls({
      "aten::amax(f32[a=2, b=3], [1])",
      "aten::amax(i64[a=2, b=3])",
      "aten::amin(f32[a=2, b=3], [0, 1], true)",
      "aten::max(f32[a=2, b=3])",
      "aten::max.dim(f32[a=2, b=3], 1)",
      "aten::min.dim(i64[a=2, b=3], -2, true)",
      "aten::min(bool[a=2])",
      "aten::median(f32[a=2, b=3])",
      "aten::median.dim(f32[a=2, b=3], 1, true)",
      "aten::nanmedian.dim(f32[a=2, b=3], 0)",
      "aten::mode(f32[a=2, b=3])",
      "aten::kthvalue(f32[a=2, 3], 1)",
      "aten::kthvalue(f32[2, a=3], 1, 0, true)",
      "aten::aminmax(f32[a=2, b=3])",
      "aten::aminmax(f32[a=2, b=3], dim=1, keepdim=true)",
      "aten::argmax(f32[a=2, b=3])",
      "aten::argmax(f32[a=2, b=3], None, true)",
      "aten::argmax(f32[a=2, b=3], -1)",
      "aten::argmin(f32[a=2, b=3], 0, true)",
      "aten::argmax(f32[], 0)",
  });
}

TEST_CASE("tests and counts") {
  check_calls({
      "aten::all(bool[a=2, b=3])",
      "aten::all(u8[a=2, b=3])",
      "aten::any.dim(f32[a=2, b=3], 1)",
      "aten::any.dim(u8[a=2, b=3], 1, true)",
      "aten::all.dims(bool[a=2, b=3], [0, 1], true)",
      "aten::any.dims(bool[a=2, b=3])",
      "aten::count_nonzero(f32[a=2, b=3])",
      "aten::count_nonzero(f32[a=2, b=3], 1)",
      "aten::count_nonzero.dim_IntList(f32[a=2, b=3], [0, 1])",
      "aten::_is_all_true(bool[a=2])",
      "aten::_is_any_true(bool[a=2])",
  });
}

TEST_CASE("spreads and norms") {
  check_calls({
      "aten::std(f32[a=2, b=3])",
      "aten::var.dim(f32[a=2, b=3], [1], true, true)",
      "aten::var.correction(f32[a=2, b=3], [0], correction=0)",
      "aten::std.correction(c64[a=2, b=3], None, correction=1, keepdim=true)",
      "aten::var_mean.correction(f32[a=2, b=3], [1], correction=0, keepdim=true)",
      "aten::std_mean(c64[a=2])",
      "aten::std_mean.dim(f64[a=2, b=3], [0])",
      "aten::logsumexp(f32[a=2, b=3], [1])",
      "aten::logsumexp(i64[a=2, b=3], [0, 1], true)",
      "aten::norm.Scalar(f32[a=2, b=3])",
      "aten::norm.ScalarOpt_dim(f32[a=2, b=3], 2, [1])",
      "aten::norm.ScalarOpt_dim(c64[a=2, b=3], None, [1], true)",
      "aten::norm.ScalarOpt_dim_dtype(f16[a=2, b=3], 2, [1], true, dtype=f32)",
      "aten::norm.ScalarOpt_dtype(f32[a=2], 2, dtype=f64)",
      "aten::linalg_vector_norm(f32[a=2, b=3])",
      "aten::linalg_vector_norm(f16[a=2, b=3], 2, [-1], true, dtype=f32)",
      "aten::linalg_vector_norm(c64[a=2, b=3], 1, [0])",
      "aten::linalg_norm(f32[a=2, b=3])",
      "aten::linalg_norm(f32[a=2, b=3], None, [1], true)",
      "aten::linalg_matrix_norm(f32[2, a=2, b=3], 1)",
      "aten::linalg_matrix_norm.str_ord(f32[2, a=2, b=3], 'fro', [0, 1], true)",
      "aten::frobenius_norm.dim(f32[a=2, b=3], [0, 1])",
      "aten::nuclear_norm(f32[a=2, b=3])",
      "aten::quantile.scalar(f32[a=2, b=3], 0.5)",
      "aten::quantile(f32[a=2, b=3], f32[3], 1, true)",
      "aten::quantile(f32[a=2, b=3], f32[2], 0)",
      "aten::nanquantile.scalar(f32[a=2, b=3], 0.5, 1)",
  });
  check_error("aten::std(i64[3])", "expected floating-point numbers, got i64[3]");
}

TEST_CASE("scans") {
  check_calls({
      "aten::cumsum(f32[a=2, b=3], 1)",
      "aten::cumsum(i32[a=2, b=3], -1)",
      "aten::cumsum(bool[a=2], 0, dtype=f32)",
      "aten::cumsum(f32[], 0)",
      "aten::cumprod(i64[a=2, b=3], 0)",
      "aten::cummax(f32[a=2, b=3], 1)",
      "aten::cummin(i64[a=2, b=3], 0)",
      "aten::logcumsumexp(f32[a=2, b=3], 1)",
      "aten::diff(f32[a=2, b=3])",
      "aten::diff(f32[a=2, b=5], 2, 1)",
      "aten::diff(f32[a=2, b=3], 1, 1, f32[a, 2], f32[a, 1])",
      "aten::diff(f32[3], 5)",
      "aten::gradient.scalarint(f32[a=4, b=5])",
      "aten::gradient.array(f32[a=4, b=5], dim=[1])",
  });
}

TEST_CASE("sorts") {
  check_calls({
      "aten::sort(f32[a=2, b=3])",
      "aten::sort(i64[a=2, b=3], 0, true)",
      "aten::sort.stable(f32[a=2, b=3], stable=true, dim=1)",
      "aten::sort(f32[])",
      "aten::argsort(f32[a=2, b=3], 0)",
      "aten::argsort.stable(f32[a=2, b=3], stable=true)",
      "aten::msort(f32[a=2, b=3])",
      "aten::topk(f32[a=2, 7], 3)",
      "aten::topk(f32[7, a=2], 3, 0, false)",
      "aten::topk(f32[a=2, b=3], b)",
      "aten::topk(f32[], 1)",
  });
  check_error("aten::topk(f32[2, 3], 4)", "expected k within dim 1 of f32[2, 3], got 4");
}
