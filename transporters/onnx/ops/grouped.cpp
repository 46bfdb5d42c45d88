// Matrix products of groups of rows, each group with a matrix of its own: the experts of a mixture.
#include "transporters/onnx/ops/support.h"
#include "transporters/passes/rewrite.h"

namespace transporters::onnx {
namespace {

struct Experts {
  std::vector<Value*> matrices;
  bool is_transposed;  // [out, in] as Linear's weights lie
};

// The matrices of a weight [experts, in, out], or of one that is [experts, out, in] and transposed on its way here.
// Parameters are cut into one initializer an expert, views of the same bytes: ONNX Runtime then packs each once, and
// nothing is copied at run time.
Experts experts_of(Lowering& l, const AtenNode& n, std::string_view argument, int64_t count) {
  const AtenValue* weight = n.tensor(argument);
  bool is_transposed = false;
  if (const AtenNode* producer = weight->producer()) {
    const auto order = permutation_of(*producer);
    if (order && *order == std::vector<int64_t>{0, 2, 1}) {
      weight = first_tensor(*producer);
      is_transposed = true;
    }
  }
  Experts experts{{}, is_transposed};
  for (int64_t i = 0; i < count; ++i) {
    Value* matrix = l.parameter_row(weight, i);
    if (matrix == nullptr) break;
    experts.matrices.push_back(matrix);
  }
  if (static_cast<int64_t>(experts.matrices.size()) == count) return experts;
  // A computed weight.
  experts.matrices = l.emit_many("Split", {l.value(weight)}, {{"axis", int64_t{0}}, {"num_outputs", count}},
                                 static_cast<size_t>(count));
  for (Value*& matrix : experts.matrices) matrix = l.squeeze(matrix, {0});
  return experts;
}

// Rows of `rows` up to offsets[0] times matrix 0, from there up to offsets[1] times matrix 1, ...; zeros after the last
// offset.
//
// Every group is one Gemm, also an empty one, which returns at once. In ONNX Runtime 1.32 (1 thread, hidden size 1024,
// 2048 outputs, 8 experts) 256 rows take 14 ms and 2 rows 0.9 ms; a Loop over the experts that are hit takes 25 and
// 8 ms, since it copies the matrix of each. One matrix gathered for each row needs 2 GB for the 256 rows.
Value* multiply_groups(Lowering& l, const AtenNode& n, std::string_view rows, std::string_view weight) {
  const ScalarType dtype = out_dtype(n);
  const auto count = size_at(n.tensor(weight), 0).as_integer();
  if (!count || *count == 0) throw l.error(n, "needs a constant number of groups, at least one");
  Value* x = l.input(n, rows, dtype);
  Value* ends = l.input(n, "offs", ScalarType::Long);
  Value* zero = l.vector(std::vector<int64_t>{0});
  Value* total = l.size_vector(size_at(n.tensor(rows), 0));
  // [0, offsets..., rows]: the differences are the groups' sizes and the number of rows after them.
  Value* last_included = l.emit("Concat", {ends, total}, {{"axis", int64_t{0}}});
  Value* starts = l.emit("Concat", {zero, ends}, {{"axis", int64_t{0}}});
  Value* sizes = l.emit("Sub", {last_included, starts});
  const Outputs groups = l.emit_many("Split", {x, sizes}, {{"axis", int64_t{0}}}, static_cast<size_t>(*count) + 1);
  const Experts experts = experts_of(l, n, weight, *count);
  std::vector<Value*> products;
  for (int64_t i = 0; i < *count; ++i) {
    const auto at = static_cast<size_t>(i);
    Value* matrix = l.cast(experts.matrices[at], dtype);
    Attributes attributes;
    if (experts.is_transposed) attributes.push_back({"transB", int64_t{1}});
    products.push_back(l.emit("Gemm", {groups[at], matrix}, attributes));
  }
  Value* rest = l.slice(sizes, 0, l.vector(std::vector<int64_t>{*count}), l.vector(std::vector<int64_t>{*count + 1}));
  Value* rest_sizes = l.concat({rest, l.size_vector(out_sizes(n)[1])}, 0);
  products.push_back(l.emit("Expand", {l.scalar(0, dtype), rest_sizes}));
  return l.concat(products, 0);
}

// transformers' op for its mixtures of experts.
Outputs grouped_mm_fallback(Lowering& l, const AtenNode& n) { return {multiply_groups(l, n, "input", "weight")}; }

// torch.nn.functional.grouped_mm: with offsets the rows of a matrix; without, a batch of products.
Outputs grouped_mm(Lowering& l, const AtenNode& n) {
  const int64_t left = rank(n.tensor("self")), right = rank(n.tensor("mat2"));
  const ScalarType dtype = out_dtype(n);
  Value* y = nullptr;
  if (left == 3 && right == 3) {
    y = l.emit("MatMul", {l.input(n, "self", dtype), l.input(n, "mat2", dtype)});
  } else if (left == 2 && right == 3 && !n.is_none("offs")) {
    y = multiply_groups(l, n, "self", "mat2");
  } else {
    throw l.error(n, "groups of columns are not supported; expected rows [rows, in] and matrices [groups, in, out]");
  }
  Value* bias = l.input_or_null(n, "bias", dtype);
  return {bias ? l.emit("Add", {y, bias}) : y};
}

constexpr OpRow kRows[] = {
    {"aten::_grouped_mm", grouped_mm},
    {"transformers::grouped_mm_fallback", grouped_mm_fallback},
};

}  // namespace

std::span<const OpRow> grouped_ops() { return kRows; }

}  // namespace transporters::onnx
