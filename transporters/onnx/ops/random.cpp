// Random numbers. The runtime draws its own: results agree with torch's in distribution, not in value.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Value* draw(Lowering& l, const AtenNode& n, std::string_view op, Attributes attributes,
            const std::vector<Expr>& sizes) {
  const ScalarType dtype = out_dtype(n);
  const ScalarType compute = is_real(dtype) && !is_half(dtype) ? dtype : ScalarType::Float;
  std::vector<int64_t> dims;
  for (const Expr& size : sizes) {
    if (const auto constant = size.as_integer()) dims.push_back(*constant);
  }
  attributes.push_back({"dtype", static_cast<int64_t>(to_data_type(compute))});
  if (dims.size() == sizes.size()) {
    attributes.push_back({"shape", dims});
    return l.emit(op, {}, attributes);
  }
  Value* like = l.emit("ConstantOfShape", {l.shape(sizes)});
  return l.emit(std::string(op) + "Like", {like}, attributes);
}

Value* uniform(Lowering& l, const AtenNode& n, double low, double high) {
  return draw(l, n, "RandomUniform", {{"low", static_cast<float>(low)}, {"high", static_cast<float>(high)}},
              out_sizes(n));
}

Outputs rand(Lowering& l, const AtenNode& n) { return {uniform(l, n, 0, 1)}; }
Outputs randn(Lowering& l, const AtenNode& n) { return {draw(l, n, "RandomNormal", {}, out_sizes(n))}; }
Outputs uniform_op(Lowering& l, const AtenNode& n) { return {uniform(l, n, n.real("from"), n.real("to"))}; }

Outputs randint(Lowering& l, const AtenNode& n) {
  const int64_t low = n.schema().find("low") ? n.integer("low") : 0, high = n.integer("high");
  Value* drawn = l.emit("Floor", {uniform(l, n, static_cast<double>(low), static_cast<double>(high))});
  // Rounding may reach the upper end, which does not belong to the range.
  return {l.emit("Min", {l.cast(drawn, ScalarType::Long), l.integer(high - 1)})};
}

// The order of random numbers.
Outputs randperm(Lowering& l, const AtenNode& n) {
  Value* keys = draw(l, n, "RandomUniform", {}, out_sizes(n));
  return {l.emit_many("TopK", {keys, l.size_vector(out_sizes(n)[0])}, {}, 2)[1]};
}

// Mean and deviation as numbers or tensors.
Outputs normal(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* drawn = l.cast(draw(l, n, "RandomNormal", {}, out_sizes(n)), dtype);
  return {l.emit("Add", {l.emit("Mul", {drawn, l.input(n, "std", dtype)}), l.input(n, "mean", dtype)})};
}

Outputs bernoulli(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* drawn = l.cast(draw(l, n, "RandomUniform", {}, out_sizes(n)), dtype);
  Value* probability = l.input(n, n.schema().find("p") ? "p" : "self", dtype);
  return {l.cast(l.emit("Less", {drawn, probability}), dtype)};
}

Outputs exponential(Lowering& l, const AtenNode& n) {
  // 1 - u is never 0.
  Value* u = l.emit("Sub", {l.scalar(1, ScalarType::Float), l.cast(uniform(l, n, 0, 1), ScalarType::Float)});
  return {l.emit("Div", {l.emit("Neg", {l.emit("Log", {u})}), l.scalar(n.real("lambd"), ScalarType::Float)})};
}

// Without replacement, the order of log(p) plus Gumbel noise; with replacement ONNX has the op, for logarithms.
Outputs multinomial(Lowering& l, const AtenNode& n) {
  const AtenValue* self = n.tensor("self");
  Value* logs = l.emit("Log", {l.input(n, "self", ScalarType::Float)});
  if (n.boolean("replacement")) {
    if (rank(self) == 1) logs = l.unsqueeze(logs, {0});
    Value* drawn =
        l.emit("Multinomial", {logs},
               {{"dtype", static_cast<int64_t>(DataType::INT64)}, {"sample_size", n.integer("num_samples")}});
    return {rank(self) == 1 ? l.squeeze(drawn, {0}) : drawn};
  }
  Value* like = l.emit("ConstantOfShape", {l.shape(self->sizes())});
  Value* u = l.emit("RandomUniformLike", {like}, {{"low", 1e-20f}, {"dtype", static_cast<int64_t>(DataType::FLOAT)}});
  Value* noise = l.emit("Neg", {l.emit("Log", {l.emit("Neg", {l.emit("Log", {u})})})});
  return {l.emit_many("TopK", {l.emit("Add", {logs, noise}), l.size_vector(n.size("num_samples"))}, {}, 2)[1]};
}

constexpr OpRow kRows[] = {
    {"aten::bernoulli", bernoulli}, {"aten::exponential", exponential},  {"aten::multinomial", multinomial},
    {"aten::normal", normal},       {"aten::normal_functional", normal}, {"aten::rand", rand},
    {"aten::rand_like", rand},      {"aten::randint", randint},          {"aten::randint_like", randint},
    {"aten::randn", randn},         {"aten::randn_like", randn},         {"aten::randperm", randperm},
    {"aten::uniform", uniform_op},
};

}  // namespace

std::span<const OpRow> random_ops() { return kRows; }

}  // namespace transporters::onnx
