#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("unary ops keep sizes and promote integers where they should") {
  constexpr std::array same = {"ceil",   "floor", "round", "trunc",    "frac", "neg",          "sign",
                               "square", "abs",   "relu",  "positive", "sgn",  "conj_physical"};
  constexpr std::array floating = {"acos",
                                   "acosh",
                                   "asin",
                                   "asinh",
                                   "atan",
                                   "atanh",
                                   "cos",
                                   "cosh",
                                   "erf",
                                   "erfc",
                                   "erfinv",
                                   "exp",
                                   "exp2",
                                   "expm1",
                                   "lgamma",
                                   "log",
                                   "log10",
                                   "log1p",
                                   "log2",
                                   "rsqrt",
                                   "sigmoid",
                                   "reciprocal",
                                   "sin",
                                   "sinh",
                                   "sqrt",
                                   "tan",
                                   "tanh",
                                   "i0",
                                   "digamma",
                                   "sinc",
                                   "deg2rad",
                                   "rad2deg",
                                   "logit",
                                   "special_i1",
                                   "special_ndtri",
                                   "special_entr",
                                   "special_log_ndtr",
                                   "special_erfcx",
                                   "special_bessel_j0"};
  for (const std::string name : same) {
    check_call("aten::" + name + "(f32[a=2, 3])");
    if (name != "frac") check_call("aten::" + name + "(i64[a=2])");
  }
  for (const std::string name : floating) {
    check_call("aten::" + name + "(f32[a=2, 3])");
    check_call("aten::" + name + "(i64[a=2])");
    check_call("aten::" + name + "(bool[])");
    check_call("aten::" + name + "(f64[a=2, 1])");
  }
  check_calls({"aten::abs(c64[a=2])",
               "aten::angle(c64[a=2])",
               "aten::angle(i64[a=2])",
               "aten::angle(f32[a=2])",
               "aten::sgn(c64[a=2])",
               "aten::bitwise_not(i32[a=2])",
               "aten::bitwise_not(bool[a=2])",
               "aten::nan_to_num(f32[a=2], 0.0, None, None)",
               "aten::frexp.Tensor(f32[a=2, 3])",
               "aten::polygamma(1, f32[a=2])",
               "aten::mvlgamma(f32[a=2], 1)",
               "aten::conj_physical(c64[2])",
               "aten::exp(c64[2])",
               "aten::sigmoid(bf16[a=2])",
               "aten::round.decimals(f32[a=2], decimals=2)",
               "aten::special_polygamma(2, f32[a=2])",
               "aten::special_expit(i64[a=2])",
               "aten::absolute(i64[2])",
               "aten::resolve_conj(f32[a=2])",
               "aten::resolve_neg(f32[a=2])",
               "aten::_conj(c64[a=2])",
               "aten::arccos(f32[a=2])",
               "aten::negative(f32[a=2])",
               "aten::fix(f32[a=2])"});
}

TEST_CASE("binary ops promote as torch.result_type and broadcast") {
  check_calls({
      "aten::add.Tensor(f32[a=2, b=3], f32[b])",
      "aten::add.Tensor(f32[a=2, b=3], f32[a, 1], alpha=2)",
      "aten::add.Tensor(f32[2, 1, b=3], i64[a=4, 1])",
      "aten::add.Tensor(i64[a=2], f32[])",
      "aten::add.Tensor(f16[a=2], f64[])",
      "aten::add.Tensor(i32[a=2], i64[])",
      "aten::add.Tensor(bool[a=2], bool[])",
      "aten::add.Tensor(u8[a=2], i8[a])",
      "aten::add.Tensor(bf16[a=2], f16[a])",
      "aten::add.Tensor(c64[a=2], f64[a])",
      "aten::add.Tensor(f64[a=2], c64[])",
      "aten::add.Tensor(i64[], f32[])",
      "aten::add.Tensor(f32[a=2], 3)",
      "aten::add.Tensor(i64[a=2], 1.5)",
      "aten::add.Tensor(bool[a=2], 3)",
      "aten::add.Tensor(bool[a=2], true)",
      "aten::add.Tensor(i32[], 3)",
      "aten::add.Scalar(i64[a=2], 1.5)",
      "aten::add.Scalar(f16[a=2], 1.5)",
      "aten::sub.Tensor(f32[a=2], f32[a])",
      "aten::rsub.Scalar(i64[a=2], 1.5)",
      "aten::rsub.Tensor(i64[a=2], f32[a])",
      "aten::mul.Tensor(f16[a=2, 1], f32[3])",
      "aten::mul.Scalar(bool[a=2], 2)",
      "aten::div.Tensor(i64[a=2], i64[a])",
      "aten::div.Tensor(bool[a=2], i32[a])",
      "aten::div.Tensor(f16[a=2], i64[a])",
      "aten::div.Tensor(i64[a=2], 2)",
      "aten::div.Scalar(i64[a=2], 2)",
      "aten::div.Tensor_mode(i64[a=2], i64[a], rounding_mode='floor')",
      "aten::div.Tensor_mode(f32[a=2], f32[a], rounding_mode='trunc')",
      "aten::div.Tensor_mode(i64[a=2], i64[a], rounding_mode=None)",
      "aten::div.Scalar_mode(i64[a=2], 2, rounding_mode='floor')",
      "aten::true_divide.Tensor(i64[a=2], i64[a])",
      "aten::floor_divide(f32[a=2], i64[a])",
      "aten::floor_divide.Scalar(i64[a=2], 2)",
      "aten::remainder.Tensor(f32[a=2], i64[a])",
      "aten::remainder.Scalar(i64[a=2], 2)",
      "aten::remainder.Scalar_Tensor(5, f32[a=2])",
      "aten::fmod.Tensor(f32[a=2], f32[a])",
      "aten::fmod.Scalar(i64[a=2], 2.5)",
      "aten::pow.Tensor_Tensor(i64[a=2], f32[a])",
      "aten::pow.Tensor_Scalar(f32[a=2], 2)",
      "aten::pow.Tensor_Scalar(i64[a=2], 2)",
      "aten::pow.Tensor_Scalar(i64[a=2], 0.5)",
      "aten::pow.Scalar(2, i64[a=2])",
      "aten::pow.Scalar(2.0, i64[a=2])",
      "aten::pow.Scalar(2, f16[a=2])",
      "aten::float_power.Tensor_Scalar(f32[a=2], 2)",
      "aten::float_power.Tensor_Tensor(i64[a=2], f32[a])",
      "aten::float_power.Scalar(2, f32[a=2])",
      "aten::float_power.Tensor_Scalar(c64[a=2], 2)",
      "aten::maximum(f32[a=2], i64[a])",
      "aten::minimum(i32[a=2, 1], i64[a])",
      "aten::max.other(f32[a=2], f32[])",
      "aten::min.other(f32[a=2], f32[a])",
      "aten::fmax(f32[a=2], f32[a])",
      "aten::gcd(i64[a=2], i32[a])",
      "aten::lcm(i64[a=2], i64[])",
      "aten::hypot(f32[a=2], f32[a])",
      "aten::nextafter(f32[a=2], f32[a])",
      "aten::atan2(i64[a=2], i64[a])",
      "aten::atan2(f32[a=2, 1], f64[3])",
      "aten::copysign.Tensor(i64[a=2], f32[])",
      "aten::copysign.Scalar(i64[a=2], 1)",
      "aten::logaddexp(f32[a=2], f32[a])",
      "aten::xlogy.Tensor(i64[a=2], i64[a])",
      "aten::xlogy.Scalar_Self(2, i64[a=2])",
      "aten::xlogy.Scalar_Other(f32[a=2], 2)",
      "aten::special_xlog1py(f32[a=2], f32[a])",
      "aten::special_zeta(f32[a=2], f32[a])",
      "aten::igamma(f32[a=2], f32[a])",
      "aten::special_chebyshev_polynomial_t(f32[a=2], f32[a])",
      "aten::special_hermite_polynomial_h.n_scalar(f32[a=2], 2)",
      "aten::special_laguerre_polynomial_l.x_scalar(2, f32[a=2])",
      "aten::heaviside(f32[a=2], f32[])",
      "aten::ldexp.Tensor(f32[a=2], i64[a])",
      "aten::ldexp.Tensor(i64[a=2], i64[a])",
      "aten::ldexp.Tensor(f16[a=2], i64[])",
      "aten::ldexp.Tensor(f16[a=2], i64[a])",
      "aten::ldexp.Tensor(bf16[], i32[a=2])",
      "aten::ldexp.Tensor(i64[a=2], f16[a])",
      "aten::ldexp.Tensor(f64[], i64[a=2])",
      "aten::ldexp.Tensor(f16[], f32[a=2])",
      "aten::complex(f32[a=2], f32[a, 1])",
      "aten::polar(f64[a=2], f64[a])",
      "aten::bitwise_and.Tensor(i64[a=2], i32[a])",
      "aten::bitwise_and.Scalar(bool[a=2], true)",
      "aten::bitwise_and.Scalar(i32[a=2], 7)",
      "aten::bitwise_or.Scalar_Tensor(3, i32[a=2])",
      "aten::bitwise_xor.Tensor(bool[a=2], bool[])",
      "aten::bitwise_left_shift.Tensor(i64[a=2], i64[a])",
      "aten::bitwise_right_shift.Tensor_Scalar(i32[a=2], 1)",
      "aten::__and__.Tensor(bool[a=2], bool[a])",
      "aten::__or__.Scalar(i64[a=2], 1)",
      "aten::__lshift__.Scalar(i64[a=2], 1)",
      "aten::__rshift__.Tensor(i64[a=2], i64[a])",
  });
}

TEST_CASE("ops of three operands") {
  check_calls({
      "aten::clamp(f32[a=2], 0, 1)",
      "aten::clamp(i64[a=2], 0, None)",
      "aten::clamp(i64[a=2], None, 1.5)",
      "aten::clamp(f16[a=2], min=0.5)",
      "aten::clamp.Tensor(f32[a=2, b=3], f32[b], None)",
      "aten::clamp.Tensor(i64[a=2, b=3], f32[b], f64[])",
      "aten::clamp_min(i64[a=2], 1)",
      "aten::clamp_min.Tensor(f32[a=2], f32[])",
      "aten::clamp_max(f32[a=2], 1)",
      "aten::clamp_max.Tensor(f32[a=2, 1], f32[3])",
      "aten::clip(f32[a=2], 0, 1)",
      "aten::addcmul(f32[a=2, b=3], f32[b], f32[a, 1])",
      "aten::addcmul(f32[a=2], i64[a], i64[a])",
      "aten::addcmul(i64[a=2], i64[], i64[a])",
      "aten::addcdiv(f32[a=2, b=3], f32[b], f32[a, 1], value=2)",
      "aten::lerp.Scalar(f32[a=2], f32[a], 0.5)",
      "aten::lerp.Tensor(f32[a=2], f32[], f32[3, 1])",
      "aten::where.self(bool[a=2, 1], f32[b=3], f32[])",
      "aten::where.self(bool[a=2], i64[a], f32[])",
      "aten::where.self(bool[a=2], i64[a], f32[a])",
      "aten::where.ScalarSelf(bool[a=2], 1.5, i64[a])",
      "aten::where.ScalarOther(bool[a=2], f16[a], 0)",
      "aten::where.ScalarOther(bool[a=2], bool[a], 2)",
      "aten::where.Scalar(bool[a=2], 1, 2)",
      "aten::where.Scalar(bool[a=2], 1.0, 2)",
      "aten::masked_fill.Scalar(f32[a=2, b=3], bool[a, 1], 1.5)",
      "aten::masked_fill.Scalar(i64[2, b=3], bool[b], 1)",
      "aten::masked_fill.Tensor(f32[a=2, b=3], bool[b], f32[])",
      "aten::masked_fill.Scalar(f32[1, b=3], bool[a=2, 1], 0)",
  });
}

TEST_CASE("comparisons give booleans") {
  constexpr std::array names = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (const std::string name : names) {
    check_call("aten::" + name + ".Tensor(f32[a=2, 1], i64[b=3])");
    check_call("aten::" + name + ".Scalar(i64[a=2], 1.5)");
  }
  check_calls({"aten::greater.Tensor(f32[a=2], f32[a])", "aten::less_equal.Scalar(f32[a=2], 1)",
               "aten::logical_and(bool[a=2], f32[a])", "aten::logical_or(i64[a=2, 1], bool[3])",
               "aten::logical_xor(bool[], bool[a=2])", "aten::logical_not(f32[a=2])", "aten::isnan(f32[a=2])",
               "aten::isinf(i64[a=2])", "aten::isfinite(f32[a=2])", "aten::isposinf(f32[a=2])",
               "aten::isneginf(f32[a=2])", "aten::isreal(c64[a=2])", "aten::signbit(f32[a=2])",
               "aten::isclose(f32[a=2], f32[a])", "aten::isin.Tensor_Tensor(i64[a=2, 3], i64[b=4])",
               "aten::isin.Tensor_Scalar(i64[a=2], 3)"});
  // Its meta kernel gives [0], which the CPU kernel resizes.
  check_call("aten::isin.Scalar_Tensor(3, i64[a=2])", {.computed = true});
}

TEST_CASE("activations and softmax") {
  constexpr std::array names = {"relu",       "relu6",    "leaky_relu", "elu",         "celu",      "selu",
                                "silu",       "mish",     "hardtanh",   "hardsigmoid", "hardswish", "hardshrink",
                                "softshrink", "softplus", "gelu",       "log_sigmoid"};
  for (const std::string name : names) {
    check_call("aten::" + name + "(f32[a=2, 3])");
    check_call("aten::" + name + "(bf16[a=2])");
  }
  check_calls({
      "aten::gelu(f32[a=2], approximate='tanh')",
      "aten::threshold(f32[a=2], 1, 0)",
      "aten::rrelu(f32[a=2])",
      "aten::glu(f32[a=2, 6])",
      "aten::glu(f32[2*a, b=3], 0)",
      "aten::prelu(f32[b=2, c=3, 4], f32[c])",
      "aten::prelu(f32[b=2, c=3], f32[1])",
      "aten::prelu(f32[a=2], f32[])",
      "aten::_prelu_kernel(f32[b=2, c=3], f32[1, c])",
      "aten::log_sigmoid_forward(f32[a=2, 3])",
      "aten::softmax.int(f32[a=2, 3], -1)",
      "aten::softmax.int(f16[a=2, 3], -1, f32)",
      "aten::softmax.int(f32[], 0)",
      "aten::log_softmax.int(f32[a=2, b=3], 1, f64)",
      "aten::_softmax(f32[a=2, b=3], 1, false)",
      "aten::_log_softmax(f32[a=2, b=3], 0, false)",
      "aten::_safe_softmax(f32[a=2, b=3], -1)",
      "aten::special_softmax(f32[a=2, 3], 0, f64)",
      "aten::dropout(f32[a=2, b=3], 0.1, false)",
      "aten::dropout(f32[a=2, b=3], 0.5, true)",
      "aten::feature_dropout(f32[a=2, b=3, 4], 0.5, true)",
      "aten::native_dropout(f32[a=2, b=3], 0.5, true)",
      "aten::alpha_dropout(f32[a=2], 0.5, false)",
  });
}

TEST_CASE("random broadcasts of every rank and dtype") {
  std::mt19937 random(1);
  const auto draw = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  constexpr std::array ops = {"add.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "maximum", "eq.Tensor"};
  constexpr std::array dtypes = {"f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"};
  constexpr std::array names = {"a", "b", "c", "d"};
  for (int i = 0; i < 120; ++i) {
    // Common sizes, of which each operand takes a suffix with some dims as 1.
    const int rank = draw(5);
    const auto operand = [&] {
      const int own = draw(rank + 1);
      std::string text = std::string(dtypes[static_cast<size_t>(draw(dtypes.size()))]) + "[";
      for (int d = 0; d < own; ++d) {
        const int common = rank - own + d;
        text += d ? ", " : "";
        const bool symbolic = common % 2 == 0;
        const std::string name = names[static_cast<size_t>(common)];
        const std::string size = std::to_string(common + 2);
        text += draw(3) == 0 ? "1" : symbolic ? name + "=" + size : size;
      }
      return text + "]";
    };
    const std::string op = ops[static_cast<size_t>(draw(ops.size()))];
    const std::string left = operand(), right = operand();
    check_call("aten::" + op + "(" + left + ", " + right + ")");
  }
}

TEST_CASE("operands that do not fit name their shapes") {
  check_error("aten::add.Tensor(f32[a=2, 3], f32[4])", "got [a, 3] and [4]");
  check_error("aten::sub.Tensor(bool[2], bool[2])", "subtraction of booleans");
  check_error("aten::clamp(f32[2])", "expected min or max");
  check_error("aten::masked_fill.Scalar(f32[2], f32[2], 0)", "expected a mask of booleans, got f32[2]");
  check_error("aten::softmax.int(f32[2, 3], 2)", "expected a dim in [-2, 1], got 2");
  check_error("aten::addcdiv(i64[2], i64[2], i64[2])", "integer division");
  check_error("aten::lerp.Scalar(f32[2], f64[2], 0.5)", "of one dtype, got f32[2] and f64[2]");
  check_error("aten::glu(f32[a=2, 3])", "expected an even size at dim 1, got f32[a, 3]");
}
