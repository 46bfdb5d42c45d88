#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("matrix products") {
  check_calls({
      "aten::mm(f32[a=2, b=3], f32[b, c=4])",
      "aten::_int_mm(i8[a=20, 8], i8[8, 8])",
      "aten::bmm(f32[n=2, a=3, b=4], f32[n, b, c=5])",
      "aten::matmul(f32[a=2, b=3], f32[b, c=4])",
      "aten::matmul(f32[b=3], f32[b, c=4])",
      "aten::matmul(f32[a=2, b=3], f32[b])",
      "aten::matmul(f32[b=3], f32[b])",
      "aten::matmul(f32[n=2, h=4, a=3, b=5], f32[n, h, b, c=6])",
      "aten::matmul(f32[n=2, 1, a=3, b=5], f32[4, b, c=6])",
      "aten::matmul(f32[n=2, a=3, b=5], f32[b])",
      "aten::matmul(f32[b=5], f32[n=2, 3, b, 4])",
      "aten::linalg_matmul(f32[n=2, a=3, b=5], f32[b, 2])",
      "aten::linear(f32[n=2, a=3, 8], f32[4, 8], f32[4])",
      "aten::linear(f32[8], f32[4, 8])",
      "aten::linear(f32[a=2, 8], f32[8])",
      "aten::linear(bf16[a=2, 8], bf16[o=4, 8])",
      "aten::addmm(f32[c=4], f32[a=2, b=3], f32[b, c])",
      "aten::addmm(f32[a=2, 1], f32[a, b=3], f32[b, c=4], beta=1, alpha=2)",
      "aten::addmm(f32[], f32[a=2, b=3], f32[b, 4])",
      "aten::_addmm_activation(f32[4], f32[a=2, b=3], f32[b, 4])",
      "aten::baddbmm(f32[1, 1, 1], f32[n=2, a=3, b=4], f32[n, b, c=5])",
      "aten::addbmm(f32[a=3, c=5], f32[n=2, a, b=4], f32[n, b, c])",
      "aten::addmv(f32[a=2], f32[a, b=3], f32[b])",
      "aten::addr(f32[a=2, b=3], f32[a], f32[b])",
      "aten::mv(f32[a=2, b=3], f32[b])",
      "aten::dot(f32[a=2], f32[a])",
      "aten::vdot(c64[a=2], c64[a])",
      "aten::outer(f32[a=2], i64[b=3])",
      "aten::ger(f32[a=2], f32[b=3])",
      "aten::linalg_vecdot(f32[a=2, b=3], f32[b])",
      "aten::linalg_vecdot(f32[a=2, b=3], f32[a, b], dim=0)",
      "aten::inner(f32[a=2, b=3], f32[c=4, b])",
      "aten::inner(f32[a=2, b=3], f32[])",
      "aten::tensordot(f32[a=2, b=3, c=4], f32[c, b, d=5], [1, 2], [1, 0])",
      "aten::kron(f32[a=2, b=3], f32[2, 1, 4])",
      "aten::chain_matmul([f32[a=2, b=3], f32[b, c=4], f32[c, 5]])",
      "aten::linalg_multi_dot([f32[b=3], f32[b, c=4], f32[c]])",
      "aten::linalg_multi_dot([f32[a=2, b=3], f32[b, 4]])",
      "aten::bilinear(f32[n=2, 3], f32[n, 4], f32[5, 3, 4], f32[5])",
      "aten::_trilinear(f32[n=2, a=3], f32[n, b=4], f32[a, b, c=5], [2, 3], [1, 3], [0], [1])",
      "aten::bilinear(f32[n=2, m=3, 3], f32[n, m, 4], f32[5, 3, 4])",
  });
  // The CPU kernel does not check that its blocks divide the weight.
  check_calls({"aten::_weight_int8pack_mm(bf16[a=2, 32], i8[16, 32], bf16[16])"}, {.all_symbolic = false});
}

TEST_CASE("grouped products") {
  check_calls({"aten::_grouped_mm(bf16[g=2, a=3, 16], bf16[g, 16, 8])",
               "aten::_grouped_mm(bf16[8, 16], bf16[2, 16, 24], i32[2]:(3, 8))",
               "aten::_grouped_mm(bf16[8, 16], bf16[16, 24], i32[2]:(8, 16))",
               "aten::_grouped_mm(bf16[2, 8, 16], bf16[16, 24], i32[2]:(8, 24))"},
              {.all_symbolic = false});
  ShapeEnv env;
  CHECK(to_text(run_rule("aten::_grouped_mm(bf16[t=6, 16], bf16[4, 16, 24], i32[4])", env)) == "bf16[t, 24]");
  check_error("aten::_grouped_mm(bf16[8, 16], bf16[2, 16, 24])", "expected offs");
}

TEST_CASE("einsum") {
  check_calls({
      "aten::einsum('ij,jk->ik', [f32[a=2, b=3], f32[b, c=4]])",
      "aten::einsum('ij,jk', [f32[a=2, b=3], f32[b, c=4]])",
      "aten::einsum('ii->i', [f32[a=3, a]])",
      "aten::einsum('ii', [f32[a=3, a]])",
      "aten::einsum('...ij,...jk->...ik', [f32[n=2, a=3, b=4], f32[n, b, 5]])",
      "aten::einsum('...ij,...jk', [f32[n=2, 1, a=3, b=4], f32[6, b, 5]])",
      "aten::einsum('bhqd,bhkd->bhqk', [f32[n=2, 4, q=3, 8], f32[n, 4, k=5, 8]])",
      "aten::einsum(' b i , j i -> b j ', [f32[n=2, 3], f32[4, 3]])",
      "aten::einsum('i,j->ij', [f32[a=2], f32[b=3]])",
      "aten::einsum('ij->', [f32[a=2, b=3]])",
      "aten::einsum('bA', [f32[a=2, b=3]])",
  });
  check_error("aten::einsum('ij,jk->ik', [f32[2, 3]])", "expected 2 operands");
  check_error("aten::einsum('ij->k', [f32[2, 3]])", "label 'k'");
  check_error("aten::einsum('ij->i', [f32[2, 3, 4]])", "of rank 2");
}

TEST_CASE("products that do not contract name both shapes") {
  check_error("aten::mm(f32[2, 3], f32[4, 5])", "got f32[2, 3] and f32[4, 5]");
  check_error("aten::mm(f32[2, 3, 4], f32[4, 5])", "expected self of rank 2, got f32[2, 3, 4]");
  check_error("aten::linear(f32[2, 3], f16[4, 3])", "of one dtype, got f32[2, 3] and f16[4, 3]");
  check_error("aten::addmm(f32[3, 5], f32[2, 3], f32[3, 5])", "and [2, 5]");
  check_error("aten::linear(f32[1, 3], f32[1, 3], f32[4])", "expected bias that broadcasts to the product");
  check_error("aten::_weight_int8pack_mm(bf16[2, 32], i8[16, 32], bf16[8])", "expected one scale a row of mat2");
  check_error("aten::bmm(f32[2, 3, 4], f32[3, 4, 5])", "expected one batch size");
}

TEST_CASE("attention") {
  check_calls({
      "aten::scaled_dot_product_attention(f32[n=2, 4, q=3, 8], f32[n, 4, k=5, 8], f32[n, 4, k, 8])",
      "aten::scaled_dot_product_attention(f32[n=2, 4, q=3, 8], f32[n, 4, k=5, 8], f32[n, 4, k, 6], f32[n, 1, q, k])",
      "aten::scaled_dot_product_attention(f32[n=2, 4, q=3, 8], f32[n, 2, k=5, 8], f32[n, 2, k, 8], enable_gqa=true)",
      "aten::scaled_dot_product_attention(f32[n=2, 4, q=3, 8], f32[n, 4, q, 8], f32[n, 4, q, 8], is_causal=true)",
      "aten::scaled_dot_product_attention(f32[n=2, q=3, 8], f32[n, k=5, 8], f32[n, k, 8], bool[q, k])",
      "aten::_scaled_dot_product_attention_math(f32[n=2, 4, q=3, 8], f32[n, 4, k=5, 8], f32[n, 4, k, 8])",
      "aten::_scaled_dot_product_flash_attention_for_cpu(f32[n=2, 4, q=3, 8], f32[n, 4, k=5, 8], f32[n, 4, k, 8])",
      "aten::_scaled_dot_product_flash_attention_for_cpu(bf16[n=2, 4, q=3, 8], bf16[n, 4, k=5, 8], bf16[n, 4, k, 8])",
  });
  check_error("aten::scaled_dot_product_attention(f32[2, 4, 3, 8], f32[2, 4, 5, 6], f32[2, 4, 5, 6])",
              "expected query and key of one embedding size");
}
