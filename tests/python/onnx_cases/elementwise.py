"""Elementwise ops: cases of test_onnx_ops."""

import torch
from onnx_cases.support import bools, case, f, ints, nonzero_ints, pairs, positive, SPECIAL, special, unit
from torch import nn

torch.manual_seed(0)  # of the modules below

# ── Elementwise, one tensor ──

for (
    _name
) in """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log log10 log1p
log2 logit neg rad2deg reciprocal round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc""".split():
    _inputs = {
        "acos": lambda b: (unit(b, 4),),
        "asin": lambda b: (unit(b, 4),),
        "atanh": lambda b: (unit(b, 4),),
        "acosh": lambda b: (positive(b, 4) + 1,),
        "logit": lambda b: (unit(b, 4).abs(),),
        **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt", "rsqrt"), lambda b: (positive(b, 4),)),
    }.get(_name, lambda b: (f(b, 4) * 2,))
    case(_name, getattr(torch, _name), _inputs)

case("exp_of_ints", torch.exp, lambda b: (ints(b, 3, low=-3, high=3),))
case("round_of_ints", torch.round, lambda b: (ints(b, 3),))
case("round_decimals", lambda x: torch.round(x, decimals=2), lambda b: (f(b, 4) * 10,))
case("log1p_small", torch.log1p, lambda b: (f(b, 6) * 1e-6,), tolerance=1e-5)
case("expm1_small", torch.expm1, lambda b: (f(b, 6) * 1e-6,), tolerance=1e-5)
case("expm1_special", torch.expm1, special)
case("log1p_special", lambda x: torch.log1p(x.abs()), special)
case("isnan_isinf", lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf()), special)
case("isinf_half", lambda x: (x.isinf(), x.isnan()), lambda b: (SPECIAL.half().repeat(b, 1),))
case("nan_to_num", lambda x: torch.nan_to_num(x, nan=1.0), special)
case("nan_to_num_all", lambda x: torch.nan_to_num(x, 1.0, 2.0, -3.0), special)
case("dropout_eval", nn.Dropout(0.5), lambda b: (f(b, 4),))
case("neg_int8", torch.neg, lambda b: (ints(b, 4, dtype=torch.int8),))
case("abs_int32", torch.abs, lambda b: (ints(b, 4, dtype=torch.int32),))

# ── Arithmetic ──

_int_pairs = lambda b: (ints(b, 6), nonzero_ints(b, 6))  # noqa: E731
case("add_alpha", lambda x, y: torch.add(x, y, alpha=2), pairs)
case("add_mixed", lambda x, y: x + y, lambda b: (f(b, 4), ints(4)))
case("add_int_float_scalar", lambda x: x + 1.5, lambda b: (ints(b, 4),))
case("add_half_int", lambda x, y: x + y, lambda b: (f(b, 4, dtype=torch.float16), ints(4)))
case("add_zero_dim", lambda x, y: x + y, lambda b: (f(b, 4, dtype=torch.float16), torch.tensor(2.5)))
case("add_bools", lambda x, y: x + y, lambda b: (bools(b, 4), bools(1, 4)))
case("mul_bools", lambda x, y: x * y, lambda b: (bools(b, 4), bools(1, 4)))
case("add_uint8", lambda x, y: x + y, lambda b: (ints(b, 4, low=0, high=255, dtype=torch.uint8),) * 2)
case(
    "mul_int8",
    lambda x, y: x * y,
    lambda b: (ints(b, 4, low=-99, high=99, dtype=torch.int8), ints(4, dtype=torch.int8)),
)
case("sub_int16", lambda x, y: x - y, lambda b: (ints(b, 4, dtype=torch.int16), ints(4, dtype=torch.int16)))
case("sub_alpha", lambda x, y: torch.sub(x, y, alpha=0.5), pairs)
case("rsub", lambda x: 3 - x, lambda b: (f(b, 4),))
case("rsub_alpha", lambda x, y: torch.rsub(x, y, alpha=2), pairs)
case("div", lambda x, y: x / y, lambda b: (f(b, 4), positive(4)))
case("div_ints", lambda x, y: x / y, _int_pairs)
for _dtype in (torch.int64, torch.int32, torch.float32, torch.int8):
    _convert = lambda b, dtype=_dtype: tuple(t.to(dtype) for t in _int_pairs(b))  # noqa: E731
    _suffix = str(_dtype).removeprefix("torch.")
    case(f"floor_div_{_suffix}", lambda x, y: torch.div(x, y, rounding_mode="floor"), _convert)
    case(f"floor_divide_{_suffix}", lambda x, y: x // y, _convert)
    case(f"trunc_div_{_suffix}", lambda x, y: torch.div(x, y, rounding_mode="trunc"), _convert)
    case(f"remainder_{_suffix}", lambda x, y: x % y, _convert)
    case(f"fmod_{_suffix}", torch.fmod, _convert)
case("floor_divide_scalar", lambda x: (x // 2, x // -3, x % 4, x % -4), lambda b: (ints(b, 6),))
case(
    "floor_divide_reals",
    lambda x: (x // 0.2, x % 0.2),
    lambda b: (torch.tensor([0.6, -0.6, 1.0, 0.3, -7.1]).repeat(b, 1),),
)
case("floor_divide_by_zero", lambda x, y: x // y, lambda b: (f(b, 4), torch.tensor([0.0, 1.0, 0.0, -2.0])))
case("remainder_of_scalar", lambda x: 7 % x, lambda b: (nonzero_ints(b, 4),))
case("shifts", lambda x: (x >> 1, x << 2, x >> 3), lambda b: (torch.tensor([-7, -5, -1, 0, 3, 7, -8]).repeat(b, 1),))
case(
    "shift_by_tensor",
    lambda x, y: (x << y, x >> y),
    lambda b: (ints(b, 4, dtype=torch.int32), ints(4, low=0, high=4, dtype=torch.int32)),
)
case("pow_scalars", lambda x: (x**2, x**3, x**-1, x**0.5, x**-0.5, x**1.7, x**1, x**0), lambda b: (positive(b, 4),))
case("pow_tensor", torch.pow, lambda b: (positive(b, 4), f(4)))
case("pow_ints", lambda x: (x**2, x**3, x**5), lambda b: (ints(b, 4),))
case("pow_of_scalar", lambda x: (2**x, 0.5**x), lambda b: (f(b, 4),))
case("pow_negative_base", lambda x: (x**2.0, x**3.0, x**4), lambda b: (f(b, 4),))
case("maximum_minimum", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), pairs)
case("maximum_nan", lambda x: (torch.maximum(x, x.flip(1)), torch.minimum(x, x.flip(1))), special)
case("maximum_ints", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), _int_pairs)
case("maximum_bools", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), lambda b: (bools(b, 4), bools(4)))
case("fmax_fmin", lambda x: (torch.fmax(x, x.flip(1)), torch.fmin(x, x.flip(1))), special)
case(
    "atan2",
    torch.atan2,
    lambda b: (torch.tensor([1.0, -1, 0, 0, 2, -2, 3]).repeat(b, 1), torch.tensor([0.0, 0, 1, -1, -2, -3, 1])),
)
case("hypot", torch.hypot, pairs)
case("logaddexp", lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)), lambda b: (f(b, 4) * 50, f(4) * 50))
case("xlogy", torch.xlogy, lambda b: (torch.tensor([0.0, 1.0, 2.0]).repeat(b, 1), torch.tensor([0.0, 2.0, 3.0])))
case("copysign", torch.copysign, pairs)
case("heaviside", torch.heaviside, lambda b: (torch.tensor([-1.0, 0, 2]).repeat(b, 1), f(3)))
case("lerp", lambda x, y: (torch.lerp(x, y, 0.3), torch.lerp(x, y, 0.8), torch.lerp(x, y, y)), pairs)
case("addcmul_addcdiv", lambda x, y: (torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, y, x.abs() + 1)), pairs)
case("size_as_number", lambda x: x * x.shape[0] + x.shape[0] // 2, lambda b: (f(b, 4),))
case(
    "size_arithmetic",
    lambda x: x.new_full((x.shape[0] * 2 + 1, max(x.shape[0] - 4, 1)), (x.shape[0] % 4) * 1.0),
    lambda b: (f(b, 4),),
)

# ── Comparison and logic ──

case("compare", lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), lambda b: (ints(b, 4), ints(4)))
case("compare_mixed", lambda x, y: (x < y, x == y, x > 0, x >= 1.5), lambda b: (ints(b, 4), f(4)))
case("compare_bools", lambda x, y: (x == y, x != y, x < y, x >= y), lambda b: (bools(b, 4), bools(4)))
case("compare_uint8", lambda x: (x > 3, x == 3, x != 200), lambda b: (ints(b, 4, low=0, high=9, dtype=torch.uint8),))
case(
    "logical",
    lambda x, y: (torch.logical_and(x, y), torch.logical_or(x, y), torch.logical_xor(x, y), torch.logical_not(x)),
    lambda b: (ints(b, 4, low=-1, high=2), bools(4)),
)
case("bitwise_bools", lambda x, y: (x & y, x | y, x ^ y, ~x), lambda b: (bools(b, 4), bools(4)))
case("bitwise_ints", lambda x, y: (x & y, x | y, x ^ y, ~x, x & 3), lambda b: (ints(b, 4), ints(4)))
case("isclose", lambda x, y: (torch.isclose(x, y), torch.isclose(x, x + 1e-9)), pairs)
case("where", lambda x, y: (torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0), torch.where(x > 0, 1, y)), pairs)
case("where_promotes", lambda x, y: torch.where(x > 0, x, y), lambda b: (f(b, 4), ints(4)))
case(
    "masked_fill",
    lambda x, m: (x.masked_fill(m, -1e9), x.masked_fill(m, float("-inf"))),
    lambda b: (f(b, 4), bools(1, 4)),
)
case("clamp", lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.2)), lambda b: (f(b, 4),))
case("clamp_nan", lambda x: x.clamp(-1, 1), special)
case("clamp_ints", lambda x: (x.clamp(-2, 5), x.clamp(min=1), x.clamp(max=1.5)), lambda b: (ints(b, 4),))
case("clamp_tensors", lambda x, y: (x.clamp(y, y + 1), x.clamp(min=y), x.clamp(2, 1)), pairs)
case("clamp_by_size", lambda x: x.clamp(max=x.shape[0]), lambda b: (ints(b, 4),))

# ── Activations ──

for _name, _module in {
    "celu": nn.CELU(0.7), "elu": nn.ELU(1.5), "gelu": nn.GELU(), "gelu_tanh": nn.GELU("tanh"), "glu": nn.GLU(1),
    "hardshrink": nn.Hardshrink(0.4), "hardsigmoid": nn.Hardsigmoid(), "hardswish": nn.Hardswish(),
    "hardtanh": nn.Hardtanh(-0.3, 0.8), "leaky_relu": nn.LeakyReLU(0.2), "logsigmoid": nn.LogSigmoid(),
    "mish": nn.Mish(), "prelu": nn.PReLU(), "relu": nn.ReLU(), "relu6": nn.ReLU6(), "rrelu": nn.RReLU(),
    "selu": nn.SELU(), "silu": nn.SiLU(), "softplus": nn.Softplus(), "softplus_beta": nn.Softplus(2.0),
    "softshrink": nn.Softshrink(0.3), "softsign": nn.Softsign(), "tanhshrink": nn.Tanhshrink(),
    "threshold": nn.Threshold(0.1, 5.0),
}.items():  # fmt: skip
    case(_name, _module, lambda b: (f(b, 4) * 3,))
case("prelu_channels", nn.PReLU(3), lambda b: (f(b, 3, 2, 2),))
case("relu_ints", torch.relu, lambda b: (ints(b, 4),))
case("gelu_half", nn.GELU(), lambda b: (f(b, 4, dtype=torch.float16),))
