// Losses of models that are exported with labels, and distances.
#include <cmath>
#include <utility>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

constexpr int64_t kMean = 1, kSum = 2;

// Elementwise losses as the "reduction" argument asks.
Value* reduced(Lowering& l, const AtenNode& n, Value* loss, int64_t rank) {
  const int64_t reduction = n.integer("reduction");
  if (reduction != kMean && reduction != kSum) return loss;
  return l.reduce(reduction == kMean ? "ReduceMean" : "ReduceSum", loss, iota(rank), false);
}

Value* sum_all(Lowering& l, Value* x, int64_t rank) { return l.reduce("ReduceSum", x, iota(rank), false); }

struct Pair {
  Value* input;
  Value* target;
};

Pair operands(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {l.input(n, "self", dtype), l.input(n, "target", dtype)};
}

int64_t broadcast_rank(const AtenNode& n) { return std::max(rank(n.tensor("self")), rank(n.tensor("target"))); }

Outputs mse_loss(Lowering& l, const AtenNode& n) {
  const auto [x, y] = operands(l, n);
  Value* difference = l.emit("Sub", {x, y});
  return {reduced(l, n, l.emit("Mul", {difference, difference}), broadcast_rank(n))};
}

Outputs l1_loss(Lowering& l, const AtenNode& n) {
  const auto [x, y] = operands(l, n);
  return {reduced(l, n, l.emit("Abs", {l.emit("Sub", {x, y})}), broadcast_rank(n))};
}

// Square near 0, straight beyond `bound`: scale_square * d^2 and scale_line * (|d| - bound / 2).
Value* bent(Lowering& l, const AtenNode& n, double bound, double scale_square, double scale_line) {
  const ScalarType dtype = out_dtype(n);
  const auto [x, y] = operands(l, n);
  Value* distance = l.emit("Abs", {l.emit("Sub", {x, y})});
  Value* square = l.emit("Mul", {l.emit("Mul", {distance, distance}), l.scalar(scale_square, dtype)});
  Value* line = l.emit("Mul", {l.emit("Sub", {distance, l.scalar(bound / 2, dtype)}), l.scalar(scale_line, dtype)});
  return l.emit("Where", {l.emit("Less", {distance, l.scalar(bound, dtype)}), square, line});
}

Outputs smooth_l1_loss(Lowering& l, const AtenNode& n) {
  const double beta = n.real("beta");
  if (beta == 0) return l1_loss(l, n);
  return {reduced(l, n, bent(l, n, beta, 0.5 / beta, 1), broadcast_rank(n))};
}

Outputs huber_loss(Lowering& l, const AtenNode& n) {
  const double delta = n.real("delta");
  return {reduced(l, n, bent(l, n, delta, 0.5, delta), broadcast_rank(n))};
}

// -(y * log(x) + (1 - y) * log(1 - x)), logarithms not below -100, as in torch.
Outputs binary_cross_entropy(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const auto [x, y] = operands(l, n);
  Value* one = l.scalar(1, dtype);
  const auto log = [&](Value* value) { return l.emit("Max", {l.emit("Log", {value}), l.scalar(-100, dtype)}); };
  Value* negative = l.emit("Mul", {l.emit("Sub", {one, y}), log(l.emit("Sub", {one, x}))});
  Value* loss = l.emit("Neg", {l.emit("Add", {l.emit("Mul", {y, log(x)}), negative})});
  if (Value* weight = l.input_or_null(n, "weight", dtype)) loss = l.emit("Mul", {loss, weight});
  return {reduced(l, n, loss, broadcast_rank(n))};
}

// (1 - y) * x + w * log(1 + exp(-x)), where w is 1, or grows with pos_weight for positive targets.
Outputs binary_cross_entropy_with_logits(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const auto [x, y] = operands(l, n);
  Value* one = l.scalar(1, dtype);
  Value* log_term = l.emit("Softplus", {l.emit("Neg", {x})});
  if (Value* positive = l.input_or_null(n, "pos_weight", dtype)) {
    Value* extra = l.emit("Mul", {l.emit("Sub", {positive, one}), y});
    log_term = l.emit("Mul", {l.emit("Add", {extra, one}), log_term});
  }
  Value* loss = l.emit("Add", {l.emit("Mul", {l.emit("Sub", {one, y}), x}), log_term});
  if (Value* weight = l.input_or_null(n, "weight", dtype)) loss = l.emit("Mul", {loss, weight});
  return {reduced(l, n, loss, broadcast_rank(n))};
}

// y * (log(y) - x), 0 where y is; x and, with log_target, y are logarithms.
Outputs kl_div(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const auto [x, y] = operands(l, n);
  Value* loss;
  if (n.boolean("log_target")) {
    loss = l.emit("Mul", {l.emit("Exp", {y}), l.emit("Sub", {y, x})});
  } else {
    Value* is_zero = l.emit("Equal", {y, l.scalar(0, dtype)});
    Value* own = l.emit("Where", {is_zero, l.scalar(0, dtype), l.emit("Mul", {y, l.emit("Log", {y})})});
    loss = l.emit("Sub", {own, l.emit("Mul", {y, x})});
  }
  return {reduced(l, n, loss, broadcast_rank(n))};
}

// ── Classes ──

struct Picked {
  Value* loss;    // per target, weighted; 0 where ignored
  Value* weight;  // per target; 0 where ignored
};

// The class dimension is the second, or the only one.
int64_t class_dim(const AtenValue* input) { return rank(input) == 1 ? 0 : 1; }

Value* is_ignored(Lowering& l, const AtenNode& n, Value* target) {
  return l.emit("Equal", {target, l.size(n.size("ignore_index"))});
}

// -log_probabilities[target], weighted per class.
Picked pick(Lowering& l, const AtenNode& n, Value* log_probabilities) {
  const ScalarType dtype = out_dtype(n);
  const int64_t dim = class_dim(n.tensor("self"));
  Value* target = l.input(n, "target", ScalarType::Long);
  Value* ignored = is_ignored(l, n, target);
  Value* safe = l.emit("Where", {ignored, l.integer(0), target});
  Value* picked = l.emit("GatherElements", {log_probabilities, l.unsqueeze(safe, {dim})}, {{"axis", dim}});
  picked = l.emit("Neg", {l.squeeze(picked, {dim})});
  Value* weight = l.scalar(1, dtype);
  if (Value* weights = l.input_or_null(n, "weight", dtype)) weight = l.emit("Gather", {weights, safe});
  weight = l.emit("Where", {ignored, l.scalar(0, dtype), weight});
  return {l.emit("Mul", {picked, weight}), weight};
}

// (loss, sum of weights)
Outputs nll_loss(Lowering& l, const AtenNode& n) {
  const int64_t reduction = n.integer("reduction"), dims = rank(n.tensor("target"));
  const auto [loss, weight] = pick(l, n, l.input(n, "self", out_dtype(n)));
  if (reduction != kMean && reduction != kSum) return {loss, l.scalar(0, out_dtype(n))};
  Value* total = sum_all(l, weight, dims);
  Value* sum = sum_all(l, loss, dims);
  return {reduction == kSum ? sum : l.emit("Div", {sum, total}), total};
}

// Targets are class indices, or a probability for each class.
Outputs cross_entropy(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* self = n.tensor("self");
  const int64_t reduction = n.integer("reduction"), dim = class_dim(self);
  const double smoothing = n.real("label_smoothing");
  const Expr classes = size_at(self, dim);
  Value* logs = l.emit("LogSoftmax", {l.input(n, "self", dtype)}, {{"axis", dim}});
  Value* weights = l.input_or_null(n, "weight", dtype);
  Value* weighted = weights ? l.emit("Mul", {logs, along(l, weights, 0, rank(self) - dim)}) : logs;

  if (is_real(n.tensor("target")->dtype())) {
    Value* target = l.input(n, "target", dtype);
    if (smoothing > 0) {
      Value* uniform = l.emit("Div", {l.scalar(smoothing, dtype), l.number(classes, dtype)});
      target = l.emit("Add", {l.emit("Mul", {target, l.scalar(1 - smoothing, dtype)}), uniform});
    }
    Value* loss = l.emit("Neg", {l.reduce("ReduceSum", l.emit("Mul", {weighted, target}), {dim}, false)});
    return {reduced(l, n, loss, rank(self) - 1)};
  }

  auto [loss, weight] = pick(l, n, logs);
  const int64_t dims = rank(n.tensor("target"));
  if (smoothing > 0) {
    Value* spread = l.emit("Neg", {l.reduce("ReduceSum", weighted, {dim}, false)});
    Value* ignored = is_ignored(l, n, l.input(n, "target", ScalarType::Long));
    spread = l.emit("Where", {ignored, l.scalar(0, dtype), spread});
    Value* share = l.emit("Div", {l.scalar(smoothing, dtype), l.number(classes, dtype)});
    loss = l.emit("Add", {l.emit("Mul", {loss, l.scalar(1 - smoothing, dtype)}), l.emit("Mul", {spread, share})});
  }
  if (reduction != kMean && reduction != kSum) return {loss};
  Value* sum = sum_all(l, loss, dims);
  return {reduction == kSum ? sum : l.emit("Div", {sum, sum_all(l, weight, dims)})};
}

// ── Distances ──

// The p-distance of each row of x1 to each row of x2.
Outputs cdist(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const double p = n.real("p");
  const int64_t dims = rank(n.outputs()[0]);
  Value* rows = l.unsqueeze(l.input(n, "x1", dtype), {-2});
  Value* difference = l.emit("Sub", {rows, l.unsqueeze(l.input(n, "x2", dtype), {-3})});
  if (p == 2) return {l.reduce("ReduceL2", difference, {dims}, false)};
  if (p == 1) return {l.reduce("ReduceL1", difference, {dims}, false)};
  Value* distance = l.emit("Abs", {difference});
  if (std::isinf(p)) return {l.reduce("ReduceMax", distance, {dims}, false)};
  if (p == 0) {
    Value* differs = l.emit("Greater", {distance, l.scalar(0, dtype)});
    return {l.reduce("ReduceSum", l.cast(differs, dtype), {dims}, false)};
  }
  Value* sum = l.reduce("ReduceSum", l.emit("Pow", {distance, l.scalar(p, dtype)}), {dims}, false);
  return {l.emit("Pow", {sum, l.scalar(1 / p, dtype)})};
}

// The same for p = 2, by one product of all rows.
Outputs euclidean_dist(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* left = l.input(n, "x1", dtype);
  std::vector<int64_t> order = iota(rank(n.tensor("x2")));
  std::swap(order[order.size() - 2], order.back());
  Value* right = l.transpose(l.input(n, "x2", dtype), order);
  const auto squares = [&](Value* rows, int64_t dim) { return l.reduce("ReduceSumSquare", rows, {dim}, true); };
  Value* sum = l.emit("Add", {squares(left, rank(n.tensor("x1")) - 1), squares(right, rank(n.tensor("x2")) - 2)});
  Value* product = l.emit("Mul", {l.emit("MatMul", {left, right}), l.scalar(2, dtype)});
  return {l.emit("Sqrt", {l.emit("Max", {l.emit("Sub", {sum, product}), l.scalar(0, dtype)})})};
}

constexpr OpRow kRows[] = {
    {"aten::_cdist_forward", cdist},
    {"aten::_euclidean_dist", euclidean_dist},
    {"aten::binary_cross_entropy", binary_cross_entropy},
    {"aten::binary_cross_entropy_with_logits", binary_cross_entropy_with_logits},
    {"aten::cdist", cdist},
    {"aten::cross_entropy_loss", cross_entropy},
    {"aten::huber_loss", huber_loss},
    {"aten::kl_div", kl_div},
    {"aten::l1_loss", l1_loss},
    {"aten::mse_loss", mse_loss},
    {"aten::nll_loss", nll_loss},
    {"aten::nll_loss2d", nll_loss},
    {"aten::nll_loss2d_forward", nll_loss},
    {"aten::nll_loss_forward", nll_loss},
    {"aten::nll_loss_nd", nll_loss},
    {"aten::smooth_l1_loss", smooth_l1_loss},
};

}  // namespace

std::span<const OpRow> loss_ops() { return kRows; }

}  // namespace transporters::onnx
