#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("layer and RMS norm") {
  check_calls({
      "aten::layer_norm(f32[a=2, b=3, 8], [8], f32[8], f32[8])",
      "aten::layer_norm(f32[a=2, 4, 8], [4, 8])",
      "aten::native_layer_norm(f32[a=2, b=3, 8], [8], f32[8], f32[8], 1e-5)",
      "aten::native_layer_norm(f32[a=2, 4, 8], [4, 8], None, None, 1e-5)",
      "aten::native_layer_norm(bf16[a=2, 8], [8], f32[8], f32[8], 1e-5)",
      "aten::native_layer_norm(bf16[a=2, 8], [8], bf16[8], bf16[8], 1e-5)",
      "aten::rms_norm(f32[a=2, b=3, 8], [8], f32[8], 1e-6)",
      "aten::rms_norm(f32[a=2, b=3, 8], [8])",
      "aten::_fused_rms_norm(f32[a=2, b=3, 8], [8], f32[8], 1e-6)",
  });
  check_error("aten::layer_norm(f32[2, 8], [8], f32[4])", "expected weight of normalized_shape, got [4] and [8]");
  check_error("aten::layer_norm(f32[2, 8], [4])", "the last sizes of f32[2, 8], got [4]");
}

TEST_CASE("group, batch and instance norm") {
  check_calls({
      "aten::group_norm(f32[a=2, 8, b=3], 4)",
      "aten::group_norm(f32[a=2, 8, b=3, 5], 2, f32[8], f32[8])",
      "aten::native_group_norm(f32[a=2, 8, 3, 5], f32[8], f32[8], a, 8, 15, 4, 1e-5)",
      "aten::batch_norm(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], false, 0.1, 1e-5, false)",
      "aten::instance_norm(f32[a=2, 8, 3], None, None, None, None, true, 0.1, 1e-5, false)",
      "aten::native_batch_norm(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], true, 0.1, 1e-5)",
      "aten::native_batch_norm(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], false, 0.1, 1e-5)",
      "aten::_native_batch_norm_legit.no_stats(f32[a=2, 8, 3], f32[8], f32[8], true, 0.1, 1e-5)",
      "aten::_native_batch_norm_legit_no_training(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], 0.1, 1e-5)",
      "aten::_native_batch_norm_legit_functional(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], true, 0.1, 1e-5)",
      "aten::_batch_norm_no_update(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], 0.1, 1e-5)",
      "aten::_batch_norm_with_update_functional(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], 0.1, 1e-5)",
      "aten::_weight_norm_interface(f32[8, a=3], f32[8, 1])",
      "aten::_weight_norm(f32[8, a=3], f32[8, 1])",
      "aten::_weight_norm(f32[a=3, 8], f32[1, 8], 1)",
      "aten::norm_except_dim(f32[8, a=3], 2, 0)",
      "aten::norm_except_dim(f32[8, a=3], 2, -1)",
      "aten::_batch_norm_impl_index(f32[a=2, 8, 3], f32[8], f32[8], f32[8], f32[8], false, 0.1, 1e-5, false)",
      "aten::renorm(f32[a=2, b=3], 2, 0, 1)",
  });
  check_error("aten::batch_norm(f32[2, 8, 3], f32[8], f32[8], f32[4], f32[8], false, 0.1, 1e-5, false)",
              "expected running_mean of one element a channel, got [4] and [8]");
  check_error("aten::native_group_norm(f32[2, 8, 3], None, None, 2, 8, 6, 4, 1e-5)",
              "expected N, C and HxW of f32[2, 8, 3], got [2, 8, 6] and [2, 8, 3]");
  check_error("aten::_weight_norm_interface(f32[8, 3], f32[4, 1])",
              "expected g of one element a slice of v, got [4, 1] and [8, 1]");
  check_error("aten::group_norm(f32[2, 7, 3], 2)", "expected channels that 2 groups divide, got f32[2, 7, 3]");
}
