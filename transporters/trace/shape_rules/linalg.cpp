// Decompositions, solvers and functions of matrices: [..., m, n].
#include <algorithm>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

const TensorType& matrix(const Node& node, size_t position = 0) {
  const auto& type = input(node, position);
  check_rank_at_least(node, node.schema().arguments[position].name, type, 2);
  return type;
}

const TensorType& square(const Node& node, ShapeEnv& env, size_t position = 0) {
  const auto& type = matrix(node, position);
  common_size(node, type.sizes[type.rank() - 2], type.sizes.back(), env,
              "expected square matrices, got " + describe(type));
  return type;
}

Sizes batch(const TensorType& type) { return Sizes(type.sizes.begin(), type.sizes.end() - 2); }

Sizes with(Sizes sizes, std::initializer_list<Expr> more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
  return sizes;
}

Expr rows(const TensorType& type) { return type.sizes[type.rank() - 2]; }
Expr columns(const TensorType& type) { return type.sizes.back(); }
Expr shorter_side(const TensorType& type, ShapeEnv& env) { return env.simplify(min(rows(type), columns(type))); }

// inverse, cholesky, matrix_exp, matrix_power: square in, square out.
Types same_square(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return one(self.dtype, self.sizes);
}

// -> result, info
Types same_square_ex(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return {tensor(self.dtype, self.sizes), tensor(ScalarType::Int, batch(self))};
}

Types pinv(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  return one(self.dtype, with(batch(self), {columns(self), rows(self)}));
}

Types det(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return one(self.dtype, batch(self));
}

// -> determinant, LU, pivots
Types det_with_factors(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return {tensor(self.dtype, batch(self)), tensor(self.dtype, self.sizes),
          tensor(ScalarType::Int, with(batch(self), {columns(self)}))};
}

Types slogdet(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return {tensor(self.dtype, batch(self)), tensor(to_real_dtype(self.dtype), batch(self))};
}

// -> sign, log of the absolute value, LU, pivots
Types slogdet_with_factors(const Node& node, ShapeEnv& env) {
  Types types = slogdet(node, env);
  const auto& self = input(node, 0);
  types.push_back(tensor(self.dtype, self.sizes));
  types.push_back(tensor(ScalarType::Int, with(batch(self), {columns(self)})));
  return types;
}

// -> Q, R. "reduced", "complete" or "r", which leaves Q empty.
Types qr(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  const std::string mode = has(node, "mode") ? node.string("mode") : flag(node, "some", true) ? "reduced" : "complete";
  check(mode == "reduced" || mode == "complete" || mode == "r", node,
        "expected mode 'reduced', 'complete' or 'r', got '" + mode + "'");
  const Expr inner = mode == "complete" ? rows(self) : shorter_side(self, env);
  const ValueType q = tensor(self.dtype, mode == "r" ? Sizes{0} : with(batch(self), {rows(self), inner}));
  return {q, tensor(self.dtype, with(batch(self), {inner, columns(self)}))};
}

// -> reflectors, their factors
Types geqrf(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  return {tensor(self.dtype, self.sizes), tensor(self.dtype, with(batch(self), {shorter_side(self, env)}))};
}

// -> U, S, Vh (svd: V)
Types svd(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  const bool is_legacy = node.schema().base_name() == "aten::svd";
  const bool full = is_legacy ? !node.boolean("some") : node.boolean("full_matrices");
  const Expr side = shorter_side(self, env);
  const ValueType values = tensor(to_real_dtype(self.dtype), with(batch(self), {side}));
  if (!is_legacy && !flag(node, "compute_uv", true)) return {tensor(self.dtype, {0}), values, tensor(self.dtype, {0})};
  const bool whole = full || (is_legacy && !node.boolean("compute_uv"));
  const Expr left = whole ? rows(self) : side, right = whole ? columns(self) : side;
  const Sizes v = is_legacy ? with(batch(self), {columns(self), right}) : with(batch(self), {right, columns(self)});
  return {tensor(self.dtype, with(batch(self), {rows(self), left})), values, tensor(self.dtype, v)};
}

Types singular_values(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  return one(to_real_dtype(self.dtype), with(batch(self), {shorter_side(self, env)}));
}

// -> eigenvalues, eigenvectors of symmetric matrices: real values
Types eigh(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  const ValueType values = tensor(to_real_dtype(self.dtype), with(batch(self), {columns(self)}));
  const bool vectors = flag(node, "compute_v", true);
  return {values, tensor(self.dtype, vectors ? self.sizes : Sizes{0})};
}

Types eigvalsh(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return one(to_real_dtype(self.dtype), with(batch(self), {columns(self)}));
}

// Of general matrices: complex.
Types eig(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  const ScalarType dtype = c10::toComplexType(self.dtype);
  return {tensor(dtype, with(batch(self), {columns(self)})), tensor(dtype, self.sizes)};
}

Types eigvals(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  return one(c10::toComplexType(self.dtype), with(batch(self), {columns(self)}));
}

// -> LU, pivots and, in the _ex form, info
Types lu_factor(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  Types types = {tensor(self.dtype, self.sizes), tensor(ScalarType::Int, with(batch(self), {shorter_side(self, env)}))};
  if (node.schema().returns.size() == 3) types.push_back(tensor(ScalarType::Int, batch(self)));
  return types;
}

// -> P, L, U
Types lu(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  const Expr side = shorter_side(self, env);
  const Sizes permutation = flag(node, "pivot", true) ? with(batch(self), {rows(self), rows(self)}) : Sizes{0};
  return {tensor(self.dtype, permutation), tensor(self.dtype, with(batch(self), {rows(self), side})),
          tensor(self.dtype, with(batch(self), {side, columns(self)}))};
}

Types lu_unpack(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  const Expr side = shorter_side(self, env);
  const bool data = node.boolean("unpack_data"), pivots = node.boolean("unpack_pivots");
  const Sizes none = {0};
  return {tensor(self.dtype, pivots ? with(batch(self), {rows(self), rows(self)}) : none),
          tensor(self.dtype, data ? with(batch(self), {rows(self), side}) : none),
          tensor(self.dtype, data ? with(batch(self), {side, columns(self)}) : none)};
}

// -> LD, pivots and, in the _ex form, info
Types ldl_factor(const Node& node, ShapeEnv& env) {
  const auto& self = square(node, env);
  Types types = {tensor(self.dtype, self.sizes), tensor(ScalarType::Int, with(batch(self), {columns(self)}))};
  if (node.schema().returns.size() == 3) types.push_back(tensor(ScalarType::Int, batch(self)));
  return types;
}

// ── Solvers: A x = B, or x A = B where not `left` ──

// B is a batch of vectors when it has one dim, or one dim less than A with A's leading sizes.
bool is_vector_batch(const TensorType& a, const TensorType& b, ShapeEnv& env) {
  if (b.rank() == 1) return true;
  if (b.rank() + 1 != a.rank()) return false;
  for (size_t i = 0; i < b.rank(); ++i) {
    const auto same = env.decide(equal(b.sizes[i], a.sizes[i]));
    if (same ? !*same : env.hint(b.sizes[i]) != env.hint(a.sizes[i])) return false;
  }
  return true;
}

Sizes solution_sizes(const Node& node, const TensorType& a, const TensorType& b, ShapeEnv& env) {
  if (is_vector_batch(a, b, env)) {
    Sizes b_batch(b.sizes.begin(), b.sizes.end() - 1);
    return with(broadcast(batch(a), b_batch, env), {columns(a)});
  }
  check_rank_at_least(node, "B", b, 2);
  const bool left = flag(node, "left", true);
  common_size(node, left ? rows(b) : columns(b), columns(a), env,
              "expected B of A's size, got " + describe(a) + " and " + describe(b));
  return with(broadcast(batch(a), batch(b), env), {rows(b), columns(b)});
}

Types solve(const Node& node, ShapeEnv& env) {
  const auto& a = square(node, env);
  return one(a.dtype, solution_sizes(node, a, input(node, 1), env));
}

// -> result, info
Types solve_ex(const Node& node, ShapeEnv& env) {
  const auto& a = square(node, env);
  return {tensor(a.dtype, solution_sizes(node, a, input(node, 1), env)), tensor(ScalarType::Int, batch(a))};
}

// -> result, LU, pivots, info
Types solve_with_factors(const Node& node, ShapeEnv& env) {
  const auto& a = square(node, env);
  return {tensor(a.dtype, solution_sizes(node, a, input(node, 1), env)), tensor(a.dtype, a.sizes),
          tensor(ScalarType::Int, with(batch(a), {columns(a)})), tensor(ScalarType::Int, batch(a))};
}

// linalg_solve_triangular(A, B), both matrices.
Types solve_triangular(const Node& node, ShapeEnv& env) {
  const auto& a = square(node, env);
  const auto& b = matrix(node, 1);
  common_size(node, flag(node, "left", true) ? rows(b) : columns(b), columns(a), env,
              "expected B of A's size, got " + describe(a) + " and " + describe(b));
  return one(b.dtype, with(broadcast(batch(a), batch(b), env), {rows(b), columns(b)}));
}

// The right-hand side comes first: cholesky_solve, lu_solve.
Types solve_rhs_first(const Node& node, ShapeEnv& env) {
  const auto& b = matrix(node, 0);
  const auto& a = matrix(node, 1);
  return one(b.dtype, with(broadcast(batch(a), batch(b), env), {rows(b), columns(b)}));
}

// linalg_lu_solve(LU, pivots, B), linalg_ldl_solve(LD, pivots, B)
Types solve_factored(const Node& node, ShapeEnv& env) {
  const auto& a = matrix(node, 0);
  const auto& b = matrix(node, 2);
  return one(b.dtype, with(broadcast(batch(a), batch(b), env), {rows(b), columns(b)}));
}

// -> solution, a copy of A
Types triangular_solve(const Node& node, ShapeEnv& env) {
  const auto& b = matrix(node, 0);
  const auto& a = square(node, env, 1);
  const Sizes leading = broadcast(batch(a), batch(b), env);
  return {tensor(b.dtype, with(leading, {rows(b), columns(b)})), tensor(a.dtype, with(leading, {rows(a), columns(a)}))};
}

// linalg_householder_product(input, tau), orgqr
Types householder(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  return one(self.dtype, self.sizes);
}

Types ormqr(const Node& node, ShapeEnv& env) {
  const auto& other = input(node, "input3");
  return one(other.dtype, other.sizes);
}

Types matrix_rank(const Node& node, ShapeEnv& env) { return one(ScalarType::Long, batch(matrix(node))); }

Types condition_number(const Node& node, ShapeEnv& env) {
  const auto& self = matrix(node);
  return one(to_real_dtype(self.dtype), batch(self));
}

// The first `ind` dims go behind the others.
Types tensorinv(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const int64_t ind = node.integer("ind");
  check(ind > 0 && ind <= static_cast<int64_t>(self.rank()), node, "expected ind within the rank of " + describe(self));
  Sizes sizes(self.sizes.begin() + ind, self.sizes.end());
  sizes.insert(sizes.end(), self.sizes.begin(), self.sizes.begin() + ind);
  return one(self.dtype, sizes);
}

// linalg_tensorsolve(self, other, dims): self's dims after those of other, once `dims` have been moved to the end.
Types tensorsolve(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto& other = input(node, 1);
  const auto moved = dim_list(node, "dims", self.rank());
  Sizes order;
  for (size_t i = 0; i < self.rank(); ++i) {
    if (std::find(moved.begin(), moved.end(), i) == moved.end()) order.push_back(self.sizes[i]);
  }
  for (const size_t d : moved) order.push_back(self.sizes[d]);
  check(order.size() >= other.rank(), node,
        "expected self of other's rank or more, got " + describe(self) + " and " + describe(other));
  return one(self.dtype, Sizes(order.begin() + static_cast<std::ptrdiff_t>(other.rank()), order.end()));
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::inverse", same_square},
    {"aten::linalg_inv", same_square},
    {"aten::linalg_inv_ex", same_square_ex},
    {"aten::cholesky", same_square},
    {"aten::linalg_cholesky", same_square},
    {"aten::linalg_cholesky_ex", same_square_ex},
    {"aten::cholesky_inverse", same_square},
    {"aten::matrix_exp", same_square},
    {"aten::linalg_matrix_exp", same_square},
    {"aten::matrix_power", same_square},
    {"aten::linalg_matrix_power", same_square},
    {"aten::linalg_pinv", pinv},
    {"aten::pinverse", pinv},
    {"aten::det", det},
    {"aten::linalg_det", det},
    {"aten::logdet", det},
    {"aten::_linalg_det", det_with_factors},
    {"aten::slogdet", slogdet},
    {"aten::linalg_slogdet", slogdet},
    {"aten::_linalg_slogdet", slogdet_with_factors},
    {"aten::qr", qr},
    {"aten::linalg_qr", qr},
    {"aten::geqrf", geqrf},
    {"aten::svd", svd},
    {"aten::linalg_svd", svd},
    {"aten::_linalg_svd", svd},
    {"aten::linalg_svdvals", singular_values},
    {"aten::linalg_eigh", eigh},
    {"aten::_linalg_eigh", eigh},
    {"aten::linalg_eigvalsh", eigvalsh},
    {"aten::linalg_eig", eig},
    {"aten::linalg_eigvals", eigvals},
    {"aten::_linalg_eigvals", eigvals},
    {"aten::linalg_lu_factor", lu_factor},
    {"aten::linalg_lu_factor_ex", lu_factor},
    {"aten::_lu_with_info", lu_factor},
    {"aten::linalg_lu", lu},
    {"aten::lu_unpack", lu_unpack},
    {"aten::linalg_ldl_factor", ldl_factor},
    {"aten::linalg_ldl_factor_ex", ldl_factor},
    {"aten::linalg_solve", solve},
    {"aten::linalg_solve_ex", solve_ex},
    {"aten::_linalg_solve_ex", solve_with_factors},
    {"aten::linalg_solve_triangular", solve_triangular},
    {"aten::cholesky_solve", solve_rhs_first},
    {"aten::lu_solve", solve_rhs_first},
    {"aten::linalg_lu_solve", solve_factored},
    {"aten::linalg_ldl_solve", solve_factored},
    {"aten::triangular_solve", triangular_solve},
    {"aten::linalg_householder_product", householder},
    {"aten::orgqr", householder},
    {"aten::ormqr", ormqr},
    {"aten::linalg_matrix_rank", matrix_rank},
    {"aten::linalg_cond", condition_number},
    {"aten::linalg_tensorinv", tensorinv},
    {"aten::linalg_tensorsolve", tensorsolve},
};

}  // namespace

std::span<const ShapeRuleRow> linalg_rules() { return kRows; }

}  // namespace transporters::shape_rules
