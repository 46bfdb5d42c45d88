// Products of matrices and vectors.
#include <algorithm>
#include <array>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

std::string contraction_message(const TensorType& a, const TensorType& b) {
  return "expected sizes that contract, got " + describe(a) + " and " + describe(b);
}

void contract(const Node& node, const TensorType& a, const TensorType& b, const Expr& x, const Expr& y, ShapeEnv& env) {
  common_size(node, x, y, env, contraction_message(a, b));
}

Types mm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "mat2");
  check_rank(node, "self", a, {2});
  check_rank(node, "mat2", b, {2});
  check_same_dtype(node, a, b, "self", "mat2");
  contract(node, a, b, a.sizes[1], b.sizes[0], env);
  return one(dtype_or(node, "out_dtype", a.dtype), {a.sizes[0], b.sizes[1]});
}

// _int_mm: 8-bit integers in, int32 out.
Types int_mm(const Node& node, ShapeEnv& env) {
  Types types = mm(node, env);
  std::get<TensorType>(types[0]).dtype = ScalarType::Int;
  return types;
}

Sizes batched(const Node& node, const TensorType& a, const TensorType& b, ShapeEnv& env) {
  check_rank(node, node.schema().arguments[0].name, a, {3});
  check_rank(node, node.schema().arguments[1].name, b, {3});
  const Expr batch = common_size(node, a.sizes[0], b.sizes[0], env,
                                 "expected one batch size, got " + describe(a) + " and " + describe(b));
  contract(node, a, b, a.sizes[2], b.sizes[1], env);
  return {batch, a.sizes[1], b.sizes[2]};
}

Types bmm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "mat2");
  check_same_dtype(node, a, b, "self", "mat2");
  return one(dtype_or(node, "out_dtype", a.dtype), batched(node, a, b, env));
}

// Vectors count as a row on the left, a column on the right, and leave no dim; leading dims broadcast.
Sizes matmul_sizes(const Node& node, const TensorType& a, const TensorType& b, ShapeEnv& env) {
  check_rank_at_least(node, node.schema().arguments[0].name, a, 1);
  check_rank_at_least(node, node.schema().arguments[1].name, b, 1);
  const bool row = a.rank() == 1, column = b.rank() == 1;
  contract(node, a, b, a.sizes.back(), column ? b.sizes[0] : b.sizes[b.rank() - 2], env);
  const Sizes a_batch(a.sizes.begin(), a.sizes.end() - (row ? 1 : 2));
  const Sizes b_batch(b.sizes.begin(), b.sizes.end() - (column ? 1 : 2));
  Sizes sizes = broadcast(a_batch, b_batch, env);
  if (!row) sizes.push_back(a.sizes[a.rank() - 2]);
  if (!column) sizes.push_back(b.sizes.back());
  return sizes;
}

Types matmul(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, 0);
  const auto& b = input(node, 1);
  check_same_dtype(node, a, b, node.schema().arguments[0].name, node.schema().arguments[1].name);
  return one(a.dtype, matmul_sizes(node, a, b, env));
}

Types linear(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  const auto& weight = input(node, "weight");
  check_rank(node, "weight", weight, {1, 2});
  check_rank_at_least(node, "input", x, 1);
  check_same_dtype(node, x, weight, "input", "weight");
  contract(node, x, weight, x.sizes.back(), weight.sizes.back(), env);
  Sizes sizes = x.sizes;
  sizes.pop_back();
  if (weight.rank() == 2) sizes.push_back(weight.sizes[0]);
  if (const auto* bias = input_or_null(node, "bias")) {
    check_same_dtype(node, x, *bias, "input", "bias");
    check_expands(node, bias->sizes, sizes, env, "expected bias that broadcasts to the product");
  }
  return one(x.dtype, sizes);
}

// ── self + product: self broadcasts to the product ──

Types added(const Node& node, Sizes sizes, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_expands(node, self.sizes, sizes, env, "expected self that broadcasts to the product");
  return one(dtype_or(node, "out_dtype", self.dtype), std::move(sizes));
}

Types addmm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "mat1");
  const auto& b = input(node, "mat2");
  check_rank(node, "mat1", a, {2});
  check_rank(node, "mat2", b, {2});
  check_same_dtype(node, a, b, "mat1", "mat2");
  contract(node, a, b, a.sizes[1], b.sizes[0], env);
  return added(node, {a.sizes[0], b.sizes[1]}, env);
}

Types batched_of(const Node& node, ShapeEnv& env, bool sum_batch) {
  const auto& a = input(node, "batch1");
  const auto& b = input(node, "batch2");
  check_rank(node, "batch1", a, {3});
  check_rank(node, "batch2", b, {3});
  check_same_dtype(node, a, b, "batch1", "batch2");
  const Expr batch = common_size(node, a.sizes[0], b.sizes[0], env,
                                 "expected one batch size, got " + describe(a) + " and " + describe(b));
  contract(node, a, b, a.sizes[2], b.sizes[1], env);
  Sizes sizes = {a.sizes[1], b.sizes[2]};
  if (!sum_batch) sizes.insert(sizes.begin(), batch);
  return added(node, sizes, env);
}

Types baddbmm(const Node& node, ShapeEnv& env) { return batched_of(node, env, false); }
Types addbmm(const Node& node, ShapeEnv& env) { return batched_of(node, env, true); }

Types addmv(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "mat");
  const auto& b = input(node, "vec");
  check_rank(node, "mat", a, {2});
  check_rank(node, "vec", b, {1});
  contract(node, a, b, a.sizes[1], b.sizes[0], env);
  return added(node, {a.sizes[0]}, env);
}

Types addr(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "vec1");
  const auto& b = input(node, "vec2");
  check_rank(node, "vec1", a, {1});
  check_rank(node, "vec2", b, {1});
  const Sizes sizes = {a.sizes[0], b.sizes[0]};
  added(node, sizes, env);
  return one(result_type({node.get("self"), node.get("vec1"), node.get("vec2")}), sizes);
}

// ── Vectors ──

Types mv(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "vec");
  check_rank(node, "self", a, {2});
  check_rank(node, "vec", b, {1});
  check_same_dtype(node, a, b, "self", "vec");
  contract(node, a, b, a.sizes[1], b.sizes[0], env);
  return one(a.dtype, {a.sizes[0]});
}

Types dot(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, 0);
  const auto& b = input(node, 1);
  check_rank(node, "self", a, {1});
  check_rank(node, node.schema().arguments[1].name, b, {1});
  check_same_dtype(node, a, b, "self", node.schema().arguments[1].name);
  contract(node, a, b, a.sizes[0], b.sizes[0], env);
  return one(a.dtype, {});
}

Types outer(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "vec2");
  check_rank(node, "self", a, {1});
  check_rank(node, "vec2", b, {1});
  return one(result_type({node.get("self"), node.get("vec2")}), {a.sizes[0], b.sizes[0]});
}

Types vecdot(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "x");
  const auto& y = input(node, "y");
  Sizes sizes = broadcast(x.sizes, y.sizes, env);
  check(!sizes.empty(), node, "expected x and y of rank 1 or more, got " + describe(x) + " and " + describe(y));
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim(node, "dim", sizes.size())));
  return one(x.dtype, sizes);
}

Types inner(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "other");
  if (a.rank() == 0 || b.rank() == 0) {
    return one(result_type({node.get("self"), node.get("other")}), a.rank() == 0 ? b.sizes : a.sizes);
  }
  contract(node, a, b, a.sizes.back(), b.sizes.back(), env);
  Sizes sizes(a.sizes.begin(), a.sizes.end() - 1);
  sizes.insert(sizes.end(), b.sizes.begin(), b.sizes.end() - 1);
  return one(a.dtype, sizes);
}

// ── Several dims ──

Types tensordot(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "other");
  const auto a_dims = dim_list(node, "dims_self", a.rank()), b_dims = dim_list(node, "dims_other", b.rank());
  check(a_dims.size() == b_dims.size(), node, "expected as many dims of self as of other");
  Sizes sizes;
  const auto keep = [&](const TensorType& type, const std::vector<size_t>& contracted) {
    for (size_t i = 0; i < type.rank(); ++i) {
      if (std::find(contracted.begin(), contracted.end(), i) == contracted.end()) sizes.push_back(type.sizes[i]);
    }
  };
  for (size_t i = 0; i < a_dims.size(); ++i) {
    const Expr& x = a.sizes[a_dims[i]];
    const Expr& y = b.sizes[b_dims[i]];
    // A dim of 1 is summed with the other's whole dim.
    if (match_dims(x, y, env) == DimMatch::Mismatch) fail(node, contraction_message(a, b));
  }
  keep(a, a_dims);
  keep(b, b_dims);
  return one(a.dtype, sizes);
}

Types kron(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "self");
  const auto& b = input(node, "other");
  const size_t rank = std::max(a.rank(), b.rank());
  Sizes sizes(rank, Expr(1));
  for (size_t i = 0; i < rank; ++i) {
    if (i < a.rank()) sizes[rank - 1 - i] = a.sizes[a.rank() - 1 - i];
    if (i < b.rank()) sizes[rank - 1 - i] = sizes[rank - 1 - i] * b.sizes[b.rank() - 1 - i];
  }
  return one(result_type({node.get("self"), node.get("other")}), sizes);
}

// chain_matmul, linalg_multi_dot: the first and last can be vectors in the latter.
Types chain(const Node& node, ShapeEnv& env) {
  const auto tensors = inputs(node, node.schema().arguments[0].name);
  check(!tensors.empty(), node, "expected at least one tensor");
  TensorType product = *tensors[0];
  product.strides.clear();
  for (size_t i = 1; i < tensors.size(); ++i) {
    const auto& next = *tensors[i];
    check_rank(node, "tensors", next, {1, 2});
    contract(node, product, next, product.sizes.back(), next.sizes[0], env);
    product.sizes.pop_back();
    product.sizes.insert(product.sizes.end(), next.sizes.begin() + 1, next.sizes.end());
  }
  return {product};
}

Types bilinear(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, "input1");
  const auto& b = input(node, "input2");
  const auto& weight = input(node, "weight");
  check_rank(node, "weight", weight, {3});
  check_rank_at_least(node, "input1", a, 1);
  check(a.rank() == b.rank(), node, "expected inputs of one rank, got " + describe(a) + " and " + describe(b));
  contract(node, a, weight, a.sizes.back(), weight.sizes[1], env);
  contract(node, b, weight, b.sizes.back(), weight.sizes[2], env);
  Sizes sizes = a.sizes;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    sizes[i] = common_size(node, sizes[i], b.sizes[i], env, contraction_message(a, b));
  }
  sizes.back() = weight.sizes[0];
  return one(a.dtype, sizes);
}

// Matrices in groups of one shared dim, whose ends `offs` gives; see torch.nn.functional.grouped_mm.
Types grouped_mm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, 0);
  const auto& b = input(node, 1);
  check_rank(node, "self", a, {2, 3});
  check_rank(node, "mat2", b, {2, 3});
  const auto* ends = input_or_null(node, "offs");
  check((a.rank() == 3 && b.rank() == 3) || ends, node, "expected offs, the ends of the groups, for rank-2 operands");
  const ScalarType dtype = dtype_or(node, "out_dtype", a.dtype);
  const Expr rows = a.sizes[a.rank() - 2], columns = b.sizes.back();
  contract(node, a, b, a.sizes.back(), b.sizes[b.rank() - 2], env);
  const std::string message = "expected one group an element of offs, got " + describe(a) + ", " + describe(b);
  if (a.rank() == 2 && b.rank() == 2) return one(dtype, {ends->sizes.at(0), rows, columns});
  if (a.rank() == 3 && b.rank() == 3) {
    return one(dtype, {common_size(node, a.sizes[0], b.sizes[0], env, contraction_message(a, b)), rows, columns});
  }
  common_size(node, a.rank() == 3 ? a.sizes[0] : b.sizes[0], ends->sizes.at(0), env,
              message + " and " + describe(*ends));
  return one(dtype, {rows, columns});
}

Types scaled_mm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, 0);
  const auto& b = input(node, 1);
  check_rank(node, "self", a, {2});
  check_rank(node, "mat2", b, {2});
  contract(node, a, b, a.sizes[1], b.sizes[0], env);
  return one(dtype_or(node, "out_dtype", a.dtype), {a.sizes[0], b.sizes[1]});
}

// Weights [N, K] of 8 bits, or [N, K / 2] with two of 4 bits in a byte.
template <int64_t per_element>
Types packed_weight_mm(const Node& node, ShapeEnv& env) {
  const auto& a = input(node, 0);
  const auto& b = input(node, 1);
  check_rank(node, "self", a, {2});
  check_rank(node, "mat2", b, {2});
  contract(node, a, b, a.sizes[1], b.sizes[1] * per_element, env);
  if (const auto* scales = input_or_null(node, "scales")) {
    check_same_sizes(node, scales->sizes, {b.sizes[0]}, env, "expected one scale a row of mat2");
  }
  return one(a.dtype, {a.sizes[0], b.sizes[0]});
}

// _trilinear: the product of three operands, each with dims of 1 put in, summed over dims.
Types trilinear(const Node& node, ShapeEnv& env) {
  Sizes sizes;
  constexpr std::array<std::pair<const char*, const char*>, 3> kOperands = {
      {{"i1", "expand1"}, {"i2", "expand2"}, {"i3", "expand3"}}};
  for (const auto& [operand, added] : kOperands) {
    Sizes own = input(node, operand).sizes;
    for (const int64_t d : node.integers(added)) {
      check(d >= 0 && d <= static_cast<int64_t>(own.size()), node, "expected dims within the operands' rank");
      own.insert(own.begin() + d, Expr(1));
    }
    sizes = broadcast(sizes, own, env);
  }
  const auto summed = dim_list(node, "sumdim", sizes.size());
  Sizes kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (std::find(summed.begin(), summed.end(), i) == summed.end()) kept.push_back(sizes[i]);
  }
  return one(input(node, "i1").dtype, kept);
}

// ── Einstein summation ──

constexpr int kEllipsis = -1;

// The labels of one operand: letters, and one kEllipsis for "...".
std::vector<int> labels_of(const Node& node, std::string_view text) {
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "...") {
      labels.push_back(kEllipsis);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      fail(node, "expected letters and '...' in the equation, got '" + std::string(1, c) + "'");
    }
  }
  return labels;
}

Types einsum(const Node& node, ShapeEnv& env) {
  const std::string equation = node.string("equation");
  const auto tensors = inputs(node, "tensors");
  check(!tensors.empty(), node, "expected at least one tensor");
  const size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  std::vector<std::vector<int>> operands;
  for (size_t start = 0; start <= left.size();) {
    const size_t comma = std::min(left.find(',', start), left.size());
    operands.push_back(labels_of(node, left.substr(start, comma - start)));
    start = comma + 1;
  }
  check(operands.size() == tensors.size(), node,
        "expected " + std::to_string(operands.size()) + " operands for '" + equation + "', got " +
            std::to_string(tensors.size()));

  std::array<Expr, 128> size_of;
  std::array<int, 128> occurrences{};
  Sizes ellipsis;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto& type = *tensors[i];
    const auto& labels = operands[i];
    const bool has_ellipsis = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
    const size_t named = labels.size() - has_ellipsis;
    check(has_ellipsis ? type.rank() >= named : type.rank() == named, node,
          "expected operand " + std::to_string(i) + " of rank " + std::to_string(named) + " for '" + equation +
              "', got " + describe(type));
    size_t d = 0;
    for (const int label : labels) {
      if (label == kEllipsis) {
        const auto first = type.sizes.begin() + static_cast<std::ptrdiff_t>(d);
        const size_t count = type.rank() - named;
        ellipsis = broadcast(ellipsis, Sizes(first, first + static_cast<std::ptrdiff_t>(count)), env);
        d += count;
        continue;
      }
      const auto index = static_cast<size_t>(label);
      size_of[index] = occurrences[index]++ ? broadcast({size_of[index]}, {type.sizes[d]}, env)[0] : type.sizes[d];
      ++d;
    }
  }

  std::vector<int> result;
  if (arrow != std::string::npos) {
    result = labels_of(node, std::string_view(equation).substr(arrow + 2));
  } else {
    // Without "->": the ellipsis, then the labels that occur once, capitals first.
    result.push_back(kEllipsis);
    for (int label = 'A'; label <= 'z'; ++label) {
      if (occurrences[static_cast<size_t>(label)] == 1) result.push_back(label);
    }
  }
  Sizes sizes;
  for (const int label : result) {
    if (label == kEllipsis) {
      sizes.insert(sizes.end(), ellipsis.begin(), ellipsis.end());
      continue;
    }
    check(occurrences[static_cast<size_t>(label)] > 0, node,
          std::string("label '") + static_cast<char>(label) + "' of the result is in no operand of '" + equation + "'");
    sizes.push_back(size_of[static_cast<size_t>(label)]);
  }
  return one(tensors[0]->dtype, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::mm", mm},
    {"aten::_int_mm", int_mm},
    {"aten::bmm", bmm},
    {"aten::matmul", matmul},
    {"aten::linalg_matmul", matmul},
    {"aten::linear", linear},
    {"aten::addmm", addmm},
    {"aten::_addmm_activation", addmm},
    {"aten::baddbmm", baddbmm},
    {"aten::addbmm", addbmm},
    {"aten::addmv", addmv},
    {"aten::addr", addr},
    {"aten::mv", mv},
    {"aten::dot", dot},
    {"aten::vdot", dot},
    {"aten::outer", outer},
    {"aten::ger", outer},
    {"aten::linalg_vecdot", vecdot},
    {"aten::inner", inner},
    {"aten::tensordot", tensordot},
    {"aten::kron", kron},
    {"aten::chain_matmul", chain},
    {"aten::linalg_multi_dot", chain},
    {"aten::bilinear", bilinear},
    {"aten::_grouped_mm", grouped_mm},
    {"aten::_scaled_grouped_mm", grouped_mm},
    {"aten::_scaled_mm", scaled_mm},
    {"aten::_weight_int8pack_mm", packed_weight_mm<1>},
    {"aten::_weight_int4pack_mm_for_cpu", packed_weight_mm<2>},
    {"aten::_trilinear", trilinear},
    {"aten::einsum", einsum},
};

}  // namespace

std::span<const ShapeRuleRow> matmul_rules() { return kRows; }

}  // namespace transporters::shape_rules
