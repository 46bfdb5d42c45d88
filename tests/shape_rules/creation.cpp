#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("tensors from sizes") {
  check_calls({
      "aten::empty.memory_format([a, 3])",
      "aten::empty.memory_format([a, 3], dtype=i32)",
      "aten::empty_strided([a, 3], [1, a])",
      "aten::empty_permuted([2, 3, 4], [0, 1, 2])",
      "aten::zeros([a, b])",
      "aten::ones([], dtype=bool)",
      "aten::full([a, b], 1)",
      "aten::full([a], 1.5)",
      "aten::full([a], true)",
      "aten::full([a], 1, dtype=f16)",
      "aten::full([], a)",
      "aten::empty_like(f16[a=2, 3])",
      "aten::zeros_like(f32[a=2, 3], dtype=i64)",
      "aten::ones_like(bool[a=2])",
      "aten::full_like(i32[a=2, 3], 1.5)",
      "aten::new_empty(i32[a=2], [b, 3])",
      "aten::new_zeros(f16[a=2], [a, 3])",
      "aten::new_ones(f16[2], [a], dtype=f32)",
      "aten::new_full(i64[2], [a], 1.5)",
      "aten::new_empty_strided(f16[2], [a, 3], [3, 1])",
      "aten::scalar_tensor(1)",
      "aten::scalar_tensor(a, dtype=i64)",
      "aten::scalar_tensor(true)",
      "aten::fill.Scalar(f32[a=2], 1)",
      "aten::zero(f32[a=2])",
      "aten::eye(a)",
      "aten::eye.m(a, 3, dtype=bool)",
      "aten::tril_indices(3, 4)",
      "aten::tril_indices(5, 3, -1)",
      "aten::triu_indices(3, 4, 1)",
      "aten::triu_indices(4, 3, -2, dtype=i32)",
      "aten::diag(f32[a=2])",
      "aten::diag(f32[a=2], -1)",
      "aten::diag(f32[a=4, b=3], 1)",
      "aten::diag_embed(f32[a=2, b=3])",
      "aten::diag_embed(f32[a=2, b=3], -1, 0, 2)",
      "aten::diagflat(f32[a=2, b=3], 1)",
      "aten::tril(f32[a=2, b=3])",
      "aten::triu(f32[a=2, b=3], 1)",
      "aten::vander(i64[a=3])",
      "aten::vander(f32[a=3], 2)",
      "aten::linalg_vander(f32[a=2, b=3], N=4)",
      "aten::fft_fftfreq(a)",
      "aten::fft_rfftfreq(a, 0.5)",
      "aten::hann_window(a)",
      "aten::hamming_window.periodic(a, false)",
      "aten::kaiser_window.beta(8, true, 12.0, dtype=f64)",
      "aten::bartlett_window(8)",
      "aten::blackman_window(8)",
  });
}

TEST_CASE("ranges") {
  check_calls({
      "aten::arange(5)",
      "aten::arange(a)",
      "aten::arange(5.5)",
      "aten::arange(a, dtype=f32)",
      "aten::arange(a, dtype=i32)",
      "aten::arange.start(2, a+2)",
      "aten::arange.start(1, 6.5)",
      "aten::arange.start(b, a+b)",
      "aten::arange.start_step(0, a, 2)",
      "aten::arange.start_step(a, 0, -1)",
      "aten::arange.start_step(0, 10, 3)",
      "aten::arange.start_step(0, 1, 0.3)",
      "aten::arange.start_step(1, -1, -0.5, dtype=f64)",
      "aten::arange.start_step(0, a, 0.5)",
      "aten::arange.start_step(0.5, 5.2, 1.5, dtype=i64)",
      "aten::linspace(0, 1, a)",
      "aten::linspace(0, a, 5, dtype=f64)",
      "aten::logspace(0, 1, a)",
      "aten::range.step(0, 5, 2)",
  });
  check_error("aten::arange.start(5, 2)", "not negative");
  check_error("aten::arange.start_step(0, 2, 0)", "expected a step other than 0");
}

TEST_CASE("copies and conversions") {
  check_calls({
      "aten::clone(f32[a=2, 3])",
      "aten::contiguous(f32[a=2, 3])",
      "aten::lift_fresh_copy(f32[a=2])",
      "aten::_to_copy(f32[a=2, 3], dtype=i64)",
      "aten::_to_copy(f32[a=2, 3])",
      "aten::to.dtype(f32[a=2, 3], f16)",
      "aten::to.dtype(f32[a=2, 3]{1, a}, f32)",
      "aten::to.dtype_layout(f32[a=2, 3], dtype=bool)",
      "aten::to.other(f32[a=2], i64[3])",
      "aten::type_as(f32[a=2], i64[3])",
      "aten::copy(f32[a=2, 3], i64[3])",
      "aten::_cast_Long(f32[a=2])",
      "aten::data(f32[a=2, 3])",
      "aten::resize_as(f32[a=2, 3], f32[3])",
      "aten::_cast_Float(i64[a=2])",
  });
}

TEST_CASE("random tensors") {
  check_calls({
      "aten::rand([a, 3])",
      "aten::randn([a], dtype=f64)",
      "aten::randint(5, [a, 3])",
      "aten::randint.low(1, 5, [a], dtype=i32)",
      "aten::rand_like(f16[a=2])",
      "aten::randn_like(f32[a=2], dtype=f64)",
      "aten::randint_like(i64[a=2], 5)",
      "aten::randint_like.low_dtype(f32[a=2], 1, 5)",
      "aten::randperm(a)",
      "aten::bernoulli(f32[a=2])",
      "aten::bernoulli.p(f32[a=2], 0.5)",
      "aten::bernoulli.Tensor(i64[a=2], f32[a])",
      "aten::poisson(f32[a=2])",
      "aten::binomial(f32[a=2], f32[a])",
      "aten::multinomial(f32[a=2, 5], 3)",
      "aten::multinomial(f32[5], 3, true)",
      "aten::normal.float_float(0.0, 1.0, [a, 3])",
      "aten::normal.Tensor_float(f32[a=2], 1.0)",
      "aten::normal.Tensor_Tensor(f32[a=2, 1], f32[3])",
      "aten::normal.float_Tensor(0.0, f32[a=2])",
      "aten::normal_functional(f32[a=2])",
      "aten::uniform(f32[a=2])",
      "aten::exponential(f32[a=2])",
  });
}

TEST_CASE("joins and repetitions") {
  check_calls({
      "aten::cat([f32[a=2, b=3], f32[c=4, b]])",
      "aten::cat([f32[a=2, b=3], f32[a, 1], f32[a, b]], 1)",
      "aten::cat([f32[a=2, 3], f16[a, 3]], -1)",
      "aten::cat([i64[a=2], f32[b=3]])",
      "aten::cat([f32[0], f32[a=2, 3, 4]], -2)",
      "aten::cat([f32[a=2, 3, 4], f32[0]], -2)",
      "aten::cat([f32[0], f32[0]])",
      "aten::cat([f32[0, 3], f32[a=2, 3]])",
      "aten::concat([f32[a=2], f32[b=3]])",
      "aten::stack([f32[a=2, b=3], f32[a, b]], 1)",
      "aten::stack([f32[], f32[]])",
      "aten::stack([f32[a=2], i64[a]], -1)",
      "aten::hstack([f32[a=2], f32[3]])",
      "aten::hstack([f32[a=2, 3], f32[a, b=4]])",
      "aten::vstack([f32[a=2], f32[a]])",
      "aten::dstack([f32[a=2], f32[a]])",
      "aten::dstack([f32[a=2, 3], f32[a, 3]])",
      "aten::column_stack([f32[a=2], f32[a, 3]])",
      "aten::block_diag([f32[a=2, b=3], f32[], f32[4]])",
      "aten::cartesian_prod([f32[a=2], f32[b=3]])",
      "aten::cartesian_prod([f32[a=2]])",
      "aten::combinations(f32[4])",
      "aten::combinations(f32[4], 3, true)",
      "aten::broadcast_tensors([f32[a=2, 1], f32[b=3], i64[]])",
      "aten::meshgrid([f32[a=2], f32[b=3]])",
      "aten::meshgrid.indexing([f32[a=2], f32[b=3], f32[4]], indexing='xy')",
      "aten::repeat(f32[a=2, b=3], [2, 1, 3])",
      "aten::repeat(f32[a=2], [b])",
      "aten::repeat(f32[], [2, 3])",
      "aten::tile(f32[a=2, b=3], [2])",
      "aten::tile(f32[a=2], [2, 3])",
      "aten::repeat_interleave.self_int(f32[a=2, b=3], 2, 1)",
      "aten::repeat_interleave.self_int(f32[a=2, b=3], 2)",
      "aten::roll(f32[a=2, b=3], [1], [0])",
      "aten::flip(f32[a=2, b=3], [0, 1])",
      "aten::fliplr(f32[a=2, b=3])",
      "aten::rot90(f32[a=2, b=3, 4], 1, [0, 1])",
      "aten::rot90(f32[a=2, b=3], 2, [0, 1])",
  });
  check_calls({"aten::repeat_interleave.self_Tensor(f32[3, 4], i64[3]:(1, 2, 0), 0)",
               "aten::repeat_interleave.self_Tensor(f32[3], i64[3]:(1, 2, 0), output_size=3)",
               "aten::repeat_interleave.Tensor(i64[3]:(1, 2, 0))"},
              {.all_symbolic = false});
  check_error("aten::cat([f32[2, 3], f32[2, 4]])", "but for dim 0, got [2, 3] and [2, 4]");
  check_error("aten::stack([f32[2, 3], f32[2, 4]])", "of one shape, got f32[2, 3] and f32[2, 4]");
}

TEST_CASE("numbers about shapes, and asserts") {
  check_calls({
      "aten::sym_size.int(f32[a=2, b=3], 1)",
      "aten::sym_size.int(f32[a=2, 3], -1)",
      "aten::sym_numel(f32[a=2, 3])",
      "aten::sym_stride.int(f32[a=2, b=3], 0)",
      "aten::size.int(f32[a=2, 3], 0)",
      "aten::numel(f32[a=2, 3])",
      "aten::dim(f32[a=2, 3])",
      "aten::is_floating_point(f32[a=2])",
      "aten::is_complex(f32[a=2])",
      "aten::is_same_size(f32[a=2, 3], f32[a, 3])",
      "aten::_shape_as_tensor(f32[a=2, 3])",
      "aten::_dim_arange(f32[a=2, 3], 0)",
      "aten::is_signed(f32[a=2])",
      "aten::is_signed(u8[a=2])",
      "aten::is_contiguous(f32[a=2, 3])",
      "aten::is_contiguous(f32[a=2, 3]{1, a})",
      "aten::is_contiguous(f32[a=2, b=3, 4]{b*4, 4, 1})",
      "aten::is_contiguous(f32[a=2, 0]{5, 7})",
      "aten::is_contiguous(f32[1, 3]{7, 1})",
      "aten::is_contiguous.memory_format(f32[a=2, 3], contiguous_format)",
      "aten::is_contiguous.memory_format(f32[a=2, 3], channels_last)",
      "aten::is_contiguous.memory_format(f32[a=2, 3, 4, b=5]{12*b, 1, 3*b, 3}, channels_last)",
      "aten::is_contiguous.memory_format(f32[a=2, c=3, 4, b=5], channels_last)",
      "aten::is_contiguous.memory_format(f32[2, 3, 4, 5, 6]{360, 1, 90, 18, 3}, channels_last_3d)",
      "aten::sym_is_contiguous(f32[a=2, 3])",
  });
  ShapeEnv env;
  CHECK(run_rule("aten::_assert_async.msg(bool[], 'no')", env).empty());
  CHECK(run_rule("aten::_assert_scalar(1, 'no')", env).empty());
  CHECK(run_rule("aten::_assert_tensor_metadata(f32[2], [2], None, f32)", env).empty());
  CHECK(run_rule("aten::sym_constrain_range_for_size(3)", env).empty());
  CHECK(to_text(run_rule("aten::_functional_assert_async.msg(bool[], 'no', f32[0])", env)) == "f32[0]");
}
