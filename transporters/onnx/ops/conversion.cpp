// Types, numbers out of tensors, and the asserts that tracing leaves in a program.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

// The driver converts to the output's type; device, layout and memory format mean nothing here.
Outputs convert(Lowering& l, const AtenNode& n) {
  return {l.cast(l.input(n, n.schema().arguments.front().name), out_dtype(n))};
}

// The values of `src` in the sizes and type of `self`.
Outputs copy(Lowering& l, const AtenNode& n) {
  return {l.expand(l.input(n, "src", out_dtype(n)), n.tensor("src")->sizes(), out_sizes(n))};
}

// A number read from a tensor of one element.
Outputs item(Lowering& l, const AtenNode& n) {
  Value* x = l.input(n, "self");
  return {rank(n.tensor("self")) == 0 ? x : l.emit("Reshape", {x, l.vector(std::vector<int64_t>{})})};
}

Outputs sym_size(Lowering& l, const AtenNode& n) { return {l.size(size_at(n.tensor("self"), l.dim(n, "dim")))}; }

Outputs sym_numel(Lowering& l, const AtenNode& n) { return {l.size(symbolic::product(n.tensor("self")->sizes()))}; }

// Asserts become part of an output (ProgramLowering::assert_conditions); these have no values of their own.
Outputs dropped(Lowering&, const AtenNode&) { return {}; }

// _functional_assert_* pass a token on, which nothing reads.
constexpr OpRow kRows[] = {
    {"aten::_assert_async", dropped},
    {"aten::_assert_scalar", dropped},
    {"aten::_assert_tensor_metadata", dropped},
    {"aten::_functional_assert_async", dropped},
    {"aten::_functional_assert_scalar", dropped},
    {"aten::_functional_sym_constrain_range", dropped},
    {"aten::_functional_sym_constrain_range_for_size", dropped},
    {"aten::_make_dep_token", dropped},
    {"aten::sym_constrain_range", dropped},
    {"aten::sym_constrain_range_for_size", dropped},

    {"aten::_cast_Float", convert},
    {"aten::_cast_Long", convert},
    {"aten::_to_copy", convert},
    {"aten::copy", copy},
    {"aten::to", convert},
    {"aten::type_as", convert},

    {"aten::_local_scalar_dense", item},
    {"aten::item", item},
    {"aten::sym_numel", sym_numel},
    {"aten::sym_size", sym_size},
};

}  // namespace

std::span<const OpRow> conversion_ops() { return kRows; }

}  // namespace transporters::onnx
