// Views: the same elements under other sizes and strides. The `_copy` forms give contiguous results.
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// The result of a view op; `_copy` forms of it are contiguous.
Types viewed(const Node& node, ScalarType dtype, Sizes sizes, Sizes strides) {
  if (node.schema().base_name().ends_with("_copy")) return one(dtype, std::move(sizes));
  return {view_type(dtype, std::move(sizes), std::move(strides))};
}

Types alias(const Node& node, ShapeEnv& env) { return {input(node, 0)}; }

// ── Reshape ──

// Replaces a -1 by the size that keeps the number of elements, and checks the number otherwise.
Sizes infer_sizes(const Node& node, const TensorType& self, Sizes sizes, ShapeEnv& env) {
  size_t inferred = sizes.size();
  Sizes known;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is(-1)) {
      check(inferred == sizes.size(), node, "expected one -1 at most, got " + describe(sizes));
      inferred = i;
    } else {
      check_not_negative(node, sizes[i], env, "a size");
      known.push_back(sizes[i]);
    }
  }
  const std::string message =
      "expected sizes for as many elements as " + describe(self) + " has, got " + describe(sizes);
  if (inferred < sizes.size()) {
    sizes[inferred] = exact_quotient(node, self.sizes, known, env, message);
  } else {
    // Comparing what is left after cancelling common factors keeps recorded equalities small.
    Sizes left = self.sizes, right = known;
    cancel_common_factors(left, right, env);
    if (!sizes_match(numel(left), numel(right), env)) fail(node, message);
  }
  return sizes;
}

// Whether new dims of that many elements leave room in a run. Sizes that the data decides have no example: of those
// only equal ones fill it.
bool leaves_room(const Expr& filled, const Expr& run, const ShapeEnv& env) {
  if (filled == run) return false;
  if (const auto decided = env.decide_size_oblivious(less(filled, run))) return *decided;
  const auto left = env.hint(filled), right = env.hint(run);
  return left && right ? *left < *right : env.simplify(filled) != env.simplify(run);
}

// Whether a size that is 1 in the example belongs to a run that it could fill at other sizes.
bool is_one_at_example_only(const Expr& size, const Expr& filled, const Expr& run, const ShapeEnv& env) {
  return env.hint(size) == 1 && env.simplify(filled) != env.simplify(run);
}

// Strides of a view with other sizes, or nullopt where the elements are not laid out for one. Runs of dims that lie
// densely in memory are matched with runs of new dims, last first.
std::optional<Sizes> reshaped_strides(const TensorType& self, const Sizes& sizes, ShapeEnv& env) {
  if (is_contiguous(self, env)) return transporters::contiguous_strides(sizes);
  const Sizes old_strides = strides_of(self);
  Sizes strides(sizes.size(), Expr(1));
  size_t next = sizes.size();
  Expr run_stride = old_strides.back();
  Expr run = 1, filled = 1;
  for (size_t d = self.rank(); d-- > 0;) {
    run = run * self.sizes[d];
    const bool ends_run = d == 0 || (!is_one(self.sizes[d - 1], env) &&
                                     env.simplify(old_strides[d - 1]) != env.simplify(run * run_stride));
    if (!ends_run) continue;
    while (next > 0 && (leaves_room(filled, run, env) || is_one(sizes[next - 1], env) ||
                        is_one_at_example_only(sizes[next - 1], filled, run, env))) {
      --next;
      strides[next] = filled * run_stride;
      filled = filled * sizes[next];
    }
    if (!sizes_match(filled, run, env)) return std::nullopt;
    if (d > 0) run_stride = old_strides[d - 1];
    run = 1;
    filled = 1;
  }
  if (next != 0) return std::nullopt;
  return strides;
}

Types view_as_sizes(const Node& node, const Sizes& requested, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Sizes sizes = infer_sizes(node, self, requested, env);
  const auto strides = reshaped_strides(self, sizes, env);
  if (!strides) {
    fail(node, "sizes " + describe(sizes) + " do not fit the strides " + describe(strides_of(self)) + " of " +
                   describe(self) + ": a dim would span two runs of memory; use reshape");
  }
  return viewed(node, self.dtype, sizes, *strides);
}

Types view(const Node& node, ShapeEnv& env) { return view_as_sizes(node, node.sizes("size"), env); }

Types reshape_to(const Node& node, const Sizes& requested, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const Sizes sizes = infer_sizes(node, self, requested, env);
  const auto strides = reshaped_strides(self, sizes, env);
  return strides ? viewed(node, self.dtype, sizes, *strides) : one(self.dtype, sizes);
}

Types reshape(const Node& node, ShapeEnv& env) {
  const char* name = has(node, "shape") ? "shape" : "size";
  return reshape_to(node, node.sizes(name), env);
}

Types reshape_as(const Node& node, ShapeEnv& env) { return reshape_to(node, input(node, "other").sizes, env); }
Types view_as(const Node& node, ShapeEnv& env) { return view_as_sizes(node, input(node, "other").sizes, env); }
Types ravel(const Node& node, ShapeEnv& env) { return reshape_to(node, {-1}, env); }

Types reshape_alias(const Node& node, ShapeEnv& env) {
  return viewed(node, input(node, 0).dtype, node.sizes("size"), node.sizes("stride"));
}

Types flatten(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  if (self.rank() == 0) return reshape_to(node, {1}, env);
  const size_t first = dim(node, "start_dim", self.rank()), last = dim(node, "end_dim", self.rank());
  check(first <= last, node,
        "expected start_dim before end_dim, got " + std::to_string(first) + " and " + std::to_string(last));
  if (first == last) return {self};
  const auto at = [&](size_t i) { return self.sizes.begin() + static_cast<std::ptrdiff_t>(i); };
  Sizes sizes(self.sizes.begin(), at(first));
  sizes.push_back(numel(Sizes(at(first), at(last + 1))));
  sizes.insert(sizes.end(), at(last + 1), self.sizes.end());
  return reshape_to(node, sizes, env);
}

Types unflatten(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const size_t d = dim(node, "dim", self.rank());
  const TensorType part{self.dtype, {self.sizes.at(d)}, {}};
  const Sizes replaced = infer_sizes(node, part, node.sizes("sizes"), env);
  Sizes sizes = self.sizes;
  const auto position = sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  sizes.insert(position, replaced.begin(), replaced.end());
  return view_as_sizes(node, sizes, env);
}

// view.dtype: the bytes of the last dim regrouped.
Types view_dtype(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const ScalarType dtype = node.dtype("dtype");
  const auto old_bytes = static_cast<int64_t>(c10::elementSize(self.dtype));
  const auto new_bytes = static_cast<int64_t>(c10::elementSize(dtype));
  Sizes sizes = self.sizes, strides = strides_of(self);
  if (old_bytes == new_bytes) return viewed(node, dtype, sizes, strides);
  check_rank_at_least(node, "self", self, 1);
  const std::string message =
      "expected a last dim whose bytes make whole elements of " + dtype_name(dtype) + ", got " + describe(self);
  if (new_bytes < old_bytes) {
    const int64_t ratio = old_bytes / new_bytes;
    sizes.back() = sizes.back() * ratio;
    for (auto& stride : strides) stride = stride * ratio;
    strides.back() = 1;
  } else {
    const int64_t ratio = new_bytes / old_bytes;
    sizes.back() = exact_quotient(node, {sizes.back()}, {ratio}, env, message);
    for (auto& stride : strides) stride = floor_div(stride, ratio);
    strides.back() = 1;
  }
  return viewed(node, dtype, sizes, strides);
}

// ── Order of dims ──

Types permuted(const Node& node, const TensorType& self, const std::vector<size_t>& order) {
  const Sizes old_strides = strides_of(self);
  Sizes sizes, strides;
  for (const size_t d : order) {
    sizes.push_back(self.sizes[d]);
    strides.push_back(old_strides[d]);
  }
  return viewed(node, self.dtype, sizes, strides);
}

std::vector<size_t> identity_order(size_t rank) {
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  return order;
}

Types permute(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto order = dim_list(node, "dims", self.rank());
  check(order.size() == self.rank(), node,
        "expected " + std::to_string(self.rank()) + " dims, got " + std::to_string(order.size()));
  dim_mask(node, "dims", self.rank());
  return permuted(node, self, order);
}

Types swap_dims(const Node& node, const TensorType& self, size_t a, size_t b) {
  auto order = identity_order(self.rank());
  if (self.rank() > 0) std::swap(order[a], order[b]);
  return permuted(node, self, order);
}

// transpose(dim0, dim1), swapaxes(axis0, axis1)
Types transpose(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto& arguments = node.schema().arguments;
  return swap_dims(node, self, dim(node, arguments[1].name, self.rank()), dim(node, arguments[2].name, self.rank()));
}

Types t(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check_rank(node, "self", self, {0, 1, 2});
  return self.rank() < 2 ? viewed(node, self.dtype, self.sizes, strides_of(self)) : swap_dims(node, self, 0, 1);
}

// The last two dims: mT, mH, adjoint.
Types matrix_transpose(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  if (self.rank() == 0) return {self};
  check_rank_at_least(node, "self", self, 2);
  return swap_dims(node, self, self.rank() - 2, self.rank() - 1);
}

Types reverse_dims(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  auto order = identity_order(self.rank());
  std::reverse(order.begin(), order.end());
  return permuted(node, self, order);
}

Types movedim(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto source = dim_list(node, "source", self.rank());
  const auto destination = dim_list(node, "destination", self.rank());
  check(source.size() == destination.size(), node, "expected as many source as destination dims");
  constexpr size_t kFree = static_cast<size_t>(-1);
  std::vector<size_t> order(self.rank(), kFree);
  std::vector<bool> moved(self.rank(), false);
  if (self.rank() == 0) return {self};
  for (size_t i = 0; i < source.size(); ++i) {
    check(!moved[source[i]] && order[destination[i]] == kFree, node,
          "expected each dim once in source and destination");
    order[destination[i]] = source[i];
    moved[source[i]] = true;
  }
  size_t next = 0;
  for (auto& position : order) {
    if (position != kFree) continue;
    while (moved[next]) ++next;
    position = next++;
  }
  return permuted(node, self, order);
}

// ── Size-1 dims ──

Types expanded(const Node& node, const Sizes& requested, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check(requested.size() >= self.rank(), node,
        "expected at least " + std::to_string(self.rank()) + " sizes, got " + describe(requested));
  const Sizes old_strides = strides_of(self);
  const size_t added = requested.size() - self.rank();
  Sizes sizes = requested, strides(requested.size());
  for (size_t i = requested.size(); i-- > 0;) {
    const std::string message = "expected sizes that " + describe(self) + " expands to, got " + describe(requested);
    if (i < added) {
      check(!sizes[i].is(-1), node, message + ": -1 stands for an existing dim");
      check_not_negative(node, sizes[i], env, "a size");
      const bool last = i + 1 == requested.size();
      strides[i] = !is_one(sizes[i], env) ? Expr(0) : last ? Expr(1) : sizes[i + 1] * strides[i + 1];
      continue;
    }
    const Expr& size = self.sizes[i - added];
    strides[i] = old_strides[i - added];
    if (sizes[i].is(-1)) {
      sizes[i] = size;
      continue;
    }
    switch (match_dims(size, sizes[i], env)) {
      case DimMatch::Equal:
        sizes[i] = sizes[i].is_constant() ? sizes[i] : size;
        break;
      case DimMatch::FirstIsOne:
        strides[i] = 0;
        break;
      case DimMatch::SecondIsOne:
        if (!env.specialize_to_sample(size)) fail(node, message);
        break;
      case DimMatch::Mismatch:
        fail(node, message);
    }
  }
  return viewed(node, self.dtype, sizes, strides);
}

Types expand(const Node& node, ShapeEnv& env) { return expanded(node, node.sizes("size"), env); }
Types expand_as(const Node& node, ShapeEnv& env) { return expanded(node, input(node, "other").sizes, env); }

Types unsqueeze(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto d = static_cast<std::ptrdiff_t>(wrap_dim(node.integer("dim"), self.rank() + 1));
  const bool last = static_cast<size_t>(d) == self.rank();
  Sizes sizes = self.sizes, strides = strides_of(self);
  const Expr stride = last ? Expr(1) : sizes[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)];
  sizes.insert(sizes.begin() + d, Expr(1));
  strides.insert(strides.begin() + d, stride);
  return viewed(node, self.dtype, sizes, strides);
}

// A dynamic dim stays, whatever its example.
Types squeeze(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  std::vector<bool> candidates(self.rank(), true);
  if (node.schema().find("dim")) {
    candidates.assign(std::max<size_t>(self.rank(), 1), false);
    for (const size_t d : dim_list(node, "dim", self.rank())) candidates[d] = true;
  }
  const Sizes old_strides = strides_of(self);
  Sizes sizes, strides;
  for (size_t i = 0; i < self.rank(); ++i) {
    if (candidates[i] && is_one(self.sizes[i], env)) continue;
    sizes.push_back(self.sizes[i]);
    strides.push_back(old_strides[i]);
  }
  return viewed(node, self.dtype, sizes, strides);
}

Types atleast(const Node& node, size_t rank, size_t front_of_one) {
  const auto& self = input(node, 0);
  Sizes sizes = self.sizes;
  // A vector gains dims on both sides in atleast_3d, in front otherwise; a matrix gains one behind.
  if (sizes.empty()) sizes.resize(rank, Expr(1));
  if (sizes.size() == 1 && rank > 1) {
    sizes.insert(sizes.begin(), front_of_one, Expr(1));
    sizes.resize(rank, Expr(1));
  }
  if (sizes.size() < rank) sizes.resize(rank, Expr(1));
  return one(self.dtype, sizes);
}

Types atleast_1d(const Node& node, ShapeEnv& env) { return atleast(node, 1, 0); }
Types atleast_2d(const Node& node, ShapeEnv& env) { return atleast(node, 2, 1); }
Types atleast_3d(const Node& node, ShapeEnv& env) { return atleast(node, 3, 1); }

// ── Strided ──

Types as_strided(const Node& node, ShapeEnv& env) {
  const Sizes sizes = node.sizes("size"), strides = node.sizes("stride");
  check(sizes.size() == strides.size(), node,
        "expected as many sizes as strides, got " + describe(sizes) + " and " + describe(strides));
  return viewed(node, input(node, 0).dtype, sizes, strides);
}

Types unfold(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const size_t d = dim(node, "dimension", self.rank());
  const Expr size = node.size("size"), step = node.size("step");
  Sizes sizes = self.sizes, strides = strides_of(self);
  if (self.rank() == 0) return viewed(node, self.dtype, {size}, {1});
  const Expr last_start = sizes[d] - size;
  check_not_negative(node, last_start, env, "the size of dim " + std::to_string(d) + " minus the window");
  sizes[d] = floor_div(last_start, step) + 1;
  sizes.push_back(size);
  strides.push_back(strides[d]);
  strides[d] = strides[d] * step;
  return viewed(node, self.dtype, sizes, strides);
}

Types diagonal(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const size_t d1 = dim(node, "dim1", self.rank()), d2 = dim(node, "dim2", self.rank());
  check(d1 != d2, node, "expected two different dims, got " + std::to_string(d1) + " twice");
  const int64_t offset = node.integer("offset");
  Sizes sizes = self.sizes, strides = strides_of(self);
  const Expr rows = offset < 0 ? sizes[d1] + offset : sizes[d1];
  const Expr columns = offset > 0 ? sizes[d2] - offset : sizes[d2];
  const Expr length = offset == 0 ? min(rows, columns) : max(min(rows, columns), 0);
  const Expr stride = strides[d1] + strides[d2];
  for (const size_t d : {std::max(d1, d2), std::min(d1, d2)}) {
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
  sizes.push_back(env.simplify(length));
  strides.push_back(stride);
  return viewed(node, self.dtype, sizes, strides);
}

// ── Complex numbers as pairs of reals ──

Types view_as_real(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check(c10::isComplexType(self.dtype), node, "expected complex numbers, got " + describe(self));
  Sizes sizes = self.sizes, strides = strides_of(self);
  for (auto& stride : strides) stride = stride * 2;
  sizes.push_back(2);
  strides.push_back(1);
  return viewed(node, to_real_dtype(self.dtype), sizes, strides);
}

Types view_as_complex(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check(c10::isFloatingType(self.dtype) && self.rank() > 0 && sizes_match(self.sizes.back(), 2, env), node,
        "expected real numbers with a last dim of 2, got " + describe(self));
  Sizes sizes = self.sizes, strides = strides_of(self);
  sizes.pop_back();
  strides.pop_back();
  for (auto& stride : strides) stride = floor_div(stride, 2);
  return viewed(node, c10::toComplexType(self.dtype), sizes, strides);
}

// real, imag: every second real of the pairs.
Types real_part(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  if (!c10::isComplexType(self.dtype)) return {self};
  Sizes strides = strides_of(self);
  for (auto& stride : strides) stride = stride * 2;
  return viewed(node, to_real_dtype(self.dtype), self.sizes, strides);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::alias", alias},
    {"aten::detach", alias},
    {"aten::lift_fresh", alias},
    {"aten::alias_copy", same_as_input},
    {"aten::detach_copy", same_as_input},
    {"aten::view", view},
    {"aten::view.dtype", view_dtype},
    {"aten::view_copy", view},
    {"aten::view_copy.dtype", view_dtype},
    {"aten::_unsafe_view", view},
    {"aten::view_as", view_as},
    {"aten::reshape", reshape},
    {"aten::_reshape_copy", reshape},
    {"aten::_reshape_alias", reshape_alias},
    {"aten::_reshape_alias_copy", reshape_alias},
    {"aten::reshape_as", reshape_as},
    {"aten::ravel", ravel},
    {"aten::flatten", flatten},
    {"aten::unflatten", unflatten},
    {"aten::permute", permute},
    {"aten::permute_copy", permute},
    {"aten::transpose", transpose},
    {"aten::transpose_copy", transpose},
    {"aten::swapaxes", transpose},
    {"aten::swapdims", transpose},
    {"aten::t", t},
    {"aten::t_copy", t},
    {"aten::numpy_T", reverse_dims},
    {"aten::mT", matrix_transpose},
    {"aten::mH", matrix_transpose},
    {"aten::adjoint", matrix_transpose},
    {"aten::matrix_H", matrix_transpose},
    {"aten::movedim", movedim},
    {"aten::moveaxis", movedim},
    {"aten::expand", expand},
    {"aten::expand_copy", expand},
    {"aten::broadcast_to", expand},
    {"aten::expand_as", expand_as},
    {"aten::unsqueeze", unsqueeze},
    {"aten::unsqueeze_copy", unsqueeze},
    {"aten::squeeze", squeeze},
    {"aten::squeeze_copy", squeeze},
    {"aten::atleast_1d", atleast_1d},
    {"aten::atleast_2d", atleast_2d},
    {"aten::atleast_3d", atleast_3d},
    {"aten::as_strided", as_strided},
    {"aten::as_strided_copy", as_strided},
    {"aten::unfold", unfold},
    {"aten::unfold_copy", unfold},
    {"aten::diagonal", diagonal},
    {"aten::diagonal_copy", diagonal},
    {"aten::linalg_diagonal", diagonal},
    {"aten::view_as_real", view_as_real},
    {"aten::view_as_real_copy", view_as_real},
    {"aten::view_as_complex", view_as_complex},
    {"aten::view_as_complex_copy", view_as_complex},
    {"aten::real", real_part},
    {"aten::imag", real_part},
};

}  // namespace

std::span<const ShapeRuleRow> view_rules() { return kRows; }

}  // namespace transporters::shape_rules
