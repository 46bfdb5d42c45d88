// Arithmetic and mathematical functions of one, two and three operands, element by element.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// ── One operand ──

// exp, sin, ...: integers become float.
Types unary_floating(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return one(to_floating(self.dtype), self.sizes);
}

// abs, real: a complex number gives a real one.
Types unary_real(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return one(to_real_dtype(self.dtype), self.sizes);
}

Types angle(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return one(to_real_dtype(to_floating(self.dtype)), self.sizes);
}

Types frexp(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  return {tensor(self.dtype, self.sizes), tensor(ScalarType::Int, self.sizes)};
}

// ── Two operands: the first two arguments, either of which can be a number ──

Types binary_as(ScalarType dtype, const Node& node, ShapeEnv& env) {
  return one(dtype, broadcast(operand_sizes(argument(node, 0)), operand_sizes(argument(node, 1)), env));
}

ScalarType binary_dtype(const Node& node) { return result_type({argument(node, 0), argument(node, 1)}); }

Types binary(const Node& node, ShapeEnv& env) { return binary_as(binary_dtype(node), node, env); }

Types binary_floating(const Node& node, ShapeEnv& env) { return binary_as(to_floating(binary_dtype(node)), node, env); }

Types subtract(const Node& node, ShapeEnv& env) {
  const ScalarType dtype = binary_dtype(node);
  const auto is_boolean = [&](size_t position) {
    const auto* type = as_tensor(argument(node, position));
    return type && type->dtype == ScalarType::Bool;
  };
  check(!is_boolean(0) && !is_boolean(1), node,
        "subtraction of booleans is not defined: use logical_xor or logical_not");
  return binary_as(dtype, node, env);
}

// div with rounding_mode: true division without one, "floor" or "trunc" keep integers.
Types divide(const Node& node, ShapeEnv& env) {
  const ScalarType dtype = binary_dtype(node);
  return binary_as(has(node, "rounding_mode") ? dtype : to_floating(dtype), node, env);
}

Types float_power(const Node& node, ShapeEnv& env) {
  const bool complex = c10::isComplexType(binary_dtype(node));
  return binary_as(complex ? ScalarType::ComplexDouble : ScalarType::Double, node, env);
}

// ldexp is self * 2 ** other; integer exponents keep a floating self's dtype.
Types ldexp(const Node& node, ShapeEnv& env) {
  const Argument& self = argument(node, 0);
  const auto& other = input(node, 1);
  const auto* type = as_tensor(self);
  const ScalarType power = to_floating(other.dtype);
  if (!type) return one(power, other.sizes);
  if (c10::isIntegralType(other.dtype, true) && !c10::isIntegralType(type->dtype, true))
    return one(type->dtype, broadcast(type->sizes, other.sizes, env));
  // Compare the two as tensors of their own rank would.
  const bool same_category = (type->rank() == 0) == (other.rank() == 0);
  const ScalarType wide = c10::promoteTypes(type->dtype, power);
  ScalarType dtype = wide;
  if (!same_category) {
    const ScalarType higher = type->rank() ? type->dtype : power;
    dtype = c10::isFloatingType(higher) || c10::isComplexType(higher) ? higher : wide;
  }
  return one(dtype, broadcast(type->sizes, other.sizes, env));
}

// The dtypes must be one: no promotion.
Types binary_one_dtype(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  const auto& other = input(node, 1);
  check_same_dtype(node, self, other, node.schema().arguments[0].name, node.schema().arguments[1].name);
  return one(self.dtype, broadcast(self.sizes, other.sizes, env));
}

Types complex_of(const Node& node, ShapeEnv& env) {
  const auto& real = input(node, 0);
  const auto& imaginary = input(node, 1);
  check_same_dtype(node, real, imaginary, node.schema().arguments[0].name, node.schema().arguments[1].name);
  return one(c10::toComplexType(real.dtype), broadcast(real.sizes, imaginary.sizes, env));
}

// A shift keeps the dtype that promotion gives.
Types polygamma(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  return one(to_floating(self.dtype), self.sizes);
}

// ── Three operands ──

Types clamp(const Node& node, ShapeEnv& env) {
  std::vector<Argument> operands = {argument(node, 0)};
  std::vector<Sizes> shapes = {operand_sizes(operands[0])};
  for (const auto name : {"min", "max"}) {
    if (!has(node, name)) continue;
    operands.push_back(node.get(name));
    shapes.push_back(operand_sizes(operands.back()));
  }
  check(operands.size() > 1, node, "expected min or max, got neither");
  return one(result_type(operands), broadcast_all(shapes, env));
}

Types addcmul(const Node& node, ShapeEnv& env) {
  const std::vector<Argument> operands = {node.get("self"), node.get("tensor1"), node.get("tensor2")};
  const ScalarType dtype = result_type(operands);
  check(!node.is("aten::addcdiv") || !c10::isIntegralType(dtype, true), node,
        "integer division with addcdiv is not defined, got " + describe(input(node, "tensor1")) + " / " +
            describe(input(node, "tensor2")));
  return one(dtype,
             broadcast_all({operand_sizes(operands[0]), operand_sizes(operands[1]), operand_sizes(operands[2])}, env));
}

Types lerp(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& end = input(node, "end");
  check_same_dtype(node, self, end, "self", "end");
  return one(self.dtype, broadcast_all({self.sizes, end.sizes, operand_sizes(node.get("weight"))}, env));
}

Types where(const Node& node, ShapeEnv& env) {
  const Argument& self = node.get("self");
  const Argument& other = node.get("other");
  const auto& condition = input(node, "condition");
  check(condition.dtype == ScalarType::Bool || condition.dtype == ScalarType::Byte, node,
        "expected a condition of booleans, got " + describe(condition));
  return one(result_type({self, other}),
             broadcast_all({condition.sizes, operand_sizes(self), operand_sizes(other)}, env));
}

// The value keeps self's dtype; it must not be of a higher category.
Types masked_fill(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  const auto& mask = input(node, "mask");
  check(mask.dtype == ScalarType::Bool, node, "expected a mask of booleans, got " + describe(mask));
  return one(self.dtype, broadcast(self.sizes, mask.sizes, env));
}

constexpr ShapeRuleRow kRows[] = {
    // one operand, same dtype
    {"aten::ceil", same_as_input},
    {"aten::floor", same_as_input},
    {"aten::round", same_as_input},
    {"aten::trunc", same_as_input},
    {"aten::fix", same_as_input},
    {"aten::frac", same_as_input},
    {"aten::neg", same_as_input},
    {"aten::negative", same_as_input},
    {"aten::positive", same_as_input},
    {"aten::sign", same_as_input},
    {"aten::sgn", same_as_input},
    {"aten::square", same_as_input},
    {"aten::bitwise_not", same_as_input},
    {"aten::conj_physical", same_as_input},
    {"aten::_conj_physical", same_as_input},
    {"aten::_conj", same_as_input},
    {"aten::_conj_copy", same_as_input},
    {"aten::conj", same_as_input},
    {"aten::resolve_conj", same_as_input},
    {"aten::resolve_neg", same_as_input},
    {"aten::_neg_view", same_as_input},
    {"aten::_neg_view_copy", same_as_input},
    {"aten::nan_to_num", same_as_input},
    {"aten::special_round", same_as_input},
    {"aten::frexp.Tensor", frexp},
    // complex to real
    {"aten::abs", unary_real},
    {"aten::absolute", unary_real},
    {"aten::angle", angle},
    // one operand, integers to float
    {"aten::acos", unary_floating},
    {"aten::acosh", unary_floating},
    {"aten::arccos", unary_floating},
    {"aten::arccosh", unary_floating},
    {"aten::arcsin", unary_floating},
    {"aten::arcsinh", unary_floating},
    {"aten::arctan", unary_floating},
    {"aten::arctanh", unary_floating},
    {"aten::asin", unary_floating},
    {"aten::asinh", unary_floating},
    {"aten::atan", unary_floating},
    {"aten::atanh", unary_floating},
    {"aten::cos", unary_floating},
    {"aten::cosh", unary_floating},
    {"aten::deg2rad", unary_floating},
    {"aten::digamma", unary_floating},
    {"aten::erf", unary_floating},
    {"aten::erfc", unary_floating},
    {"aten::erfinv", unary_floating},
    {"aten::exp", unary_floating},
    {"aten::exp2", unary_floating},
    {"aten::expm1", unary_floating},
    {"aten::i0", unary_floating},
    {"aten::lgamma", unary_floating},
    {"aten::log", unary_floating},
    {"aten::log10", unary_floating},
    {"aten::log1p", unary_floating},
    {"aten::log2", unary_floating},
    {"aten::logit", unary_floating},
    {"aten::mvlgamma", unary_floating},
    {"aten::polygamma", polygamma},
    {"aten::rad2deg", unary_floating},
    {"aten::reciprocal", unary_floating},
    {"aten::rsqrt", unary_floating},
    {"aten::sigmoid", unary_floating},
    {"aten::sin", unary_floating},
    {"aten::sinc", unary_floating},
    {"aten::sinh", unary_floating},
    {"aten::sqrt", unary_floating},
    {"aten::tan", unary_floating},
    {"aten::tanh", unary_floating},
    {"aten::special_airy_ai", unary_floating},
    {"aten::special_bessel_j0", unary_floating},
    {"aten::special_bessel_j1", unary_floating},
    {"aten::special_bessel_y0", unary_floating},
    {"aten::special_bessel_y1", unary_floating},
    {"aten::special_digamma", unary_floating},
    {"aten::special_entr", unary_floating},
    {"aten::special_erf", unary_floating},
    {"aten::special_erfc", unary_floating},
    {"aten::special_erfcx", unary_floating},
    {"aten::special_erfinv", unary_floating},
    {"aten::special_exp2", unary_floating},
    {"aten::special_expit", unary_floating},
    {"aten::special_expm1", unary_floating},
    {"aten::special_gammaln", unary_floating},
    {"aten::special_i0", unary_floating},
    {"aten::special_i0e", unary_floating},
    {"aten::special_i1", unary_floating},
    {"aten::special_i1e", unary_floating},
    {"aten::special_log1p", unary_floating},
    {"aten::special_log_ndtr", unary_floating},
    {"aten::special_logit", unary_floating},
    {"aten::special_modified_bessel_i0", unary_floating},
    {"aten::special_modified_bessel_i1", unary_floating},
    {"aten::special_modified_bessel_k0", unary_floating},
    {"aten::special_modified_bessel_k1", unary_floating},
    {"aten::special_multigammaln", unary_floating},
    {"aten::special_ndtr", unary_floating},
    {"aten::special_ndtri", unary_floating},
    {"aten::special_polygamma", polygamma},
    {"aten::special_psi", unary_floating},
    {"aten::special_scaled_modified_bessel_k0", unary_floating},
    {"aten::special_scaled_modified_bessel_k1", unary_floating},
    {"aten::special_sinc", unary_floating},
    {"aten::special_spherical_bessel_j0", unary_floating},
    // two operands
    {"aten::add", binary},
    {"aten::_add_relu", binary},
    {"aten::sub", subtract},
    {"aten::subtract", subtract},
    {"aten::rsub", subtract},
    {"aten::mul", binary},
    {"aten::multiply", binary},
    {"aten::div", divide},
    {"aten::divide", divide},
    {"aten::true_divide", binary_floating},
    {"aten::floor_divide", binary},
    {"aten::remainder", binary},
    {"aten::fmod", binary},
    {"aten::pow", binary},
    {"aten::float_power", float_power},
    {"aten::maximum", binary},
    {"aten::minimum", binary},
    {"aten::max.other", binary},
    {"aten::min.other", binary},
    {"aten::fmax", binary},
    {"aten::fmin", binary},
    {"aten::gcd", binary},
    {"aten::lcm", binary},
    {"aten::hypot", binary},
    {"aten::nextafter", binary},
    {"aten::atan2", binary_floating},
    {"aten::arctan2", binary_floating},
    {"aten::copysign", binary_floating},
    {"aten::logaddexp", binary_floating},
    {"aten::logaddexp2", binary_floating},
    {"aten::xlogy", binary_floating},
    {"aten::igamma", binary_floating},
    {"aten::igammac", binary_floating},
    {"aten::heaviside", binary_one_dtype},
    {"aten::ldexp", ldexp},
    {"aten::complex", complex_of},
    {"aten::polar", complex_of},
    {"aten::bitwise_and", binary},
    {"aten::bitwise_or", binary},
    {"aten::bitwise_xor", binary},
    {"aten::bitwise_left_shift", binary},
    {"aten::bitwise_right_shift", binary},
    {"aten::__and__", binary},
    {"aten::__or__", binary},
    {"aten::__xor__", binary},
    {"aten::__lshift__", binary},
    {"aten::__rshift__", binary},
    {"aten::special_xlogy", binary_floating},
    {"aten::special_xlog1py", binary_floating},
    {"aten::special_zeta", binary_floating},
    {"aten::special_gammainc", binary_floating},
    {"aten::special_gammaincc", binary_floating},
    {"aten::special_chebyshev_polynomial_t", binary_floating},
    {"aten::special_chebyshev_polynomial_u", binary_floating},
    {"aten::special_chebyshev_polynomial_v", binary_floating},
    {"aten::special_chebyshev_polynomial_w", binary_floating},
    {"aten::special_hermite_polynomial_h", binary_floating},
    {"aten::special_hermite_polynomial_he", binary_floating},
    {"aten::special_laguerre_polynomial_l", binary_floating},
    {"aten::special_legendre_polynomial_p", binary_floating},
    {"aten::special_shifted_chebyshev_polynomial_t", binary_floating},
    {"aten::special_shifted_chebyshev_polynomial_u", binary_floating},
    {"aten::special_shifted_chebyshev_polynomial_v", binary_floating},
    {"aten::special_shifted_chebyshev_polynomial_w", binary_floating},
    // three operands
    {"aten::clamp", clamp},
    {"aten::clamp_min", clamp},
    {"aten::clamp_max", clamp},
    {"aten::clip", clamp},
    {"aten::addcmul", addcmul},
    {"aten::addcdiv", addcmul},
    {"aten::lerp", lerp},
    {"aten::where.self", where},
    {"aten::where.Scalar", where},
    {"aten::where.ScalarSelf", where},
    {"aten::where.ScalarOther", where},
    {"aten::masked_fill", masked_fill},
};

}  // namespace

std::span<const ShapeRuleRow> elementwise_rules() { return kRows; }

}  // namespace transporters::shape_rules
