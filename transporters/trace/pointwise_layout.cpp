#include "transporters/trace/pointwise_layout.h"

#include <algorithm>
#include <utility>

#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

constexpr int64_t kUnknownSize = 4099;  // of a size that the data decides

struct Operand {
  std::vector<int64_t> strides;  // one per dim of the result; 0 where it is broadcast
};

std::vector<int64_t> at_hints(const std::vector<Expr>& sizes, const symbolic::ShapeEnv& env) {
  std::vector<int64_t> values;
  for (const Expr& size : sizes) values.push_back(layout_hint(size, env));
  return values;
}

Operand align(const TensorType& type, const std::vector<int64_t>& result, const symbolic::ShapeEnv& env) {
  const auto sizes = at_hints(type.sizes, env), strides = at_hints(strides_of(type), env);
  Operand operand{std::vector<int64_t>(result.size(), 0)};
  const size_t offset = result.size() - sizes.size();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] == result[offset + dim] || sizes[dim] != 1) operand.strides[offset + dim] = strides[dim];
  return operand;
}

// Positive when dim a must be outside of dim b, negative for the opposite, 0 when no operand tells.
int order(size_t a, size_t b, const std::vector<Operand>& operands, const std::vector<int64_t>& sizes) {
  for (const Operand& operand : operands) {
    const int64_t x = operand.strides[a], y = operand.strides[b];
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

int64_t layout_hint(const Expr& expr, const symbolic::ShapeEnv& env) {
  const auto value = env.simplify(expr).evaluate([&](std::string_view symbol) -> std::optional<int64_t> {
    const auto* info = env.try_info(symbol);
    return info && info->hint ? *info->hint : kUnknownSize;
  });
  const auto* integer = value ? std::get_if<int64_t>(&*value) : nullptr;
  return integer ? *integer : kUnknownSize;
}

void keep_layout(const Node& node, std::vector<ValueType>& types, const symbolic::ShapeEnv& env) {
  if (types.empty() || !std::holds_alternative<TensorType>(types[0])) return;
  const std::vector<Expr> result_sizes = std::get<TensorType>(types[0]).sizes;
  const std::vector<int64_t> sizes = at_hints(result_sizes, env);
  std::vector<Operand> operands;
  bool any_strided = false, all_contiguous = true;
  node.for_each_input([&](const Value* value) {
    if (!value->is_tensor() || value->rank() > sizes.size()) return;
    any_strided = any_strided || !value->tensor().strides.empty();
    all_contiguous = all_contiguous && value->tensor().is_contiguous() && value->sizes() == result_sizes;
    operands.push_back(align(value->tensor(), sizes, env));
  });
  if (!any_strided || all_contiguous) return;

  // Innermost dim first; an insertion sort, as the comparison is not transitive.
  std::vector<size_t> dims(sizes.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = dims.size() - 1 - i;
  for (size_t i = 1; i < dims.size(); ++i) {
    size_t moved = i;
    for (size_t other = i; other-- > 0;) {
      const int comparison = order(dims[other], dims[moved], operands, sizes);
      if (comparison < 0) break;
      if (comparison > 0) {
        std::swap(dims[other], dims[moved]);
        moved = other;
      }
    }
  }
  std::vector<Expr> strides(sizes.size(), 1);
  Expr next = 1;
  for (const size_t dim : dims) {
    strides[dim] = next;
    next = next * result_sizes[dim];
  }
  for (ValueType& type : types) {
    auto* tensor = std::get_if<TensorType>(&type);
    if (tensor != nullptr && tensor->sizes == result_sizes) tensor->strides = strides;
  }
}

}  // namespace transporters
