// Parts of a dim: slice, narrow, select. Bounds follow Python: negative ones count from the end, overlong ones stop
// there.
#include <limits>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

Types viewed(const Node& node, const TensorType& self, Sizes sizes, Sizes strides) {
  if (node.schema().base_name().ends_with("_copy")) return one(self.dtype, std::move(sizes));
  return {view_type(self.dtype, std::move(sizes), std::move(strides))};
}

// Whether a bound counts from the end; nullopt for a bound whose sign only the data knows.
std::optional<bool> is_negative(const Expr& bound, ShapeEnv& env) {
  const Expr condition = less(bound, 0);
  if (const auto decided = env.decide(condition)) return decided;
  if (!env.hint(bound)) return std::nullopt;
  return env.guard(condition);
}

// A bound as an index in [0, size].
std::optional<Expr> wrap_bound(const Expr& bound, const Expr& size, ShapeEnv& env) {
  if (bound.is(std::numeric_limits<int64_t>::max()) || bound == size) return size;
  const auto negative = is_negative(bound, env);
  if (!negative) return std::nullopt;
  return env.simplify(*negative ? max(bound + size, 0) : min(bound, size));
}

// end - start where that is not negative, written without nested min and max where one bound is an end of the dim.
Expr distance(const Expr& start, const Expr& end, const Expr& raw_start, const Expr& size, ShapeEnv& env) {
  if (start.is(0)) return end;
  if (end == size) {
    const bool from_end = is_negative(raw_start, env).value_or(false);
    // The last k elements, or all but the first k.
    return from_end ? min(size, -raw_start) : max(size - raw_start, 0);
  }
  return max(end - start, 0);
}

Types slice(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const Expr step = node.size("step");
  const auto constant_step = step.as_integer();
  check(!constant_step || *constant_step > 0, node, "expected a step above 0, got " + step.str());
  const Expr size = env.simplify(self.sizes[d]);
  const Expr raw_start = has(node, "start") ? env.simplify(node.size("start")) : Expr(0);
  const Expr raw_end = has(node, "end") ? env.simplify(node.size("end")) : size;
  const auto start = wrap_bound(raw_start, size, env), end = wrap_bound(raw_end, size, env);
  Sizes sizes = self.sizes, strides = strides_of(self);
  if (start && end) {
    const Expr length = env.simplify(distance(*start, *end, raw_start, size, env));
    sizes[d] = step.is(1) ? length : ceil_div(length, step);
  } else {
    sizes[d] = unbacked_size(node, env, size);
  }
  strides[d] = strides[d] * step;
  return viewed(node, self, sizes, strides);
}

Types narrow(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const size_t d = dim(node, "dim", self.rank());
  const Expr length = node.size("length");
  check_not_negative(node, length, env, "a length");
  const auto too_long = env.decide(less(self.sizes[d], length));
  check(!too_long.value_or(false), node,
        "expected a length within dim " + std::to_string(d) + " of " + describe(self) + ", got " + length.str());
  Sizes sizes = self.sizes;
  sizes[d] = length;
  return viewed(node, self, sizes, strides_of(self));
}

Types select(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 1);
  const auto d = static_cast<std::ptrdiff_t>(dim(node, "dim", self.rank()));
  const Expr size = self.sizes[static_cast<size_t>(d)];
  const Expr index = node.size("index");
  const bool outside =
      env.decide(greater_equal(index, size)).value_or(false) || env.decide(less(index, -size)).value_or(false);
  check(!outside, node,
        "expected an index within dim " + std::to_string(d) + " of " + describe(self) + ", got " + index.str());
  Sizes sizes = self.sizes, strides = strides_of(self);
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  return viewed(node, self, sizes, strides);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::slice.Tensor", slice}, {"aten::slice_copy", slice},  {"aten::narrow", narrow},
    {"aten::narrow_copy", narrow}, {"aten::select.int", select}, {"aten::select_copy", select},
};

}  // namespace

std::span<const ShapeRuleRow> slice_rules() { return kRows; }

}  // namespace transporters::shape_rules
