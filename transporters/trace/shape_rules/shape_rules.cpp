#include "transporters/trace/shape_rules/shape_rules.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters {
namespace {

const std::unordered_map<std::string_view, ShapeRule>& rules_by_name() {
  static const auto rules = [] {
    std::unordered_map<std::string_view, ShapeRule> map;
    map.reserve(2048);
    for (const auto& table : shape_rule_tables()) {
      for (const auto& row : table.rows) {
        if (!map.emplace(row.op, row.rule).second)
          throw InternalError("shape rules: two rows for '" + std::string(row.op) + "'");
      }
    }
    return map;
  }();
  return rules;
}

std::string_view without_overload(std::string_view op) {
  const size_t start = op.find("::");
  const size_t dot = op.find('.', start == std::string_view::npos ? 0 : start);
  return op.substr(0, dot);
}

void simplify_all(std::vector<Expr>& exprs, const ShapeEnv& env) {
  for (auto& expr : exprs) {
    if (!expr.is_constant()) expr = env.simplify(expr);
  }
}

}  // namespace

std::span<const ShapeRuleTable> shape_rule_tables() {
  using namespace shape_rules;
  static const std::array tables = {
      ShapeRuleTable{"activation", activation_rules()},
      ShapeRuleTable{"attention", attention_rules()},
      ShapeRuleTable{"comparison", comparison_rules()},
      ShapeRuleTable{"concat", concat_rules()},
      ShapeRuleTable{"conversion", conversion_rules()},
      ShapeRuleTable{"convolution", convolution_rules()},
      ShapeRuleTable{"creation", creation_rules()},
      ShapeRuleTable{"data_dependent", data_dependent_rules()},
      ShapeRuleTable{"distance", distance_rules()},
      ShapeRuleTable{"elementwise", elementwise_rules()},
      ShapeRuleTable{"embedding", embedding_rules()},
      ShapeRuleTable{"fft", fft_rules()},
      ShapeRuleTable{"indexing", indexing_rules()},
      ShapeRuleTable{"linalg", linalg_rules()},
      ShapeRuleTable{"loss", loss_rules()},
      ShapeRuleTable{"matmul", matmul_rules()},
      ShapeRuleTable{"normalization", normalization_rules()},
      ShapeRuleTable{"padding", padding_rules()},
      ShapeRuleTable{"pooling", pooling_rules()},
      ShapeRuleTable{"random", random_rules()},
      ShapeRuleTable{"reduction", reduction_rules()},
      ShapeRuleTable{"rnn", rnn_rules()},
      ShapeRuleTable{"scan", scan_rules()},
      ShapeRuleTable{"scatter", scatter_rules()},
      ShapeRuleTable{"size", size_rules()},
      ShapeRuleTable{"slice", slice_rules()},
      ShapeRuleTable{"sort", sort_rules()},
      ShapeRuleTable{"split", split_rules()},
      ShapeRuleTable{"upsample", upsample_rules()},
      ShapeRuleTable{"view", view_rules()},
      ShapeRuleTable{"vision", vision_rules()},
      ShapeRuleTable{"window", window_rules()},
  };
  return tables;
}

ShapeRule find_shape_rule(std::string_view op) {
  const auto& rules = rules_by_name();
  if (const auto exact = rules.find(op); exact != rules.end()) return exact->second;
  const auto base = rules.find(without_overload(op));
  return base == rules.end() ? nullptr : base->second;
}

std::vector<ValueType> infer_types(const Node& node, ShapeEnv& env) {
  const ShapeRule rule = find_shape_rule(node.op());
  if (!rule) {
    shape_rules::fail(
        node, "there is no shape rule for this op" + did_you_mean(without_overload(node.op()), ops_with_shape_rules()));
  }
  std::vector<ValueType> types;
  try {
    types = rule(node, env);
  } catch (const GuardError&) {
    throw;
  } catch (const Error& error) {
    if (!error.context().op.empty()) throw;
    shape_rules::fail(node, error.message());
  }
  for (auto& type : types) {
    if (auto* tensor = std::get_if<TensorType>(&type)) {
      simplify_all(tensor->sizes, env);
      simplify_all(tensor->strides, env);
    } else {
      auto& expr = std::get<NumberType>(type).expr;
      expr = env.simplify(expr);
    }
  }
  return types;
}

std::vector<std::string> ops_with_shape_rules() {
  std::vector<std::string> names;
  for (const auto& table : shape_rule_tables()) {
    for (const auto& row : table.rows) names.emplace_back(row.op);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Expr> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b, ShapeEnv& env) {
  const auto& longer = a.size() >= b.size() ? a : b;
  const auto& shorter = a.size() >= b.size() ? b : a;
  std::vector<Expr> result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const auto& left = longer[offset + i];
    const auto match = shape_rules::match_dims(left, shorter[i], env);
    if (match == shape_rules::DimMatch::Mismatch) {
      throw Error("expected shapes that broadcast, got " + shape_rules::describe(a) + " and " +
                  shape_rules::describe(b) + ": sizes " + left.str() + " and " + shorter[i].str() +
                  " differ and neither is 1");
    }
    const bool take_right = match == shape_rules::DimMatch::FirstIsOne ||
                            (match == shape_rules::DimMatch::Equal && shorter[i].is_constant());
    if (take_right) result[offset + i] = shorter[i];
  }
  return result;
}

int64_t wrap_dim(int64_t dim, size_t rank) {
  const auto limit = static_cast<int64_t>(rank == 0 ? 1 : rank);
  if (dim < -limit || dim >= limit) {
    throw Error("expected a dim in [" + std::to_string(-limit) + ", " + std::to_string(limit - 1) + "], got " +
                std::to_string(dim));
  }
  return dim < 0 ? dim + limit : dim;
}

std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes) {
  std::vector<Expr> strides(sizes.size());
  Expr stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // An empty dim counts as 1, so that strides stay positive.
    if (!sizes[i].is(0)) stride = stride * sizes[i];
  }
  return strides;
}

std::vector<Expr> strides_of(const TensorType& type) {
  return type.strides.empty() ? contiguous_strides(type.sizes) : type.strides;
}

ScalarType result_type(const std::vector<Argument>& operands) {
  // One dtype per category, lowest category last; Undefined where there is none.
  ScalarType dimensioned = ScalarType::Undefined, zero_dim = ScalarType::Undefined, numbers = ScalarType::Undefined;
  const auto promote = [](ScalarType a, ScalarType b) {
    if (a == ScalarType::Undefined) return b;
    if (b == ScalarType::Undefined) return a;
    return c10::promoteTypes(a, b);
  };
  for (const auto& operand : operands) {
    if (const auto* tensor = shape_rules::as_tensor(operand)) {
      auto& category = tensor->rank() == 0 ? zero_dim : dimensioned;
      category = promote(category, tensor->dtype);
    } else if (const auto dtype = shape_rules::number_dtype(operand)) {
      numbers = promote(numbers, *dtype == ScalarType::Double ? shape_rules::kDefaultFloat : *dtype);
    }
  }
  const auto combine = [&](ScalarType higher, ScalarType lower) {
    if (higher == ScalarType::Undefined) return lower;
    if (lower == ScalarType::Undefined || c10::isComplexType(higher)) return higher;
    if (c10::isFloatingType(higher)) return c10::isComplexType(lower) ? c10::toComplexType(higher) : higher;
    const bool lower_category = higher != ScalarType::Bool && c10::isIntegralType(lower, true);
    return lower_category ? higher : c10::promoteTypes(higher, lower);
  };
  const ScalarType result = combine(dimensioned, combine(zero_dim, numbers));
  if (result == ScalarType::Undefined) throw InternalError("result_type: no operand has a dtype");
  return result;
}

ScalarType sum_dtype(ScalarType dtype) { return c10::isIntegralType(dtype, true) ? ScalarType::Long : dtype; }

}  // namespace transporters
