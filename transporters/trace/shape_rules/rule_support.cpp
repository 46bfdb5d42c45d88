#include "transporters/trace/shape_rules/rule_support.h"

#include <algorithm>
#include <numeric>

namespace transporters::shape_rules {

void fail(const Node& node, const std::string& message) {
  throw Error({.stage = "trace", .op = node.op(), .module = node.module_path}, message);
}

void check(bool condition, const Node& node, const std::string& message) {
  if (!condition) fail(node, message);
}

std::string dtype_name(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Byte:
      return "u8";
    case ScalarType::Char:
      return "i8";
    case ScalarType::Short:
      return "i16";
    case ScalarType::Int:
      return "i32";
    case ScalarType::Long:
      return "i64";
    case ScalarType::UInt16:
      return "u16";
    case ScalarType::UInt32:
      return "u32";
    case ScalarType::UInt64:
      return "u64";
    case ScalarType::Half:
      return "f16";
    case ScalarType::BFloat16:
      return "bf16";
    case ScalarType::Float:
      return "f32";
    case ScalarType::Double:
      return "f64";
    case ScalarType::ComplexHalf:
      return "c32";
    case ScalarType::ComplexFloat:
      return "c64";
    case ScalarType::ComplexDouble:
      return "c128";
    case ScalarType::Bool:
      return "bool";
    default:
      return c10::toString(dtype);
  }
}

std::string describe(const Sizes& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + sizes[i].str();
  return text + "]";
}

std::string describe(const TensorType& type) { return dtype_name(type.dtype) + describe(type.sizes); }

// ── Operands ──

const Argument& argument(const Node& node, size_t position) {
  return node.get(node.schema().arguments.at(position).name);
}

const TensorType& input(const Node& node, size_t position) {
  return input(node, node.schema().arguments.at(position).name);
}

const TensorType& input(const Node& node, std::string_view name) { return node.tensor(name)->tensor(); }

const TensorType* input_or_null(const Node& node, std::string_view name) {
  return has(node, name) ? &input(node, name) : nullptr;
}

std::vector<const TensorType*> inputs(const Node& node, std::string_view name) {
  std::vector<const TensorType*> types;
  for (const Value* value : node.tensors(name)) types.push_back(value ? &value->tensor() : nullptr);
  return types;
}

const TensorType* as_tensor(const Argument& argument) {
  const auto* value = std::get_if<Value*>(&argument);
  return value && (*value)->is_tensor() ? &(*value)->tensor() : nullptr;
}

namespace {

ScalarType expr_dtype(const Expr& expr) {
  switch (expr.type()) {
    case symbolic::Type::Integer:
      return ScalarType::Long;
    case symbolic::Type::Real:
      return ScalarType::Double;
    case symbolic::Type::Boolean:
      return ScalarType::Bool;
  }
  throw InternalError("an expression of unknown type");
}

}  // namespace

std::optional<ScalarType> number_dtype(const Argument& argument) {
  if (const auto* expr = std::get_if<Expr>(&argument)) return expr_dtype(*expr);
  if (std::holds_alternative<double>(argument)) return ScalarType::Double;
  if (std::holds_alternative<bool>(argument)) return ScalarType::Bool;
  if (const auto* value = std::get_if<Value*>(&argument)) {
    if (const auto* number = std::get_if<NumberType>(&(*value)->type())) return expr_dtype(number->expr);
  }
  return std::nullopt;
}

Sizes operand_sizes(const Argument& argument) {
  const auto* type = as_tensor(argument);
  return type ? type->sizes : Sizes{};
}

Expr number(const Node& node, std::string_view name) {
  const Argument& argument = node.get(name);
  if (const auto* expr = std::get_if<Expr>(&argument)) return *expr;
  if (const auto* real = std::get_if<double>(&argument)) return Expr::real(*real);
  if (const auto* boolean = std::get_if<bool>(&argument)) return Expr(*boolean ? 1 : 0);
  if (const auto* value = std::get_if<Value*>(&argument)) {
    if (const auto* type = std::get_if<NumberType>(&(*value)->type())) return type->expr;
  }
  fail(node, "expected a number for " + std::string(name));
}

bool has(const Node& node, std::string_view name) {
  const Argument* argument = node.try_get(name);
  return argument && !std::holds_alternative<None>(*argument);
}

bool flag(const Node& node, std::string_view name, bool otherwise) {
  return has(node, name) ? node.boolean(name) : otherwise;
}

int64_t integer(const Node& node, std::string_view name, int64_t otherwise) {
  return has(node, name) ? node.integer(name) : otherwise;
}

ScalarType dtype_or(const Node& node, std::string_view name, ScalarType otherwise) {
  if (!has(node, name)) return otherwise;
  // Defaults in schemas are written as the enumerator's number.
  if (const auto* expr = std::get_if<Expr>(&node.get(name)); expr && expr->as_integer())
    return static_cast<ScalarType>(*expr->as_integer());
  return node.dtype(name);
}

std::vector<double> reals(const Node& node, std::string_view name) {
  const Argument& argument = node.get(name);
  if (const auto* list = std::get_if<std::vector<double>>(&argument)) return *list;
  if (const auto* real = std::get_if<double>(&argument)) return {*real};
  std::vector<double> result;
  for (const int64_t value : node.integers(name)) result.push_back(static_cast<double>(value));
  return result;
}

std::vector<bool> booleans(const Node& node, std::string_view name) {
  const Argument& argument = node.get(name);
  if (const auto* list = std::get_if<std::vector<bool>>(&argument)) return *list;
  fail(node, "expected a list of booleans for " + std::string(name));
}

// ── Ranks and dims ──

void check_rank(const Node& node, std::string_view name, const TensorType& type, std::initializer_list<size_t> ranks) {
  if (std::find(ranks.begin(), ranks.end(), type.rank()) != ranks.end()) return;
  std::string expected;
  for (auto it = ranks.begin(); it != ranks.end(); ++it) {
    if (it != ranks.begin()) expected += it + 1 == ranks.end() ? " or " : ", ";
    expected += std::to_string(*it);
  }
  fail(node, "expected " + std::string(name) + " of rank " + expected + ", got " + describe(type));
}

void check_rank_at_least(const Node& node, std::string_view name, const TensorType& type, size_t rank) {
  if (type.rank() >= rank) return;
  fail(node, "expected " + std::string(name) + " of rank " + std::to_string(rank) + " or more, got " + describe(type));
}

void check_same_dtype(const Node& node, const TensorType& a, const TensorType& b, std::string_view a_name,
                      std::string_view b_name) {
  if (a.dtype == b.dtype) return;
  fail(node, "expected " + std::string(a_name) + " and " + std::string(b_name) + " of one dtype, got " + describe(a) +
                 " and " + describe(b));
}

size_t dim(const Node& node, std::string_view name, size_t rank) {
  return static_cast<size_t>(wrap_dim(node.integer(name), rank));
}

std::vector<size_t> dim_list(const Node& node, std::string_view name, size_t rank) {
  std::vector<size_t> dims;
  if (has(node, name)) {
    for (const int64_t value : node.integers(name)) dims.push_back(static_cast<size_t>(wrap_dim(value, rank)));
  }
  return dims;
}

std::vector<bool> dim_mask(const Node& node, std::string_view name, size_t rank) {
  const auto dims = dim_list(node, name, rank);
  if (dims.empty()) return std::vector<bool>(rank, true);
  std::vector<bool> mask(std::max<size_t>(rank, 1), false);
  for (const size_t d : dims) {
    check(!mask[d], node, "expected each dim once in " + std::string(name) + ", got " + std::to_string(d) + " twice");
    mask[d] = true;
  }
  mask.resize(rank);
  return mask;
}

Sizes spatial(const Node& node, std::string_view name, size_t count, const Sizes& otherwise) {
  Sizes values = has(node, name) ? node.sizes(name) : Sizes{};
  if (values.empty()) values = otherwise;
  if (values.size() == 1) values.resize(count, values[0]);
  if (values.size() != count) {
    fail(node,
         "expected 1 or " + std::to_string(count) + " numbers for " + std::string(name) + ", got " + describe(values));
  }
  return values;
}

// ── Sizes ──

bool sizes_match(const Expr& a, const Expr& b, ShapeEnv& env) {
  if (a == b) return true;
  const Expr left = env.simplify(a), right = env.simplify(b);
  if (left == right) return true;
  if (left.is_constant() && right.is_constant()) return false;
  const Expr condition = equal(left, right);
  if (const auto decided = env.decide(condition)) return *decided;
  const auto left_hint = env.hint(left), right_hint = env.hint(right);
  if (!left_hint || !right_hint) {
    env.expect(condition);
    return true;
  }
  if (*left_hint == *right_hint) return env.guard(condition);
  // An axis of size 1 in the sample has a larger hint: where an op needs 1, the sample decides.
  if (left.is(1) || right.is(1)) return env.specialize_to_sample(left.is(1) ? right : left);
  return false;
}

namespace {

// A size's value in the user's sample, which tells "equal" from "broadcast"; its hint where there is no sample.
std::optional<int64_t> sample_of(const Expr& size, const ShapeEnv& env) {
  const auto value = size.evaluate([&](std::string_view symbol) -> std::optional<int64_t> {
    const auto* info = env.try_info(symbol);
    if (!info) return std::nullopt;
    return info->sample ? info->sample : info->hint;
  });
  if (!value || !std::holds_alternative<int64_t>(*value)) return std::nullopt;
  return std::get<int64_t>(*value);
}

}  // namespace

DimMatch match_dims(const Expr& a, const Expr& b, ShapeEnv& env) {
  if (a == b) return DimMatch::Equal;
  const Expr left = env.simplify(a), right = env.simplify(b);
  if (left == right) return DimMatch::Equal;
  if (right.is(1)) return DimMatch::SecondIsOne;
  if (left.is(1)) return DimMatch::FirstIsOne;
  if (left.is_constant() && right.is_constant()) return DimMatch::Mismatch;
  // x[-1:] has size Min(1, size): one wherever there is anything, and beside x nothing where there is nothing.
  if (right == env.simplify(symbolic::min(1, left))) return DimMatch::SecondIsOne;
  if (left == env.simplify(symbolic::min(1, right))) return DimMatch::FirstIsOne;
  if (env.decide_size_oblivious(equal(right, 1)) == true) return DimMatch::SecondIsOne;
  if (env.decide_size_oblivious(equal(left, 1)) == true) return DimMatch::FirstIsOne;
  const auto left_sample = sample_of(left, env), right_sample = sample_of(right, env);
  const bool samples_differ = left_sample && right_sample && *left_sample != *right_sample;
  if (!samples_differ && sizes_match(left, right, env)) return DimMatch::Equal;
  if (left_sample == 1 && !left.is_constant() && env.specialize_to_sample(left)) return DimMatch::FirstIsOne;
  if (right_sample == 1 && !right.is_constant() && env.specialize_to_sample(right)) return DimMatch::SecondIsOne;
  return DimMatch::Mismatch;
}

Expr common_size(const Node& node, const Expr& a, const Expr& b, ShapeEnv& env, const std::string& message) {
  if (!sizes_match(a, b, env)) fail(node, message);
  return b.is_constant() ? b : a;
}

void check_same_sizes(const Node& node, const Sizes& a, const Sizes& b, ShapeEnv& env, const std::string& message) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = sizes_match(a[i], b[i], env);
  if (!same) fail(node, message + ", got " + describe(a) + " and " + describe(b));
}

void check_expands(const Node& node, const Sizes& from, const Sizes& to, ShapeEnv& env, const std::string& message) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const Expr& target = to[to.size() - from.size() + i];
    const auto match = match_dims(from[i], target, env);
    fits = match == DimMatch::Equal || match == DimMatch::FirstIsOne ||
           (match == DimMatch::SecondIsOne && sizes_match(from[i], target, env));
  }
  if (!fits) fail(node, message + ", got " + describe(from) + " and " + describe(to));
}

bool is_one(const Expr& size, const ShapeEnv& env) {
  if (size.is_constant()) return size.is(1);
  return env.simplify(size).is(1);
}

bool is_zero(const Expr& size, const ShapeEnv& env) {
  if (size.is_constant()) return size.is(0);
  return env.simplify(size).is(0);
}

Expr numel(const Sizes& sizes) { return product(sizes); }

Sizes broadcast_all(const std::vector<Sizes>& shapes, ShapeEnv& env) {
  Sizes result;
  for (const auto& shape : shapes) result = broadcast(result, shape, env);
  return result;
}

namespace {

void collect_factors(const Expr& expr, Sizes& factors) {
  if (expr.kind() != symbolic::Kind::Mul) {
    factors.push_back(expr);
    return;
  }
  for (const auto& operand : expr.operands()) collect_factors(operand, factors);
}

Sizes factors_of(const Sizes& sizes, const ShapeEnv& env) {
  Sizes factors;
  for (const auto& size : sizes) collect_factors(env.simplify(size), factors);
  return factors;
}

}  // namespace

void cancel_common_factors(Sizes& a, Sizes& b, const ShapeEnv& env) {
  a = factors_of(a, env);
  b = factors_of(b, env);
  Expr a_constant = 1, b_constant = 1;
  Sizes a_rest, b_rest;
  for (auto& factor : a) factor.is_constant() ? void(a_constant = a_constant * factor) : a_rest.push_back(factor);
  for (auto& factor : b) factor.is_constant() ? void(b_constant = b_constant * factor) : b_rest.push_back(factor);
  for (auto it = b_rest.begin(); it != b_rest.end();) {
    const auto same = std::find(a_rest.begin(), a_rest.end(), *it);
    if (same == a_rest.end()) {
      ++it;
    } else {
      a_rest.erase(same);
      it = b_rest.erase(it);
    }
  }
  const auto left = a_constant.as_integer(), right = b_constant.as_integer();
  if (left && right && *left != 0 && *right != 0) {
    const int64_t divisor = std::gcd(*left, *right);
    a_constant = *left / divisor;
    b_constant = *right / divisor;
  }
  a = std::move(a_rest);
  b = std::move(b_rest);
  if (!a_constant.is(1)) a.push_back(a_constant);
  if (!b_constant.is(1)) b.push_back(b_constant);
}

Expr exact_quotient(const Node& node, const Sizes& dividend, const Sizes& divisor, ShapeEnv& env,
                    const std::string& message) {
  Sizes a = dividend, b = divisor;
  cancel_common_factors(a, b, env);
  const Expr numerator = product(a), denominator = product(b);
  if (denominator.is(1)) return numerator;
  if (denominator.is(0)) fail(node, message);
  const Expr remainder = env.simplify(mod(numerator, denominator));
  if (!sizes_match(remainder, 0, env)) fail(node, message);
  return floor_div(numerator, denominator);
}

void check_not_negative(const Node& node, const Expr& size, ShapeEnv& env, const std::string& what) {
  const Expr condition = greater_equal(size, 0);
  const auto decided = env.decide(condition);
  if (decided && *decided) return;
  const auto hint = env.hint(size);
  if (decided || (hint && *hint < 0)) fail(node, "expected " + what + " that is not negative, got " + size.str());
  // The op itself refuses a negative size when it runs; only a size without an example needs the fact now.
  if (!hint) env.expect(condition, what + " is negative");
}

Expr unbacked_size(const Node& node, ShapeEnv& env, const Expr& limit) {
  const Range bounds = env.bounds(limit);
  return env.add_unbacked(Range{0, std::max<int64_t>(bounds.max, 0)}, node.op());
}

// ── Types ──

ValueType tensor(ScalarType dtype, Sizes sizes) { return TensorType{dtype, std::move(sizes), {}}; }

Types one(ScalarType dtype, Sizes sizes) { return {tensor(dtype, std::move(sizes))}; }

TensorType view_type(ScalarType dtype, Sizes sizes, Sizes strides) {
  TensorType type{dtype, std::move(sizes), {}};
  if (strides != transporters::contiguous_strides(type.sizes)) type.strides = std::move(strides);
  return type;
}

bool is_contiguous(const TensorType& type, const ShapeEnv& env) {
  if (type.strides.empty()) return true;
  Expr expected = 1;
  for (size_t i = type.rank(); i-- > 0;) {
    if (is_zero(type.sizes[i], env)) return true;
    if (is_one(type.sizes[i], env)) continue;
    if (type.strides[i] != expected && env.simplify(type.strides[i]) != env.simplify(expected)) return false;
    expected = expected * type.sizes[i];
  }
  return true;
}

ScalarType to_floating(ScalarType dtype) { return c10::isIntegralType(dtype, true) ? kDefaultFloat : dtype; }

ScalarType to_real_dtype(ScalarType dtype) { return c10::isComplexType(dtype) ? c10::toRealValueType(dtype) : dtype; }

Types same_as_input(const Node& node, ShapeEnv& env) {
  const auto& type = input(node, 0);
  return one(type.dtype, type.sizes);
}

}  // namespace transporters::shape_rules
