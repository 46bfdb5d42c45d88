#include <ATen/ATen.h>

#include <cmath>

#include "transporters/verify/difference.h"

namespace transporters {
namespace {

// Complex numbers are compared part by part.
at::Tensor as_double(const at::Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).to(at::kDouble);
}

}  // namespace

Difference largest_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes() || actual.is_complex() != expected.is_complex()) return {INFINITY, INFINITY};
  if (actual.numel() == 0) return {};
  const at::Tensor a = as_double(actual);
  const at::Tensor b = as_double(expected);
  const at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  if (same.all().item<bool>()) return {};
  const at::Tensor difference = (a - b).abs().masked_fill(same, 0);
  if (!difference.isfinite().all().item<bool>()) return {INFINITY, INFINITY};
  const double absolute = difference.max().item<double>();
  const double largest = b.abs().nan_to_num(0, 0, 0).max().item<double>();
  return {absolute, absolute / std::max(largest, 1e-30)};
}

double default_tolerance(at::ScalarType dtype) {
  if (dtype == at::kHalf) return 1e-2;
  if (dtype == at::kBFloat16) return 5e-2;
  return 1e-4;
}

}  // namespace transporters
