// What the rules of all families use: reading operands, comparing sizes, making types, errors.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/error.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters::shape_rules {

using Sizes = std::vector<Expr>;
using Types = std::vector<ValueType>;
using symbolic::Range;

// Python's default dtype, which integers promote to in floating-point ops.
inline constexpr ScalarType kDefaultFloat = ScalarType::Float;

// ── Errors ──

// Throws Error for the user's arguments, naming the op and its module.
[[noreturn]] void fail(const Node& node, const std::string& message);
void check(bool condition, const Node& node, const std::string& message);
// "f32", "bf16", "i64", "bool", ...
std::string dtype_name(ScalarType dtype);
// "[batch, 4]"
std::string describe(const Sizes& sizes);
// "f32[batch, 4]"
std::string describe(const TensorType& type);

// ── Operands ──

// The argument at a position of the schema, so that rules can serve ops that name the same operand differently.
const Argument& argument(const Node& node, size_t position);
// The tensor at a position; throws Error when it holds something else.
const TensorType& input(const Node& node, size_t position);
const TensorType& input(const Node& node, std::string_view name);
// Null for None and for an argument that the schema does not have.
const TensorType* input_or_null(const Node& node, std::string_view name);
std::vector<const TensorType*> inputs(const Node& node, std::string_view name);
// The tensor in an argument, or null for a number or None.
const TensorType* as_tensor(const Argument& argument);
// The dtype class of a number: Long, Double, Bool; nullopt for anything else.
std::optional<ScalarType> number_dtype(const Argument& argument);
// A tensor's sizes; none for a number.
Sizes operand_sizes(const Argument& argument);
// A number (in a Scalar position) as an expression; throws Error for anything else.
Expr number(const Node& node, std::string_view name);
bool has(const Node& node, std::string_view name);  // the schema has the argument and it is not None
// Values of optional schema arguments; `otherwise` when the schema lacks them or they are None.
bool flag(const Node& node, std::string_view name, bool otherwise = false);
int64_t integer(const Node& node, std::string_view name, int64_t otherwise);
ScalarType dtype_or(const Node& node, std::string_view name, ScalarType otherwise);
std::vector<double> reals(const Node& node, std::string_view name);
std::vector<bool> booleans(const Node& node, std::string_view name);

// ── Ranks and dims ──

// Throws "expected self of rank 2 or 3, got f32[batch, 4, 5, 6]".
void check_rank(const Node& node, std::string_view name, const TensorType& type, std::initializer_list<size_t> ranks);
void check_rank_at_least(const Node& node, std::string_view name, const TensorType& type, size_t rank);
void check_same_dtype(const Node& node, const TensorType& a, const TensorType& b, std::string_view a_name,
                      std::string_view b_name);
size_t dim(const Node& node, std::string_view name, size_t rank);
// A list of dims, wrapped; None and the empty list mean all. Throws Error for a repeated one.
std::vector<bool> dim_mask(const Node& node, std::string_view name, size_t rank);
std::vector<size_t> dim_list(const Node& node, std::string_view name, size_t rank);
// `count` numbers per spatial dim: one is repeated, none gives `otherwise`.
Sizes spatial(const Node& node, std::string_view name, size_t count, const Sizes& otherwise = {});

// ── Sizes ──

// Whether two sizes are equal. Symbolic ones that agree at the example are recorded as equal; nothing is recorded when
// they differ.
bool sizes_match(const Expr& a, const Expr& b, ShapeEnv& env);
// How two dims broadcast. A dynamic dim that was 1 in the user's sample and can't be equal to the other is specialised
// to 1.
enum class DimMatch { Equal, FirstIsOne, SecondIsOne, Mismatch };
DimMatch match_dims(const Expr& a, const Expr& b, ShapeEnv& env);
// The common size of a dim that two operands share; throws Error with both shapes.
Expr common_size(const Node& node, const Expr& a, const Expr& b, ShapeEnv& env, const std::string& message);
void check_same_sizes(const Node& node, const Sizes& a, const Sizes& b, ShapeEnv& env, const std::string& message);
// Throws Error with both shapes unless `from` broadcasts to `to` and leaves that as it is.
void check_expands(const Node& node, const Sizes& from, const Sizes& to, ShapeEnv& env, const std::string& message);
// Whether a size is the constant 1, or proved to be; a dynamic size is not.
bool is_one(const Expr& size, const ShapeEnv& env);
bool is_zero(const Expr& size, const ShapeEnv& env);
Expr numel(const Sizes& sizes);
Sizes broadcast_all(const std::vector<Sizes>& shapes, ShapeEnv& env);
// Removes from two products what they share: equal factors, and the common divisor of the constants.
void cancel_common_factors(Sizes& a, Sizes& b, const ShapeEnv& env);
// The exact quotient of two products, with common factors cancelled first; throws Error when it can't be whole.
Expr exact_quotient(const Node& node, const Sizes& dividend, const Sizes& divisor, ShapeEnv& env,
                    const std::string& message);
// Throws Error when a size is negative for certain or at the example. An unbacked size is stated not to be.
void check_not_negative(const Node& node, const Expr& size, ShapeEnv& env, const std::string& what);
// A size between 0 and `limit` that the data decides.
Expr unbacked_size(const Node& node, ShapeEnv& env, const Expr& limit);

// ── Types ──

ValueType tensor(ScalarType dtype, Sizes sizes);
Types one(ScalarType dtype, Sizes sizes);
// A view; strides that are contiguous are left out.
TensorType view_type(ScalarType dtype, Sizes sizes, Sizes strides);
bool is_contiguous(const TensorType& type, const ShapeEnv& env);
// float32 for integers and booleans, itself otherwise.
ScalarType to_floating(ScalarType dtype);
ScalarType to_real_dtype(ScalarType dtype);
Types same_as_input(const Node& node, ShapeEnv& env);  // the first argument's dtype and sizes, contiguous

// ── Tables, one a family ──

std::span<const ShapeRuleRow> activation_rules();
std::span<const ShapeRuleRow> attention_rules();
std::span<const ShapeRuleRow> comparison_rules();
std::span<const ShapeRuleRow> concat_rules();
std::span<const ShapeRuleRow> conversion_rules();
std::span<const ShapeRuleRow> convolution_rules();
std::span<const ShapeRuleRow> creation_rules();
std::span<const ShapeRuleRow> data_dependent_rules();
std::span<const ShapeRuleRow> distance_rules();
std::span<const ShapeRuleRow> elementwise_rules();
std::span<const ShapeRuleRow> embedding_rules();
std::span<const ShapeRuleRow> fft_rules();
std::span<const ShapeRuleRow> indexing_rules();
std::span<const ShapeRuleRow> linalg_rules();
std::span<const ShapeRuleRow> loss_rules();
std::span<const ShapeRuleRow> matmul_rules();
std::span<const ShapeRuleRow> normalization_rules();
std::span<const ShapeRuleRow> padding_rules();
std::span<const ShapeRuleRow> pooling_rules();
std::span<const ShapeRuleRow> random_rules();
std::span<const ShapeRuleRow> reduction_rules();
std::span<const ShapeRuleRow> rnn_rules();
std::span<const ShapeRuleRow> scan_rules();
std::span<const ShapeRuleRow> scatter_rules();
std::span<const ShapeRuleRow> size_rules();
std::span<const ShapeRuleRow> slice_rules();
std::span<const ShapeRuleRow> sort_rules();
std::span<const ShapeRuleRow> split_rules();
std::span<const ShapeRuleRow> upsample_rules();
std::span<const ShapeRuleRow> view_rules();
std::span<const ShapeRuleRow> vision_rules();
std::span<const ShapeRuleRow> window_rules();

}  // namespace transporters::shape_rules
