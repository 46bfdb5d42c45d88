// Layer, group, batch, instance and RMS normalisation, with the statistics that the native forms return.
#include <span>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// normalized_shape must be the last sizes of the input.
void check_normalized(const Node& node, const TensorType& x, ShapeEnv& env) {
  const Sizes shape = node.sizes("normalized_shape");
  const std::string message =
      "expected normalized_shape to be the last sizes of " + describe(x) + ", got " + describe(shape);
  check(!shape.empty() && shape.size() <= x.rank(), node, message);
  for (size_t i = 0; i < shape.size(); ++i) {
    common_size(node, x.sizes[x.rank() - shape.size() + i], shape[i], env, message);
  }
  for (const auto name : {"weight", "bias"}) {
    const auto* type = input_or_null(node, name);
    if (type) check_same_sizes(node, type->sizes, shape, env, "expected " + std::string(name) + " of normalized_shape");
  }
}

const Expr& channels(const Node& node, const TensorType& x) {
  check_rank_at_least(node, node.schema().arguments[0].name, x, 2);
  return x.sizes[1];
}

// Weights and running statistics have one element a channel.
void check_channels(const Node& node, const TensorType& x, ShapeEnv& env) {
  const Expr& count = channels(node, x);
  for (const auto name : {"weight", "bias", "running_mean", "running_var"}) {
    const auto* type = input_or_null(node, name);
    if (type)
      check_same_sizes(node, type->sizes, {count}, env, "expected " + std::string(name) + " of one element a channel");
  }
}

Types layer_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_normalized(node, x, env);
  return one(x.dtype, x.sizes);
}

// rms_norm of a half input with a float weight promotes, as multiplication would.
Types rms_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_normalized(node, x, env);
  const auto* weight = input_or_null(node, "weight");
  return one(weight ? c10::promoteTypes(x.dtype, weight->dtype) : x.dtype, x.sizes);
}

// Statistics of a half input are float32 where the weights are (mixed precision).
ScalarType statistics_dtype(const Node& node, const TensorType& x) {
  const auto* weight = input_or_null(node, "weight");
  const bool half = x.dtype == ScalarType::Half || x.dtype == ScalarType::BFloat16;
  return half && weight && weight->dtype == ScalarType::Float ? ScalarType::Float : x.dtype;
}

// The normalised dims count 1.
Sizes statistics_sizes(const Node& node, const TensorType& x) {
  Sizes sizes = x.sizes;
  const size_t count = node.sizes("normalized_shape").size();
  for (size_t i = sizes.size() - count; i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}

// -> output, mean, rstd
Types native_layer_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_normalized(node, x, env);
  const ValueType statistics = tensor(statistics_dtype(node, x), statistics_sizes(node, x));
  return {tensor(x.dtype, x.sizes), statistics, statistics};
}

// -> output, rstd
Types fused_rms_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_normalized(node, x, env);
  return {rms_norm(node, env)[0], tensor(statistics_dtype(node, x), statistics_sizes(node, x))};
}

void check_groups(const Node& node, const TensorType& x, std::string_view groups, ShapeEnv& env) {
  check_channels(node, x, env);
  exact_quotient(node, {x.sizes[1]}, {node.size(groups)}, env,
                 "expected channels that " + node.size(groups).str() + " groups divide, got " + describe(x));
}

Types group_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_groups(node, x, "num_groups", env);
  return one(x.dtype, x.sizes);
}

// -> output, mean, rstd, the latter one a sample and group
Types native_group_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_groups(node, x, "group", env);
  const Sizes given = {node.size("N"), node.size("C"), node.size("HxW")};
  const Sizes own = {x.sizes[0], x.sizes[1], product(std::span(x.sizes).subspan(2))};
  check_same_sizes(node, given, own, env, "expected N, C and HxW of " + describe(x));
  const ValueType statistics = tensor(statistics_dtype(node, x), {own[0], node.size("group")});
  return {tensor(x.dtype, x.sizes), statistics, statistics};
}

Types channel_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_channels(node, x, env);
  return one(x.dtype, x.sizes);
}

// -> output, mean, rstd: one a channel when the batch's statistics are used, none otherwise.
Types native_batch_norm(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  const bool training = flag(node, "training");
  check_channels(node, x, env);
  const ValueType statistics = tensor(statistics_dtype(node, x), {training ? channels(node, x) : Expr(0)});
  return {tensor(x.dtype, x.sizes), statistics, statistics};
}

// As native_batch_norm, followed by the running statistics after the update.
Types batch_norm_functional(const Node& node, ShapeEnv& env) {
  Types types = native_batch_norm(node, env);
  for (const auto name : {"running_mean", "running_var"}) {
    const auto& running = input(node, name);
    types.push_back(tensor(running.dtype, running.sizes));
  }
  return types;
}

// -> output, mean, rstd, reserve (of a backend; empty on the CPU)
Types batch_norm_no_update(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_channels(node, x, env);
  const ValueType none = tensor(statistics_dtype(node, x), {0});
  return {tensor(x.dtype, x.sizes), none, none, tensor(ScalarType::Byte, {0})};
}

Types batch_norm_with_update(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  check_channels(node, x, env);
  const ValueType statistics = tensor(statistics_dtype(node, x), {channels(node, x)});
  Types types = {tensor(x.dtype, x.sizes), statistics, statistics, tensor(ScalarType::Byte, {0})};
  for (const auto name : {"running_mean", "running_var"}) {
    const auto& running = input(node, name);
    types.push_back(tensor(running.dtype, running.sizes));
  }
  return types;
}

// -> output, mean, rstd, reserve, the backend's number (0: the native one)
Types batch_norm_with_backend(const Node& node, ShapeEnv& env) {
  Types types = native_batch_norm(node, env);
  types.push_back(tensor(ScalarType::Byte, {0}));
  types.push_back(NumberType{0});
  return types;
}

// The norm of each slice along `dim`, whose other dims count 1; -1 for the norm of all.
Sizes norm_sizes(const Node& node, const TensorType& v) {
  if (node.integer("dim") == -1) return {};
  const size_t d = dim(node, "dim", v.rank());
  Sizes sizes(v.rank(), Expr(1));
  if (!sizes.empty()) sizes[d] = v.sizes[d];
  return sizes;
}

Types norm_except_dim(const Node& node, ShapeEnv& env) {
  const auto& v = input(node, "v");
  return one(v.dtype, norm_sizes(node, v));
}

// _weight_norm(v, g, dim), _weight_norm_interface -> weight, norms (as g)
Types weight_norm(const Node& node, ShapeEnv& env) {
  const auto& v = input(node, "v");
  check_expands(node, input(node, "g").sizes, norm_sizes(node, v), env, "expected g of one element a slice of v");
  return one(v.dtype, v.sizes);
}

Types weight_norm_interface(const Node& node, ShapeEnv& env) {
  const auto& v = input(node, "v");
  const auto& g = input(node, "g");
  check_same_sizes(node, g.sizes, norm_sizes(node, v), env, "expected g of one element a slice of v");
  const bool half = g.dtype == ScalarType::BFloat16 || g.dtype == ScalarType::Half;
  return {tensor(v.dtype, v.sizes), tensor(half ? ScalarType::Float : g.dtype, g.sizes)};
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::layer_norm", layer_norm},
    {"aten::rms_norm", rms_norm},
    {"aten::native_layer_norm", native_layer_norm},
    {"aten::_fused_rms_norm", fused_rms_norm},
    {"aten::group_norm", group_norm},
    {"aten::native_group_norm", native_group_norm},
    {"aten::batch_norm", channel_norm},
    {"aten::instance_norm", channel_norm},
    {"aten::native_batch_norm", native_batch_norm},
    {"aten::_native_batch_norm_legit", native_batch_norm},
    {"aten::_native_batch_norm_legit_no_training", native_batch_norm},
    {"aten::_native_batch_norm_legit_functional", batch_norm_functional},
    {"aten::_batch_norm_no_update", batch_norm_no_update},
    {"aten::_batch_norm_with_update_functional", batch_norm_with_update},
    {"aten::_batch_norm_impl_index", batch_norm_with_backend},
    {"aten::norm_except_dim", norm_except_dim},
    {"aten::_weight_norm", weight_norm},
    {"aten::_weight_norm_interface", weight_norm_interface},
    {"aten::renorm", same_as_input},
};

}  // namespace

std::span<const ShapeRuleRow> normalization_rules() { return kRows; }

}  // namespace transporters::shape_rules
