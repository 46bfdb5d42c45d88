#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("convolutions") {
  check_calls(
      {
          "aten::conv1d(f32[n=2, 4, t=9], f32[6, 4, 3], f32[6])",
          "aten::conv1d(f32[n=2, 4, t=9], f32[6, 4, 3], None, [2], [1], [2])",
          "aten::conv1d(f32[4, t=9], f32[6, 4, 3])",
          "aten::conv2d(f32[n=2, 3, h=7, w=9], f32[8, 3, 3, 3], f32[8], [2, 2], [1, 1])",
          "aten::conv2d(f32[n=2, 4, h=7, w=9], f32[8, 2, 3, 2], None, 2, 1, 2, 2)",
          "aten::conv2d(f32[3, h=7, w=9], f32[8, 3, 1, 1])",
          "aten::conv3d(f32[n=2, 3, 5, h=7, w=9], f32[8, 3, 2, 3, 3])",
          "aten::conv1d.padding(f32[n=2, 4, t=9], f32[6, 4, 3], None, [1], 'same')",
          "aten::conv1d.padding(f32[n=2, 4, t=9], f32[6, 4, 4], None, [1], 'same', [2])",
          "aten::conv2d.padding(f32[n=2, 3, h=7, w=9], f32[8, 3, 3, 3], None, [2, 1], 'valid')",
          "aten::convolution(f32[n=2, 3, h=7, w=9], f32[8, 3, 3, 3], None, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)",
          "aten::convolution(f32[n=2, 4, h=7, w=9], f32[4, 3, 3, 3], f32[6], [2, 2], [1, 1], [1, 1], true, [1, 1], 2)",
          "aten::_convolution(f32[n=2, 3, t=7], f32[8, 3, 3], None, [1], [1], [1], false, [0], 1, false, false, false, "
          "false)",
          "aten::_convolution_mode(f32[n=2, 3, t=7], f32[8, 3, 3], None, [1], 'same', [1], 1)",
          "aten::conv_transpose1d(f32[n=2, 4, t=9], f32[4, 6, 3], f32[6], [2], [1], [1])",
          "aten::conv_transpose2d.input(f32[n=2, 4, h=5, w=6], f32[4, 3, 3, 3], None, 2, 1, 1, 2)",
          "aten::conv_transpose2d.input(f32[4, h=5, w=6], f32[4, 3, 4, 4], None, [2, 3], [1, 1], [0, 2], 1, [1, 2])",
          "aten::conv_transpose3d.input(f32[n=2, 4, 3, h=5, w=6], f32[4, 3, 2, 3, 3], None, 2)",
          "aten::conv_tbc(f32[t=9, n=2, 4], f32[3, 4, 6], f32[6], 1)",
          "aten::slow_conv_dilated2d(f32[n=2, 3, h=7, w=9], f32[8, 3, 3, 3], [3, 3], None, [1, 1], [1, 1], [2, 2])",
          "aten::slow_conv_transpose2d(f32[n=2, 4, h=5, w=6], f32[4, 3, 3, 3], [3, 3])",
          "aten::thnn_conv2d(f32[n=2, 3, h=7, w=9], f32[8, 3, 3, 3], [3, 3])",
      },
      {.all_symbolic = false});
  check_error("aten::conv2d(f32[2, 4, 7, 7], f32[8, 3, 3, 3])", "the input's channels to be those of the weight");
  check_error("aten::conv1d(f32[2, 3, 4, 5], f32[8, 3, 3])", "expected input of rank 2 or 3");
  check_error("aten::conv1d(f32[2, 3, 2], f32[8, 3, 5])", "a kernel that fits the padded input");
  check_error("aten::conv1d.padding(f32[2, 3, 9], f32[8, 3, 5], None, [2], 'same')", "needs stride 1");
}

TEST_CASE("pooling") {
  check_calls({
      "aten::max_pool1d(f32[n=2, 3, t=9], [3])",
      "aten::max_pool2d(f32[n=2, 3, h=7, w=9], [3, 2], [2, 2], [1, 1])",
      "aten::max_pool2d(f32[n=2, 3, h=7, w=9], 3, 2, 1, 1, true)",
      "aten::max_pool2d(f32[n=2, 3, h=8, w=7], 2, [], 0, 1, true)",
      "aten::max_pool3d(f32[n=2, 3, 5, h=7, w=9], 2)",
      "aten::max_pool2d_with_indices(f32[n=2, 3, h=7, w=9], [3, 3], [2, 2], [1, 1], [2, 2])",
      "aten::max_pool2d_with_indices(f32[3, h=7, w=9], [2, 2])",
      "aten::max_pool1d_with_indices(f32[n=2, 3, t=9], [3], [2])",
      "aten::max_pool3d_with_indices(f32[n=2, 3, 5, h=7, w=9], [2, 2, 2], [], [0, 0, 0], [1, 1, 1], true)",
      "aten::avg_pool1d(f32[n=2, 3, t=9], [3], [2], [1], true)",
      "aten::avg_pool2d(f32[n=2, 3, h=7, w=9], [3, 3], [2, 2], [1, 1], true, false)",
      "aten::avg_pool2d(f32[n=2, 3, h=7, w=9], 2)",
      "aten::avg_pool3d(f32[n=2, 3, 5, h=7, w=9], [2, 2, 2], [3, 3, 3], [1, 1, 1], true)",
      "aten::adaptive_avg_pool1d(f32[n=2, 3, t=9], [4])",
      "aten::adaptive_avg_pool2d(f32[n=2, 3, h=7, w=9], [2, 3])",
      "aten::adaptive_avg_pool3d(f32[n=2, 3, 5, h=7, w=9], [1, 1, 1])",
      "aten::_adaptive_avg_pool2d(f32[n=2, 3, h=7, w=9], [1, 1])",
      "aten::adaptive_max_pool1d(f32[n=2, 3, t=9], [4])",
      "aten::adaptive_max_pool2d(f32[n=2, 3, h=7, w=9], [2, 3])",
      "aten::fractional_max_pool2d(f32[n=2, 3, 7, 9], [2, 2], [3, 4], f32[n, 3, 2])",
      "aten::max_unpool2d(f32[n=2, 3, 2, 2], i64[n, 3, 2, 2], [4, 4])",
  });
  check_error("aten::avg_pool2d(f32[2, 3], 2)", "expected input of rank 3 or 4, got f32[2, 3]");
  check_error("aten::max_pool2d(f32[2, 3, 2, 2], 5)", "a kernel that fits the padded input");
}

TEST_CASE("padding") {
  check_calls({
      "aten::constant_pad_nd(f32[n=2, h=7, w=9], [1, 2])",
      "aten::constant_pad_nd(f32[n=2, h=7, w=9], [1, 2, 0, 3], 1.5)",
      "aten::constant_pad_nd(f32[n=2, h=7, w=9], [-1, 0, 0, -2])",
      "aten::constant_pad_nd(f32[n=2, w=9], [0, w])",
      "aten::pad(f32[n=2, 3, w=9], [1, 2], 'reflect')",
      "aten::pad(f32[n=2, 3, w=9], [1, 2], 'constant', 0.0)",
      "aten::reflection_pad1d(f32[n=2, 3, w=9], [1, 2])",
      "aten::reflection_pad2d(f32[n=2, 3, h=7, w=9], [1, 2, 2, 1])",
      "aten::reflection_pad3d(f32[n=2, 3, 5, h=7, w=9], [1, 2, 2, 1, 1, 1])",
      "aten::replication_pad1d(f32[n=2, 3, w=9], [1, 2])",
      "aten::replication_pad2d(f32[n=2, 3, h=7, w=9], [1, 2, 0, 1])",
      "aten::replication_pad3d(f32[n=2, 3, 5, h=7, w=9], [1, 2, 0, 1, 0, 0])",
      "aten::_pad_circular(f32[n=2, 3, w=9], [1, 2])",
  });
  check_error("aten::constant_pad_nd(f32[3], [1, 1, 1, 1])", "for at most 1 dims");
  check_error("aten::constant_pad_nd(f32[3], [-2, -2])", "padding that leaves elements");
}

TEST_CASE("interpolation") {
  check_calls(
      {
          "aten::upsample_nearest1d(f32[n=2, 3, t=9], [18])",
          "aten::upsample_nearest1d.vec(f32[n=2, 3, t=9], None, [2.0])",
          "aten::upsample_nearest2d.vec(f32[n=2, 3, h=7, w=9], [h*2, w*2], None)",
          "aten::upsample_nearest2d.vec(f32[n=2, 3, h=7, w=9], None, [2.0, 0.5])",
          "aten::upsample_nearest2d.vec(f32[n=2, 3, h=7, w=9], None, [1.3, 2.7])",
          "aten::upsample_nearest2d(f32[n=2, 3, h=7, w=9], [14, 18], 2.0, 2.0)",
          "aten::upsample_nearest3d.vec(f32[n=2, 3, 4, h=7, w=9], None, [2.0, 1.5, 2.0])",
          "aten::_upsample_nearest_exact2d.vec(f32[n=2, 3, h=7, w=9], None, [0.75, 2.0])",
          "aten::upsample_linear1d(f32[n=2, 3, t=9], [18], false)",
          "aten::upsample_bilinear2d.vec(f32[n=2, 3, h=7, w=9], None, false, [0.3, 1.7])",
          "aten::upsample_bilinear2d(f32[n=2, 3, h=7, w=9], [14, 18], true)",
          "aten::upsample_bicubic2d.vec(f32[n=2, 3, h=7, w=9], [5, w], false, None)",
          "aten::_upsample_bilinear2d_aa(f32[n=2, 3, h=7, w=9], [5, 5], false)",
          "aten::_upsample_bicubic2d_aa.vec(f32[n=2, 3, h=7, w=9], None, false, [0.5, 0.5])",
          "aten::upsample_trilinear3d(f32[n=2, 3, 4, h=7, w=9], [2, 3, 4], false)",
      },
      {.least = 4});
  check_error("aten::upsample_nearest2d.vec(f32[2, 3, 4, 5], None, None)", "either output_size or scale_factors");
}

TEST_CASE("rearrangements and samplings of images") {
  check_calls({
      "aten::pixel_shuffle(f32[n=2, 8, h=3, w=4], 2)",
      "aten::pixel_shuffle(f32[4*c, h=3, w=4], 2)",
      "aten::pixel_unshuffle(f32[n=2, 3, 2*h, 2*w], 2)",
      "aten::channel_shuffle(f32[n=2, 8, h=3, w=4], 2)",
      "aten::native_channel_shuffle(f32[n=2, 8, h=3, w=4], 2)",
      "aten::im2col(f32[n=2, 3, h=7, w=9], [3, 2], [1, 1], [1, 0], [2, 2])",
      "aten::col2im(f32[n=2, 12, 12], [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])",
      "aten::grid_sampler(f32[n=2, 3, h=7, w=9], f32[n, 4, 5, 2], 0, 0, false)",
      "aten::grid_sampler_2d(f32[n=2, 3, h=7, w=9], f32[n, a=4, b=5, 2], 0, 0, false)",
      "aten::grid_sampler_3d(f32[n=2, 3, 4, h=7, w=9], f32[n, 2, a=4, b=5, 3], 0, 0, false)",
      "aten::affine_grid_generator(f32[n=2, 2, 3], [n, 3, 4, 5], false)",
      "aten::affine_grid_generator(f32[n=2, 3, 4], [n, 3, 4, 5, 6], false)",
  });
  check_error("aten::pixel_shuffle(f32[2, 6, 3, 4], 2)", "expected channels that 4 divides, got f32[2, 6, 3, 4]");
}
