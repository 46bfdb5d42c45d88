// The built-in decompositions: formulas of PyTorch's documentation in terms of simpler ops.
#include <cmath>

#include "transporters/passes/decompose.h"

namespace transporters {
namespace {

using Result = std::vector<Value*>;

bool is_number(const Argument& argument, double value) {
  if (const auto* real = std::get_if<double>(&argument)) return *real == value;
  if (const auto* boolean = std::get_if<bool>(&argument)) return (*boolean ? 1 : 0) == value;
  const auto* expr = std::get_if<Expr>(&argument);
  return expr != nullptr && expr->as_integer() && static_cast<double>(*expr->as_integer()) == value;
}

// factor * value.
Value* scaled(NodeBuilder& build, Value* value, const Argument& factor) {
  return is_number(factor, 1) ? value : build.binary("aten::mul.Tensor", value, factor);
}

// beta * self + alpha * product. Like PyTorch, NaNs of `self` do not pass when beta is 0.
Result accumulate(const Node& node, NodeBuilder& build, Value* product) {
  Value* right = scaled(build, product, node.get("alpha"));
  if (is_number(node.get("beta"), 0)) return {right};
  return {build.binary("aten::add.Tensor", scaled(build, node.tensor("self"), node.get("beta")), right)};
}

Result addmm(const Node& node, NodeBuilder& build) {
  return accumulate(node, build, build("aten::mm", {{"self", node.get("mat1")}, {"mat2", node.get("mat2")}}));
}

Result addmv(const Node& node, NodeBuilder& build) {
  return accumulate(node, build, build("aten::mv", {{"self", node.get("mat")}, {"vec", node.get("vec")}}));
}

Result addr(const Node& node, NodeBuilder& build) {
  Value* column = build("aten::unsqueeze", {{"self", node.get("vec1")}, {"dim", Expr(1)}});
  Value* row = build("aten::unsqueeze", {{"self", node.get("vec2")}, {"dim", Expr(0)}});
  return accumulate(node, build, build.binary("aten::mul.Tensor", column, row));
}

Result baddbmm(const Node& node, NodeBuilder& build) {
  return accumulate(node, build, build("aten::bmm", {{"self", node.get("batch1")}, {"mat2", node.get("batch2")}}));
}

Result addbmm(const Node& node, NodeBuilder& build) {
  Value* products = build("aten::bmm", {{"self", node.get("batch1")}, {"mat2", node.get("batch2")}});
  return accumulate(node, build, build("aten::sum.dim_IntList", {{"self", products}, {"dim", std::vector<Expr>{0}}}));
}

Result addcmul(const Node& node, NodeBuilder& build) {
  Value* product = build.binary("aten::mul.Tensor", node.get("tensor1"), node.get("tensor2"));
  return {build.binary("aten::add.Tensor", node.get("self"), scaled(build, product, node.get("value")))};
}

Result addcdiv(const Node& node, NodeBuilder& build) {
  Value* quotient = build.binary("aten::div.Tensor", node.get("tensor1"), node.get("tensor2"));
  return {build.binary("aten::add.Tensor", node.get("self"), scaled(build, quotient, node.get("value")))};
}

// other - alpha * self
Result rsub(const Node& node, NodeBuilder& build) {
  Value* right = scaled(build, node.tensor("self"), node.get("alpha"));
  if (std::holds_alternative<Value*>(node.get("other")))
    return {build.binary("aten::sub.Tensor", node.get("other"), right)};
  return {build.binary("aten::add.Tensor", build.unary("aten::neg", right), node.get("other"))};
}

// start + weight * (end - start)
Result lerp(const Node& node, NodeBuilder& build) {
  Value* distance = build.binary("aten::sub.Tensor", node.get("end"), node.get("self"));
  Value* step = build.binary("aten::mul.Tensor", distance, node.get("weight"));
  return {build.binary("aten::add.Tensor", node.get("self"), step)};
}

Result square(const Node& node, NodeBuilder& build) {
  return {build.binary("aten::mul.Tensor", node.get("self"), node.get("self"))};
}

Result rsqrt(const Node& node, NodeBuilder& build) {
  return {build.unary("aten::reciprocal", build.unary("aten::sqrt", node.get("self")))};
}

Result frac(const Node& node, NodeBuilder& build) {
  return {build.binary("aten::sub.Tensor", node.get("self"), build.unary("aten::trunc", node.get("self")))};
}

Result expm1(const Node& node, NodeBuilder& build) {
  return {build.binary("aten::sub.Tensor", build.unary("aten::exp", node.get("self")), Expr(1))};
}

Value* log1p_of(NodeBuilder& build, Value* value) {
  return build.unary("aten::log", build.binary("aten::add.Tensor", value, Expr(1)));
}

Result log1p(const Node& node, NodeBuilder& build) { return {log1p_of(build, node.tensor("self"))}; }

Result silu(const Node& node, NodeBuilder& build) {
  return {build.binary("aten::mul.Tensor", node.get("self"), build.unary("aten::sigmoid", node.get("self")))};
}

// x * tanh(softplus(x))
Result mish(const Node& node, NodeBuilder& build) {
  Value* softplus = build.unary("aten::softplus", node.get("self"));
  return {build.binary("aten::mul.Tensor", node.get("self"), build.unary("aten::tanh", softplus))};
}

// log(1 + exp(beta * x)) / beta, and x itself above the threshold: exp would overflow there.
Result softplus(const Node& node, NodeBuilder& build) {
  Value* self = node.tensor("self");
  Value* exponent = scaled(build, self, node.get("beta"));
  Value* curve = log1p_of(build, build.unary("aten::exp", exponent));
  if (!is_number(node.get("beta"), 1)) curve = build.binary("aten::div.Tensor", curve, node.get("beta"));
  Value* above = build("aten::gt.Scalar", {{"self", exponent}, {"other", node.get("threshold")}});
  return {build("aten::where.self", {{"condition", above}, {"self", self}, {"other", curve}})};
}

// min(x, 0) - log(1 + exp(-|x|))
Result log_sigmoid(const Node& node, NodeBuilder& build) {
  Value* low = build("aten::clamp", {{"self", node.get("self")}, {"max", Expr(0)}});
  Value* decay = build.unary("aten::exp", build.unary("aten::neg", build.unary("aten::abs", node.get("self"))));
  return {build.binary("aten::sub.Tensor", low, log1p_of(build, decay))};
}

// clamp(x + 3, 0, 6) / 6
Value* hardsigmoid_of(NodeBuilder& build, Value* self) {
  Value* shifted = build.binary("aten::add.Tensor", self, Expr(3));
  Value* clamped = build("aten::clamp", {{"self", shifted}, {"min", Expr(0)}, {"max", Expr(6)}});
  return build.binary("aten::div.Tensor", clamped, Expr(6));
}

Result hardsigmoid(const Node& node, NodeBuilder& build) { return {hardsigmoid_of(build, node.tensor("self"))}; }

Result hardswish(const Node& node, NodeBuilder& build) {
  return {build.binary("aten::mul.Tensor", node.get("self"), hardsigmoid_of(build, node.tensor("self")))};
}

// The first half times the sigmoid of the second.
Result glu(const Node& node, NodeBuilder& build) {
  Value* self = node.tensor("self");
  const int64_t dim = node.integer("dim");
  const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(self->rank()) : dim);
  const Expr half = symbolic::floor_div(self->sizes().at(axis), 2);
  const auto halves = build.outputs(
      "aten::split_with_sizes", {{"self", self}, {"split_sizes", std::vector<Expr>{half, half}}, {"dim", Expr(dim)}});
  return {build.binary("aten::mul.Tensor", halves[0], build.unary("aten::sigmoid", halves[1]))};
}

// max(a, b) + log(1 + exp(-|a - b|)), and the maximum itself where the two are equal: inf - inf is NaN.
Result logaddexp(const Node& node, NodeBuilder& build) {
  const Argument &a = node.get("self"), &b = node.get("other");
  Value* largest = build.binary("aten::maximum", a, b);
  Value* distance = build.unary("aten::abs", build.binary("aten::sub.Tensor", a, b));
  Value* nan = build.unary("aten::isnan", distance);
  Value* safe = build("aten::masked_fill.Scalar", {{"self", distance}, {"mask", nan}, {"value", 0.0}});
  Value* rest = log1p_of(build, build.unary("aten::exp", build.unary("aten::neg", safe)));
  return {build.binary("aten::add.Tensor", largest, rest)};
}

// x * log(y), and 0 where x is 0 unless y is NaN.
Result xlogy(const Node& node, NodeBuilder& build) {
  Value* product = build.binary("aten::mul.Tensor", node.get("self"), build.unary("aten::log", node.get("other")));
  Value* zero = build("aten::eq.Scalar", {{"self", node.get("self")}, {"other", Expr(0)}});
  Value* valid = build.unary("aten::logical_not", build.unary("aten::isnan", node.get("other")));
  Value* is_zero = build.binary("aten::logical_and", zero, valid);
  return {build("aten::masked_fill.Scalar", {{"self", product}, {"mask", is_zero}, {"value", 0.0}})};
}

Result hypot(const Node& node, NodeBuilder& build) {
  const auto squared = [&build](const Argument& x) { return build.binary("aten::mul.Tensor", x, x); };
  Value* sum = build.binary("aten::add.Tensor", squared(node.get("self")), squared(node.get("other")));
  return {build.unary("aten::sqrt", sum)};
}

// Each shift is a cut in two whose parts change places.
Result roll(const Node& node, NodeBuilder& build) {
  const auto shifts = node.sizes("shifts");
  const auto dims = node.integers("dims");
  if (dims.size() != shifts.size()) return {};  // rolls the flattened tensor
  Value* value = node.tensor("self");
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto axis = static_cast<size_t>(dims[i] < 0 ? dims[i] + static_cast<int64_t>(value->rank()) : dims[i]);
    const Expr size = value->sizes().at(axis);
    if (size.is(0)) continue;
    const Expr cut = size - symbolic::mod(shifts[i], size);
    const Argument dim = Expr(static_cast<int64_t>(axis));
    Value* head = build("aten::slice.Tensor", {{"self", value}, {"dim", dim}, {"start", Expr(0)}, {"end", cut}});
    Value* tail = build("aten::slice.Tensor", {{"self", value}, {"dim", dim}, {"start", cut}, {"end", size}});
    value = build("aten::cat", {{"tensors", Values{tail, head}}, {"dim", dim}});
  }
  return {value};
}

// Sizes of the reduced dimensions multiplied; all of them when `dim` is None or empty.
Expr reduced_count(const Node& node) {
  const Value* self = node.tensor("self");
  Expr count = 1;
  if (node.is_none("dim") || node.sizes("dim").empty()) return symbolic::product(self->sizes());
  for (const int64_t dim : node.integers("dim"))
    count = count * self->sizes().at(static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(self->rank()) : dim));
  return count;
}

std::vector<Expr> reduced_dims(const Node& node) {
  if (!node.is_none("dim") && !node.sizes("dim").empty()) return node.sizes("dim");
  std::vector<Expr> dims;
  for (size_t i = 0; i < node.tensor("self")->rank(); ++i) dims.emplace_back(static_cast<int64_t>(i));
  return dims;
}

// The sum of squared distances to the mean, over (count - correction), at least 0.
Value* variance_of(const Node& node, NodeBuilder& build, Value*& mean) {
  const Argument dims = reduced_dims(node);
  Value* self = node.tensor("self");
  mean = build("aten::mean.dim", {{"self", self}, {"dim", dims}, {"keepdim", true}});
  Value* distance = build.binary("aten::sub.Tensor", self, mean);
  Value* squares = build.binary("aten::mul.Tensor", distance, distance);
  Value* sum = build("aten::sum.dim_IntList", {{"self", squares}, {"dim", dims}, {"keepdim", node.get("keepdim")}});
  const Argument& correction = node.get("correction");
  const Expr count = reduced_count(node);
  if (is_number(correction, 0)) return build.binary("aten::div.Tensor", sum, count);
  if (const auto* real = std::get_if<double>(&correction)) {
    if (*real != std::trunc(*real)) {
      const Expr divisor = symbolic::to_real(count) - Expr::real(*real);
      return build.binary("aten::div.Tensor", sum, symbolic::max(divisor, Expr::real(0)));
    }
    return build.binary("aten::div.Tensor", sum, symbolic::max(count - static_cast<int64_t>(*real), 0));
  }
  const Expr subtracted = node.is_none("correction") ? Expr(1) : node.size("correction");
  return build.binary("aten::div.Tensor", sum, symbolic::max(count - subtracted, 0));
}

Result var(const Node& node, NodeBuilder& build) {
  Value* mean = nullptr;
  return {variance_of(node, build, mean)};
}

Result standard_deviation(const Node& node, NodeBuilder& build) {
  Value* mean = nullptr;
  return {build.unary("aten::sqrt", variance_of(node, build, mean))};
}

Result var_mean(const Node& node, NodeBuilder& build) {
  Value* mean = nullptr;
  Value* variance = variance_of(node, build, mean);
  if (!node.boolean("keepdim"))
    mean = build("aten::mean.dim", {{"self", node.get("self")}, {"dim", reduced_dims(node)}, {"keepdim", false}});
  return {variance, mean};
}

Result vector_norm(const Node& node, NodeBuilder& build) {
  const double order = node.real("ord");
  Value* self = node.tensor("self");
  if (const auto dtype = node.dtype_or_none("dtype"); dtype && *dtype != self->dtype())
    self = build("aten::to.dtype", {{"self", self}, {"dtype", *dtype}});
  const Argument dims = reduced_dims(node);
  const auto reduce = [&](std::string_view op, Value* value) {
    return build(op, {{"self", value}, {"dim", dims}, {"keepdim", node.get("keepdim")}});
  };
  if (order == 2)
    return {build.unary("aten::sqrt", reduce("aten::sum.dim_IntList", build.binary("aten::mul.Tensor", self, self)))};
  Value* absolute = build.unary("aten::abs", self);
  if (order == 1) return {reduce("aten::sum.dim_IntList", absolute)};
  if (std::isinf(order)) return {reduce(order > 0 ? "aten::amax" : "aten::amin", absolute)};
  if (order == 0) return {};
  Value* powers = build("aten::pow.Tensor_Scalar", {{"self", absolute}, {"exponent", order}});
  return {
      build("aten::pow.Tensor_Scalar", {{"self", reduce("aten::sum.dim_IntList", powers)}, {"exponent", 1 / order}})};
}

// x1 · x2 / (max(|x1|, eps) max(|x2|, eps)), the norms along `dim`.
Result cosine_similarity(const Node& node, NodeBuilder& build) {
  const std::vector<Expr> dim = {node.size("dim")};
  const auto unit = [&](Value* x) {
    Value* squares = build("aten::sum.dim_IntList",
                           {{"self", build.binary("aten::mul.Tensor", x, x)}, {"dim", dim}, {"keepdim", true}});
    Value* norm = build("aten::clamp_min", {{"self", build.unary("aten::sqrt", squares)}, {"min", node.get("eps")}});
    return build.binary("aten::div.Tensor", x, norm);
  };
  Value* product = build.binary("aten::mul.Tensor", unit(node.tensor("x1")), unit(node.tensor("x2")));
  return {build("aten::sum.dim_IntList", {{"self", product}, {"dim", dim}})};
}

// The norm of x1 - x2 + eps along the last dim.
Result pairwise_distance(const Node& node, NodeBuilder& build) {
  Value* difference = build.binary("aten::sub.Tensor", node.get("x1"), node.get("x2"));
  Value* moved = build.binary("aten::add.Tensor", difference, node.get("eps"));
  return {build(
      "aten::linalg_vector_norm",
      {{"self", moved}, {"ord", node.get("p")}, {"dim", std::vector<Expr>{-1}}, {"keepdim", node.get("keepdim")}})};
}

// v * g / |v|, the norm over all dims but one (over all of them for -1).
Result weight_norm(const Node& node, NodeBuilder& build) {
  Value* v = node.tensor("v");
  const int64_t kept = node.integer("dim");
  std::vector<Expr> dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(v->rank()); ++dim)
    if (dim != kept) dims.emplace_back(dim);
  Value* squares = build("aten::sum.dim_IntList",
                         {{"self", build.binary("aten::mul.Tensor", v, v)}, {"dim", dims}, {"keepdim", true}});
  Value* scale = build.binary("aten::div.Tensor", node.get("g"), build.unary("aten::sqrt", squares));
  return {build.binary("aten::mul.Tensor", v, scale)};
}

// The product of three tensors with dims of size 1 put in, summed over some dims.
Result trilinear(const Node& node, NodeBuilder& build) {
  const auto expanded = [&](const char* tensor, const char* dims) {
    Value* value = node.tensor(tensor);
    for (const int64_t dim : node.integers(dims))
      value = build("aten::unsqueeze", {{"self", value}, {"dim", Expr(dim)}});
    return value;
  };
  Value* product = build.binary("aten::mul.Tensor", expanded("i1", "expand1"), expanded("i2", "expand2"));
  product = build.binary("aten::mul.Tensor", product, expanded("i3", "expand3"));
  return {build("aten::sum.dim_IntList", {{"self", product}, {"dim", node.sizes("sumdim")}})};
}

constexpr DecompositionRow kTable[] = {
    {"aten::cosine_similarity", cosine_similarity},
    {"aten::_trilinear", trilinear},
    {"aten::_weight_norm", weight_norm},
    {"aten::pairwise_distance", pairwise_distance},
    {"aten::addmm", addmm},
    {"aten::addmv", addmv},
    {"aten::addr", addr},
    {"aten::baddbmm", baddbmm},
    {"aten::addbmm", addbmm},
    {"aten::addcmul", addcmul},
    {"aten::addcdiv", addcdiv},
    {"aten::rsub.Tensor", rsub},
    {"aten::rsub.Scalar", rsub},
    {"aten::lerp.Tensor", lerp},
    {"aten::lerp.Scalar", lerp},
    {"aten::square", square},
    {"aten::rsqrt", rsqrt},
    {"aten::frac", frac},
    {"aten::expm1", expm1},
    {"aten::log1p", log1p},
    {"aten::silu", silu},
    {"aten::mish", mish},
    {"aten::softplus", softplus},
    {"aten::log_sigmoid", log_sigmoid},
    {"aten::hardsigmoid", hardsigmoid},
    {"aten::hardswish", hardswish},
    {"aten::glu", glu},
    {"aten::logaddexp", logaddexp},
    {"aten::xlogy.Tensor", xlogy},
    {"aten::hypot", hypot},
    {"aten::roll", roll},
    {"aten::var.correction", var},
    {"aten::std.correction", standard_deviation},
    {"aten::var_mean.correction", var_mean},
    {"aten::linalg_vector_norm", vector_norm},
};

}  // namespace

std::span<const DecompositionRow> decomposition_table() {
  static const auto table = [] {
    std::vector<DecompositionRow> rows(std::begin(kTable), std::end(kTable));
    rows.insert(rows.end(), fft_decompositions().begin(), fft_decompositions().end());
    return rows;
  }();
  return table;
}

}  // namespace transporters
