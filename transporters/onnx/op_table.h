// The built-in translations, one span of rows per family of ops.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "transporters/onnx/lower.h"

namespace transporters::onnx {

struct OpRow {
  std::string_view op;  // full name, or the base name for all overloads without a row
  Outputs (*translate)(Lowering&, const AtenNode&);
};

std::span<const OpRow> activation_ops();
std::span<const OpRow> arithmetic_ops();
std::span<const OpRow> attention_ops();
std::span<const OpRow> comparison_ops();
std::span<const OpRow> complex_ops();
std::span<const OpRow> concat_ops();
std::span<const OpRow> conversion_ops();
std::span<const OpRow> convolution_ops();
std::span<const OpRow> embedding_ops();
std::span<const OpRow> factory_ops();
std::span<const OpRow> gather_ops();
std::span<const OpRow> grouped_ops();
std::span<const OpRow> index_ops();
std::span<const OpRow> loss_ops();
std::span<const OpRow> matmul_ops();
std::span<const OpRow> normalization_ops();
std::span<const OpRow> padding_ops();
std::span<const OpRow> pooling_ops();
std::span<const OpRow> random_ops();
std::span<const OpRow> recurrent_ops();
std::span<const OpRow> reduction_ops();
std::span<const OpRow> resize_ops();
std::span<const OpRow> scan_ops();
std::span<const OpRow> scatter_ops();
std::span<const OpRow> slice_ops();
std::span<const OpRow> softmax_ops();
std::span<const OpRow> sort_ops();
std::span<const OpRow> triangular_ops();
std::span<const OpRow> unary_ops();
std::span<const OpRow> unfold_ops();
std::span<const OpRow> view_ops();

// True for ops whose translation takes complex tensors as real ones with a last dimension of 2.
bool reads_pairs(std::string_view op);

// An ONNX op name as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT(google-explicit-constructor)
  constexpr std::string_view view() const { return {text, N - 1}; }
};

}  // namespace transporters::onnx
