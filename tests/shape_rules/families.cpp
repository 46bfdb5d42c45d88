#include <doctest/doctest.h>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("recurrent layers and cells") {
  check_calls(
      {
          "aten::lstm.input(f32[t=5, n=2, 3], [f32[1, n, 4], f32[1, n, 4]], [f32[16, 3], f32[16, 4], f32[16], "
          "f32[16]], "
          "true, 1, 0.0, false, false, false)",
          "aten::lstm.input(f32[n=2, t=5, 3], [f32[2, n, 4], f32[2, n, 4]], [f32[16, 3], f32[16, 4], f32[16, 3], "
          "f32[16, 4]], false, 1, 0.0, false, true, true)",
          "aten::lstm.input(f32[n=2, t=5, 3], [f32[1, n, 2], f32[1, n, 4]], [f32[16, 3], f32[16, 2], f32[2, 4]], "
          "false, "
          "1, 0.0, false, false, true)",
          "aten::gru.input(f32[t=5, n=2, 3], f32[1, n, 4], [f32[12, 3], f32[12, 4]], false, 1, 0.0, false, false, "
          "false)",
          "aten::rnn_tanh.input(f32[n=2, t=5, 3], f32[1, n, 4], [f32[4, 3], f32[4, 4]], false, 1, 0.0, false, false, "
          "true)",
          "aten::rnn_relu.input(f32[n=2, t=5, 3], f32[2, n, 4], [f32[4, 3], f32[4, 4], f32[4, 4], f32[4, 4]], false, "
          "2, "
          "0.0, false, false, true)",
          "aten::lstm_cell(f32[n=2, 3], [f32[n, 4], f32[n, 4]], f32[16, 3], f32[16, 4], f32[16], f32[16])",
          "aten::gru_cell(f32[n=2, 3], f32[n, 4], f32[12, 3], f32[12, 4], None, None)",
          "aten::rnn_tanh_cell(f32[n=2, 3], f32[n, 4], f32[4, 3], f32[4, 4], None, None)",
          "aten::pad_sequence([f32[a=2, 3], f32[b=4, 3]])",
          "aten::pad_sequence([f32[a=2, 3], f32[b=4, 3]], true)",
      },
      {.all_symbolic = false});
  check_calls(
      {"aten::_pack_padded_sequence(f32[4, 2, 3], i64[2]:(4, 2), false)",
       "aten::_pad_packed_sequence(f32[6, 3], i64[4]:(2, 2, 1, 1), true, 0.0, 5)",
       "aten::lstm.data(f32[6, 3], i64[4]:(2, 2, 1, 1), [f32[1, 2, 4], f32[1, 2, 4]], [f32[16, 3], f32[16, 4]], "
       "false, 1, 0.0, false, false)",
       "aten::gru.data(f32[6, 3], i64[4]:(2, 2, 1, 1), f32[1, 2, 4], [f32[12, 3], f32[12, 4]], false, 1, 0.0, "
       "false, false)"},
      {.may_specialize = true, .all_symbolic = false});
  check_error("aten::gru.input(f32[5, 2, 3], f32[1, 3, 4], [], false, 1, 0.0, false, false, false)",
              "expected one batch size");
}

TEST_CASE("losses") {
  check_calls({
      "aten::mse_loss(f32[a=2, b=3], f32[a, b])",
      "aten::mse_loss(f32[a=2, b=3], f32[a, b], 0)",
      "aten::l1_loss(f32[a=2, b=3], f32[a, b], 2)",
      "aten::smooth_l1_loss(f32[a=2, b=3], f32[a, b], 0)",
      "aten::huber_loss(f32[a=2, b=3], f32[a, b], 0)",
      "aten::kl_div(f32[a=2, b=3], f32[a, b], 0)",
      "aten::soft_margin_loss(f32[a=2], f32[a], 0)",
      "aten::hinge_embedding_loss(f32[a=2], f32[a], 1.0, 0)",
      "aten::poisson_nll_loss(f32[a=2], f32[a], true, false, 1e-8, 0)",
      "aten::binary_cross_entropy(f32[a=2], f32[a], None, 0)",
      "aten::binary_cross_entropy_with_logits(f32[a=2, b=3], f32[a, b], None, f32[b], 0)",
      "aten::nll_loss(f32[a=2, 5], i64[a])",
      "aten::nll_loss(f32[a=2, 5], i64[a], None, 0)",
      "aten::nll_loss_forward(f32[a=2, 5], i64[a], None, 0, -100)",
      "aten::nll_loss_forward(f32[5], i64[], None, 1, -100)",
      "aten::nll_loss2d_forward(f32[a=2, 5, 3, b=4], i64[a, 3, b], None, 0, -100)",
      "aten::nll_loss_nd(f32[a=2, 5, b=4], i64[a, b], None, 0)",
      "aten::cross_entropy_loss(f32[a=2, 5], i64[a])",
      "aten::cross_entropy_loss(f32[a=2, 5, b=3], i64[a, b], None, 0)",
      "aten::cross_entropy_loss(f32[a=2, 5], f32[a, 5], None, 0)",
      "aten::cross_entropy_loss(f32[5], i64[], None, 0)",
      "aten::cosine_embedding_loss(f32[a=2, 3], f32[a, 3], f32[a], 0.0, 0)",
      "aten::margin_ranking_loss(f32[a=2], f32[a], f32[a], 0.0, 0)",
      "aten::triplet_margin_loss(f32[a=2, 3], f32[a, 3], f32[a, 3], 1.0, 2.0, 1e-6, false, 0)",
      "aten::multi_margin_loss(f32[a=2, 5], i64[a], 1, 1, None, 0)",
      "aten::multilabel_margin_loss_forward(f32[a=2, 5], i64[a, 5], 0)",
  });
}

TEST_CASE("Fourier transforms") {
  check_calls(
      {
          "aten::fft_fft(f32[a=2, b=8])",
          "aten::fft_fft(c64[a=2, b=8], 6, 0)",
          "aten::fft_fft(i64[a=8])",
          "aten::fft_ifft(c64[a=2, b=8])",
          "aten::fft_rfft(f32[a=2, b=8])",
          "aten::fft_rfft(f64[a=2, b=7], 5)",
          "aten::fft_irfft(c64[a=2, b=5])",
          "aten::fft_irfft(c64[a=2, 5], 9)",
          "aten::fft_hfft(c64[a=2, b=5])",
          "aten::fft_ihfft(f32[a=2, b=8])",
          "aten::fft_fft2(f32[n=2, a=4, b=5])",
          "aten::fft_ifft2(c64[n=2, a=4, b=5], [6, 7])",
          "aten::fft_rfft2(f32[n=2, a=4, b=5])",
          "aten::fft_irfft2(c64[n=2, a=4, b=5])",
          "aten::fft_fftn(f32[n=2, a=4, b=5])",
          "aten::fft_fftn(f32[n=2, a=4, b=5], [6])",
          "aten::fft_rfftn(f32[n=2, a=4, b=5], None, [0, 1])",
          "aten::fft_irfftn(c64[n=2, a=4, b=5], [6, -1], [2, 1])",
          "aten::fft_fftshift(f32[a=2, b=3])",
          "aten::_fft_c2c(c64[a=2, b=3], [1], 0, true)",
          "aten::_fft_r2c(f32[a=2, b=8], [0, 1], 0, true)",
          "aten::_fft_r2c(f32[a=2, b=8], [1], 0, false)",
          "aten::_fft_c2r(c64[a=2, 5], [1], 0, 8)",
          "aten::stft(f32[n=2, t=64], 16, 4, 16, f32[16], return_complex=true)",
          "aten::stft(f32[t=64], 16, return_complex=false)",
          "aten::stft.center(f32[n=2, t=64], 16, 4, 16, f32[16], true, 'reflect', false, true, true)",
          "aten::stft(f32[n=2, t=64], 16, 4, 8, f32[8], onesided=false, return_complex=true)",
          "aten::istft(c64[n=2, 9, 17], 16, 4)",
          "aten::istft(c64[n=2, 9, 17], 16, 4, length=60)",
      },
      {.least = 4, .all_symbolic = false});
}

TEST_CASE("distances and statistics") {
  check_calls(
      {
          "aten::cdist(f32[n=2, a=3, 4], f32[n, b=5, 4])",
          "aten::cdist(f32[a=3, 4], f32[n=2, b=5, 4], 1.0)",
          "aten::_cdist_forward(f32[a=3, 4], f32[b=5, 4], 2.0, None)",
          "aten::_euclidean_dist(f32[a=3, 4], f32[b=5, 4])",
          "aten::pdist(f32[a=4, b=3])",
          "aten::pairwise_distance(f32[a=2, b=3], f32[a, b])",
          "aten::pairwise_distance(f32[a=2, b=3], f32[a, b], keepdim=true)",
          "aten::cosine_similarity(f32[a=2, b=3], f32[a, b])",
          "aten::cosine_similarity(f32[a=2, b=3], f32[b], 0)",
          "aten::dist(f32[a=2, b=3], f32[b])",
          "aten::cross(f32[a=2, 3], f32[a, 3], 1)",
          "aten::linalg_cross(f32[a=2, 3], f32[1, 3])",
          "aten::cov(f32[3, b=5])",
          "aten::corrcoef(f32[3, b=5])",
          "aten::cov(f32[b=5])",
          "aten::trapezoid.dx(f32[a=2, b=3])",
          "aten::trapezoid.x(f32[a=2, b=3], f32[b], dim=1)",
          "aten::cumulative_trapezoid.dx(f32[a=2, b=3], dim=0)",
      },
      {.least = 2});
  check_error("aten::linalg_cross(f32[2, 3], f32[3])", "of one rank, got f32[2, 3] and f32[3]");
}

TEST_CASE("linear algebra") {
  check_calls(
      {
          "aten::inverse(f32[n=2, 3, 3])",
          "aten::linalg_inv(f32[a=3, a])",
          "aten::linalg_inv_ex(f32[n=2, 3, 3])",
          "aten::linalg_cholesky(f32[n=2, a=3, a])",
          "aten::linalg_cholesky_ex(f32[n=2, a=3, a])",
          "aten::cholesky(f32[a=3, a])",
          "aten::cholesky_inverse(f32[a=3, a])",
          "aten::cholesky_solve(f32[a=3, b=2], f32[a, a])",
          "aten::linalg_matrix_exp(f32[n=2, a=3, a])",
          "aten::linalg_matrix_power(f32[n=2, a=3, a], 2)",
          "aten::linalg_pinv.atol_rtol_tensor(f32[n=2, a=3, b=4])",
          "aten::pinverse(f32[a=3, b=4])",
          "aten::det(f32[n=2, a=3, a])",
          "aten::linalg_det(f32[a=3, a])",
          "aten::_linalg_det(f32[n=2, a=3, a])",
          "aten::logdet(f32[n=2, a=3, a])",
          "aten::linalg_slogdet(c64[n=2, a=3, a])",
          "aten::_linalg_slogdet(f32[n=2, a=3, a])",
          "aten::linalg_qr(f32[n=2, a=3, b=4])",
          "aten::linalg_qr(f32[n=2, a=4, b=3], 'complete')",
          "aten::linalg_qr(f32[a=4, b=3], 'r')",
          "aten::qr(f32[a=4, b=3], false)",
          "aten::geqrf(f32[a=4, b=3])",
          "aten::linalg_svd(f32[n=2, a=4, b=3])",
          "aten::linalg_svd(c64[n=2, a=4, b=3], false)",
          "aten::_linalg_svd(f32[a=4, b=3], false, false)",
          "aten::svd(f32[n=2, a=4, b=3])",
          "aten::svd(f32[a=4, b=3], false)",
          "aten::svd(f32[a=4, b=3], true, false)",
          "aten::linalg_svdvals(f32[n=2, a=4, b=3])",
          "aten::linalg_eigh(f32[n=2, a=3, a])",
          "aten::_linalg_eigh(f32[a=3, a], 'L', false)",
          "aten::linalg_eigvalsh(c64[a=3, a])",
          "aten::linalg_eig(f32[n=2, a=3, a])",
          "aten::linalg_eigvals(f32[a=3, a])",
          "aten::linalg_lu_factor(f32[n=2, a=4, b=3])",
          "aten::linalg_lu_factor_ex(f32[a=4, b=3])",
          "aten::_lu_with_info(f32[a=4, b=3])",
          "aten::linalg_lu(f32[n=2, a=4, b=3])",
          "aten::lu_unpack(f32[a=3, a], i32[3]:(1, 2, 3))",
          "aten::linalg_ldl_factor(f32[a=3, a])",
          "aten::linalg_ldl_factor_ex(f32[n=2, a=3, a])",
          "aten::linalg_solve(f32[n=2, a=3, a], f32[n, a, b=2])",
          "aten::linalg_solve(f32[a=3, a], f32[a])",
          "aten::linalg_solve(f32[2, 3, 3], f32[2, 3])",
          "aten::linalg_solve_ex(f32[n=2, a=3, a], f32[n, a, 4])",
          "aten::linalg_solve(f32[a=3, a], f32[b=2, a], left=false)",
          "aten::_linalg_solve_ex(f32[n=2, a=3, a], f32[n, a, 4])",
          "aten::linalg_solve_triangular(f32[n=2, a=3, a], f32[a, b=2], upper=true)",
          "aten::triangular_solve(f32[a=3, b=2], f32[a, a])",
          "aten::linalg_householder_product(f32[a=4, 3], f32[3])",
          "aten::linalg_matrix_rank.atol_rtol_float(f32[n=2, a=3, b=4])",
          "aten::linalg_cond(f32[n=2, a=3, a])",
          "aten::linalg_tensorinv(f32[2, 3, 6])",
          "aten::linalg_tensorsolve(f32[2, 3, 6], f32[2, 3])",
          "aten::linalg_tensorsolve(f32[2, 6, 3], f32[2, 3], [1])",
          "aten::linalg_tensorsolve(f32[2, 3, 6], f32[2, 3])",
          "aten::linalg_tensorsolve(f32[2, 6, 3], f32[2, 3], [1])",
      },
      {.least = 2, .all_symbolic = false});
  check_error("aten::linalg_inv(f32[2, 3])", "expected square matrices, got f32[2, 3]");
}

TEST_CASE("a sample of 1 on a dynamic axis broadcasts, and the axis is fixed by name") {
  ShapeEnv env;
  symbolic::SymbolInfo info;
  info.name = "n";
  info.hint = 4;
  info.sample = 1;
  info.source = "x dim 0";
  env.add_symbol(info);
  CHECK(to_text(run_rule("aten::add.Tensor(f32[n, 3], f32[5, 3])", env)) == "f32[5, 3]");
  REQUIRE(env.specializations().size() == 1);
  CHECK(env.specializations()[0].symbol == "n");
  CHECK(env.specializations()[0].value == 1);
}

TEST_CASE("sizes that agree at the example are recorded as equal") {
  ShapeEnv env;
  CHECK(to_text(run_rule("aten::add.Tensor(f32[a=4, 3], f32[b=4, 3])", env)) == "f32[a, 3]");
  CHECK(env.equalities().size() == 1);
  CHECK(env.specializations().empty());
}
