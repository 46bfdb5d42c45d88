// Matrix products.
#include <map>
#include <string>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

Value* matmul(Lowering& l, const AtenNode& n, std::string_view a, std::string_view b) {
  return l.emit("MatMul", {l.input(n, a, out_dtype(n)), l.input(n, b, out_dtype(n))});
}

template <OpName A, OpName B>
Outputs product(Lowering& l, const AtenNode& n) {
  return {matmul(l, n, A.view(), B.view())};
}

bool is_one(const AtenNode& n, std::string_view argument) {
  const Argument& given = n.get(argument);
  if (const auto* expr = std::get_if<Expr>(&given)) return expr->is(1);
  const auto* number = std::get_if<double>(&given);
  return number && *number == 1;
}

bool is_zero(const AtenNode& n, std::string_view argument) {
  const Argument& given = n.get(argument);
  if (const auto* expr = std::get_if<Expr>(&given)) return expr->is(0);
  const auto* number = std::get_if<double>(&given);
  return number && *number == 0;
}

// beta * self + alpha * product; a beta of 0 leaves self out, NaN or not.
Value* add_scaled(Lowering& l, const AtenNode& n, Value* product) {
  const ScalarType dtype = out_dtype(n);
  if (!is_one(n, "alpha")) product = l.emit("Mul", {product, l.input(n, "alpha", dtype)});
  if (is_zero(n, "beta")) return product;
  Value* self = l.input(n, "self", dtype);
  if (!is_one(n, "beta")) self = l.emit("Mul", {self, l.input(n, "beta", dtype)});
  return l.emit("Add", {product, self});
}

// A real product of matrices is one Gemm.
Outputs addmm(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  if (!is_real(dtype)) return {add_scaled(l, n, matmul(l, n, "mat1", "mat2"))};
  std::vector<Value*> inputs = {l.input(n, "mat1", dtype), l.input(n, "mat2", dtype)};
  if (!is_zero(n, "beta")) inputs.push_back(l.input(n, "self", dtype));
  Attributes attributes;
  if (!is_one(n, "alpha")) attributes.push_back({"alpha", static_cast<float>(n.real("alpha"))});
  if (!is_one(n, "beta") && !is_zero(n, "beta")) attributes.push_back({"beta", static_cast<float>(n.real("beta"))});
  return {l.emit("Gemm", inputs, attributes)};
}

template <OpName A, OpName B>
Outputs add_product(Lowering& l, const AtenNode& n) {
  return {add_scaled(l, n, matmul(l, n, A.view(), B.view()))};
}

// Adds the sum of a batch of products.
Outputs addbmm(Lowering& l, const AtenNode& n) {
  return {add_scaled(l, n, l.reduce("ReduceSum", matmul(l, n, "batch1", "batch2"), {0}, false))};
}

// x[i] * y[j]
Value* outer_product(Lowering& l, Value* x, Value* y) {
  return l.emit("Mul", {l.unsqueeze(x, {1}), l.unsqueeze(y, {0})});
}

Outputs addr(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {add_scaled(l, n, outer_product(l, l.input(n, "vec1", dtype), l.input(n, "vec2", dtype)))};
}

Outputs outer(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  return {outer_product(l, l.input(n, "self", dtype), l.input(n, "vec2", dtype))};
}

// True when something else than a Linear reads the bytes of this parameter (a tied embedding): it must then stay as it
// lies, or the file would hold it twice.
bool is_read_otherwise(const Lowering& l, const AtenValue* weight) {
  const auto is_linear_use = [](const transporters::Use& use) {
    return use.node->is("aten::linear") && use.node->schema().arguments[use.argument].name == "weight";
  };
  const InputSpec* spec = l.program().find_input(weight);
  if (spec == nullptr) return false;
  const auto own = l.program().state.find(spec->target);
  for (const auto& input : l.program().inputs) {
    if (input.kind == InputKind::UserInput) continue;
    const auto data = l.program().state.find(input.target);
    const bool is_same = input.value == weight || (own != l.program().state.end() && data != l.program().state.end() &&
                                                   data->second.is_same_as(own->second));
    if (!is_same) continue;
    if (l.program().graph->is_output(input.value)) return true;
    for (const auto& use : input.value->uses()) {
      if (!is_linear_use(use)) return true;
    }
  }
  return false;
}

// x * weight^T + bias. Matrices take a Gemm, which reads the weight as it lies. More dimensions take a MatMul with the
// transposed weight, which the IR fixes let the writer transpose; a weight that is needed as it lies goes through Gemm.
Outputs linear(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const AtenValue* input = n.tensor("input");
  const AtenValue* weight = n.tensor("weight");
  Value* x = l.input(n, "input", dtype);
  Value* w = l.input(n, "weight", dtype);
  Value* bias = l.input_or_null(n, "bias", dtype);
  const auto gemm = [&](Value* matrix) {
    return l.emit("Gemm", bias ? std::vector{matrix, w, bias} : std::vector{matrix, w}, {{"transB", int64_t{1}}});
  };
  if (rank(weight) == 1) {
    Value* y = l.emit("MatMul", {x, w});
    return {bias ? l.emit("Add", {y, bias}) : y};
  }
  if (rank(input) == 2 && is_real(dtype)) return {gemm(x)};
  if (rank(input) > 2 && is_real(dtype) && is_read_otherwise(l, weight)) {
    const auto& sizes = input->sizes();
    const std::vector<Expr> flat = {symbolic::product(std::span(sizes).first(sizes.size() - 1)), sizes.back()};
    const std::vector<Expr> result = {flat[0], size_at(weight, 0)};
    return {l.reshape(gemm(l.reshape(x, sizes, flat)), result, out_sizes(n))};
  }
  Value* y = l.emit("MatMul", {x, l.transpose(w, {1, 0})});
  return {bias ? l.emit("Add", {y, bias}) : y};
}

// torch's equations may have spaces and capital letters; ONNX takes both.
// Without spaces, and with the output that torch takes when none is given: the ellipsis, then the letters that occur
// once, upper case first. ONNX Runtime reads an ellipsis only in equations with an output.
std::string explicit_equation(std::string equation) {
  std::erase(equation, ' ');
  if (equation.find("->") != std::string::npos) return equation;
  std::map<char, int> counts;
  for (const char c : equation)
    if (c != ',' && c != '.') ++counts[c];
  std::string output = equation.find("...") == std::string::npos ? "" : "...";
  for (const auto& [letter, count] : counts)
    if (count == 1) output += letter;
  return equation + "->" + output;
}

Outputs einsum(Lowering& l, const AtenNode& n) {
  return {
      l.emit("Einsum", l.inputs(n, "tensors", out_dtype(n)), {{"equation", explicit_equation(n.string("equation"))}})};
}

// y[b, k] = x1[b, i] * weight[k, i, j] * x2[b, j] + bias[k]
Outputs bilinear(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  Value* y = l.emit("Einsum", {l.input(n, "input1", dtype), l.input(n, "weight", dtype), l.input(n, "input2", dtype)},
                    {{"equation", std::string("...i,kij,...j->...k")}});
  Value* bias = l.input_or_null(n, "bias", dtype);
  return {bias ? l.emit("Add", {y, bias}) : y};
}

constexpr OpRow kRows[] = {
    {"aten::addbmm", addbmm},
    {"aten::addmm", addmm},
    {"aten::addmv", add_product<"mat", "vec">},
    {"aten::addr", addr},
    {"aten::baddbmm", add_product<"batch1", "batch2">},
    {"aten::bilinear", bilinear},
    {"aten::bmm", product<"self", "mat2">},
    {"aten::dot", product<"self", "tensor">},
    {"aten::einsum", einsum},
    {"aten::ger", outer},
    {"aten::linalg_matmul", product<"self", "other">},
    {"aten::linear", linear},
    {"aten::matmul", product<"self", "other">},
    {"aten::mm", product<"self", "mat2">},
    {"aten::mv", product<"self", "vec">},
    {"aten::outer", outer},
    {"aten::vdot", product<"self", "other">},
};

}  // namespace

std::span<const OpRow> matmul_ops() { return kRows; }

}  // namespace transporters::onnx
