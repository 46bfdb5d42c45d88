// Normalisations. Statistics of half-precision tensors are computed in single precision: squares overflow otherwise.
#include <cmath>
#include <limits>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

constexpr int64_t kFloat = static_cast<int64_t>(DataType::FLOAT);

Value* or_filled(Lowering& l, const AtenNode& n, std::string_view argument, double value, ScalarType dtype,
                 const std::vector<Expr>& sizes) {
  if (Value* given = l.input_or_null(n, argument, dtype)) return given;
  const std::vector<Expr> none;
  std::vector<int64_t> dims;
  for (const Expr& size : sizes) dims.push_back(size.as_integer().value_or(-1));
  const bool is_static = std::find(dims.begin(), dims.end(), -1) == dims.end();
  return is_static ? l.filled(value, dtype, dims) : l.expand(l.scalar(value, dtype), none, sizes);
}

Outputs layer_norm(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const auto normalized = n.sizes("normalized_shape");
  const size_t statistics = n.outputs().size() > 1 && (is_used(n.outputs()[1]) || is_used(n.outputs()[2])) ? 2 : 0;
  std::vector<Value*> inputs = {l.input(n, "input", dtype), or_filled(l, n, "weight", 1, dtype, normalized)};
  if (Value* bias = l.input_or_null(n, "bias", dtype)) inputs.push_back(bias);
  Outputs outputs = l.emit_many("LayerNormalization", inputs,
                                {{"axis", -static_cast<int64_t>(normalized.size())},
                                 {"epsilon", static_cast<float>(n.real("eps"))},
                                 {"stash_type", kFloat}},
                                1 + statistics);
  for (size_t i = 1; i < outputs.size(); ++i) outputs[i]->type = DataType::FLOAT;
  return outputs;
}

std::vector<int64_t> trailing(int64_t rank, size_t count) {
  std::vector<int64_t> dims;
  for (auto i = rank - static_cast<int64_t>(count); i < rank; ++i) dims.push_back(i);
  return dims;
}

struct RootMeanSquare {
  Value* normalized;  // in the type computed in
  Value* reciprocal;  // 1 / root, dims kept
};

// x / sqrt(mean(x^2) + eps), in the form that ONNX Runtime fuses.
RootMeanSquare divide_by_root_mean_square(Lowering& l, Value* x, const std::vector<int64_t>& dims, double eps) {
  const ScalarType compute = Lowering::dtype(x);
  Value* mean = l.reduce("ReduceMean", l.emit("Pow", {x, l.scalar(2, compute)}), dims, true);
  Value* root = l.emit("Sqrt", {l.emit("Add", {mean, l.scalar(eps, compute)})});
  return {l.emit("Div", {x, root}), root};
}

// ONNX has RMSNormalization since opset 23.
Outputs rms_norm(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const ScalarType compute = is_half(dtype) ? ScalarType::Float : dtype;
  const auto normalized = n.sizes("normalized_shape");
  const double smallest = dtype == ScalarType::Double ? std::numeric_limits<double>::epsilon()
                                                      : static_cast<double>(std::numeric_limits<float>::epsilon());
  const double eps = n.real_or_none("eps").value_or(smallest);
  const bool wants_reciprocal = n.outputs().size() > 1 && is_used(n.outputs()[1]);
  if (l.opset() >= 23 && !wants_reciprocal) {
    return {l.emit("RMSNormalization", {l.input(n, "input", dtype), or_filled(l, n, "weight", 1, dtype, normalized)},
                   {{"axis", -static_cast<int64_t>(normalized.size())},
                    {"epsilon", static_cast<float>(eps)},
                    {"stash_type", kFloat}})};
  }
  const auto dims = trailing(rank(n.tensor("input")), normalized.size());
  auto [y, root] = divide_by_root_mean_square(l, l.input(n, "input", compute), dims, eps);
  y = l.cast(y, dtype);
  if (Value* weight = l.input_or_null(n, "weight", dtype)) y = l.emit("Mul", {y, weight});
  return {y, wants_reciprocal ? l.emit("Reciprocal", {root}) : nullptr};
}

// Scale and shift per channel (dimension 1).
Value* scale_channels(Lowering& l, const AtenNode& n, Value* x, std::string_view scale, std::string_view shift,
                      int64_t rank) {
  const ScalarType dtype = Lowering::dtype(x);
  const auto per_channel = [&](Value* value) { return along(l, value, 0, rank - 1); };
  if (Value* given = l.input_or_null(n, scale, dtype)) x = l.emit("Mul", {x, per_channel(given)});
  if (Value* given = l.input_or_null(n, shift, dtype)) x = l.emit("Add", {x, per_channel(given)});
  return x;
}

// Eval mode takes the running statistics; a norm that keeps none takes the batch's.
Outputs batch_norm(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const bool keeps_statistics = n.schema().find("running_mean") && !n.is_none("running_mean");
  const bool has_mode = n.schema().find("training").has_value();
  const bool uses_batch = has_mode ? n.boolean("training") : !keeps_statistics;
  const AtenValue* input = n.tensor("input");
  const double eps = n.real("eps");
  if (uses_batch && keeps_statistics) {
    throw l.error(n,
                  "normalises by the batch's statistics: the model is in training mode; call eval() before exporting");
  }
  const std::vector<Expr> channels = {size_at(input, 1)};
  if (!uses_batch) {
    std::vector<Value*> inputs = {l.input(n, "input", dtype), or_filled(l, n, "weight", 1, dtype, channels),
                                  or_filled(l, n, "bias", 0, dtype, channels), l.input(n, "running_mean", dtype),
                                  l.input(n, "running_var", dtype)};
    return {l.emit("BatchNormalization", inputs, {{"epsilon", static_cast<float>(eps)}})};
  }
  const ScalarType compute = is_half(dtype) ? ScalarType::Float : dtype;
  Value* x = l.input(n, "input", compute);
  auto dims = iota(rank(input));
  dims.erase(dims.begin() + 1);
  Value* distance = l.emit("Sub", {x, l.reduce("ReduceMean", x, dims, true)});
  Value* variance = l.reduce("ReduceMean", l.emit("Mul", {distance, distance}), dims, true);
  Value* deviation = l.emit("Sqrt", {l.emit("Add", {variance, l.scalar(eps, compute)})});
  return {l.cast(scale_channels(l, n, l.emit("Div", {distance, deviation}), "weight", "bias", rank(input)), dtype)};
}

// Each group of channels as one instance; then scale and shift per channel.
Value* normalize_groups(Lowering& l, const AtenNode& n, std::string_view argument, const Expr& groups, double eps) {
  const AtenValue* input = n.tensor(argument);
  const ScalarType dtype = out_dtype(n);
  const ScalarType compute = is_half(dtype) ? ScalarType::Float : dtype;
  const auto& sizes = input->sizes();
  const Expr elements = symbolic::floor_div(symbolic::product(std::span(sizes).subspan(1)), groups);
  const std::vector<Expr> grouped = {sizes[0], groups, elements};
  const std::vector<Expr> group_count = {groups}, none;
  const auto count = groups.as_integer();
  Value* ones = count ? l.filled(1, compute, {*count}) : l.expand(l.scalar(1, compute), none, group_count);
  Value* zeros = count ? l.filled(0, compute, {*count}) : l.expand(l.scalar(0, compute), none, group_count);
  Value* x = l.reshape(l.input(n, argument, compute), sizes, grouped);
  Value* y = l.emit("InstanceNormalization", {x, ones, zeros}, {{"epsilon", static_cast<float>(eps)}});
  return l.reshape(y, grouped, sizes);
}

Outputs group_norm(Lowering& l, const AtenNode& n) {
  const bool is_native = n.schema().find("N").has_value();
  for (size_t i = 1; i < n.outputs().size(); ++i) {
    if (is_used(n.outputs()[i])) throw l.error(n, "gives its statistics, which only training needs");
  }
  Value* y = normalize_groups(l, n, "input", n.size(is_native ? "group" : "num_groups"), n.real("eps"));
  return {l.cast(scale_channels(l, n, y, "weight", "bias", rank(n.tensor("input"))), out_dtype(n))};
}

Outputs instance_norm(Lowering& l, const AtenNode& n) {
  const AtenValue* input = n.tensor("input");
  if (!n.boolean("use_input_stats")) {
    const ScalarType dtype = out_dtype(n);
    const std::vector<Expr> channels = {size_at(input, 1)};
    std::vector<Value*> inputs = {l.input(n, "input", dtype), or_filled(l, n, "weight", 1, dtype, channels),
                                  or_filled(l, n, "bias", 0, dtype, channels), l.input(n, "running_mean", dtype),
                                  l.input(n, "running_var", dtype)};
    return {l.emit("BatchNormalization", inputs, {{"epsilon", static_cast<float>(n.real("eps"))}})};
  }
  Value* y = normalize_groups(l, n, "input", size_at(input, 1), n.real("eps"));
  return {l.cast(scale_channels(l, n, y, "weight", "bias", rank(input)), out_dtype(n))};
}

// (g * v / |v|, |v|) with the norms over all dimensions but one.
Outputs weight_norm(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  std::vector<int64_t> dims = iota(rank(n.tensor("v")));
  dims.erase(dims.begin() + l.dim(n, "dim", "v"));
  Value* v = l.input(n, "v");
  Value* norm = l.reduce("ReduceL2", l.cast(v, out_dtype(n, 1)), dims, true);
  if (dims.empty()) norm = l.emit("Abs", {norm});
  Value* scale = l.emit("Div", {l.input(n, "g", out_dtype(n, 1)), norm});
  return {l.emit("Mul", {v, l.cast(scale, dtype)}), norm};
}

constexpr OpRow kRows[] = {
    {"aten::_batch_norm_no_update", batch_norm},
    {"aten::_fused_rms_norm", rms_norm},
    {"aten::_native_batch_norm_legit", batch_norm},
    {"aten::_native_batch_norm_legit_no_training", batch_norm},
    {"aten::_weight_norm_interface", weight_norm},
    {"aten::batch_norm", batch_norm},
    {"aten::group_norm", group_norm},
    {"aten::instance_norm", instance_norm},
    {"aten::layer_norm", layer_norm},
    {"aten::native_batch_norm", batch_norm},
    {"aten::native_group_norm", group_norm},
    {"aten::native_layer_norm", layer_norm},
    {"aten::rms_norm", rms_norm},
};

}  // namespace

std::span<const OpRow> normalization_ops() { return kRows; }

}  // namespace transporters::onnx
