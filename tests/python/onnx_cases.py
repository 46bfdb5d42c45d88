"""Cases of test_onnx_ops: name, function, inputs for a size b."""

from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Case(NamedTuple):
    name: str
    function: Callable
    inputs: Callable
    is_static: bool = False
    tolerance: float | None = None
    first_opset: int = 18


torch.manual_seed(0)  # of the modules below
CASES: list[Case] = []


def case(name, function, inputs, **options):
    CASES.append(Case(name, function, inputs, **options))


def generator(*sizes):
    return torch.Generator().manual_seed(sum(sizes) + len(sizes))


def f(*sizes, dtype=torch.float32):
    """Normally distributed numbers."""
    return torch.randn(sizes, generator=generator(*sizes)).to(dtype)


def positive(*sizes, dtype=torch.float32):
    return f(*sizes).abs().to(dtype) + 0.1


def unit(*sizes):
    """Numbers inside (-1, 1)."""
    return torch.rand(sizes, generator=generator(*sizes)) * 1.9 - 0.95


def ints(*sizes, low=-9, high=10, dtype=torch.int64):
    return torch.randint(low, high, sizes, generator=generator(*sizes), dtype=dtype)


def nonzero_ints(*sizes, dtype=torch.int64):
    drawn = ints(*sizes, low=1, high=6, dtype=dtype)
    return torch.where(ints(*sizes) > 3, -drawn, drawn).to(dtype)


def bools(*sizes):
    return f(*sizes) > 0


SPECIAL = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, -2.5, 1e-8, 88.0, -30.0])


def special(b):
    return (SPECIAL.repeat(b, 1),)


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

_pairs = lambda b: (f(b, 4), f(1, 4))  # noqa: E731
_int_pairs = lambda b: (ints(b, 6), nonzero_ints(b, 6))  # noqa: E731
case("add_alpha", lambda x, y: torch.add(x, y, alpha=2), _pairs)
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
case("sub_alpha", lambda x, y: torch.sub(x, y, alpha=0.5), _pairs)
case("rsub", lambda x: 3 - x, lambda b: (f(b, 4),))
case("rsub_alpha", lambda x, y: torch.rsub(x, y, alpha=2), _pairs)
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
case("maximum_minimum", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), _pairs)
case("maximum_nan", lambda x: (torch.maximum(x, x.flip(1)), torch.minimum(x, x.flip(1))), special)
case("maximum_ints", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), _int_pairs)
case("maximum_bools", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), lambda b: (bools(b, 4), bools(4)))
case("fmax_fmin", lambda x: (torch.fmax(x, x.flip(1)), torch.fmin(x, x.flip(1))), special)
case(
    "atan2",
    torch.atan2,
    lambda b: (torch.tensor([1.0, -1, 0, 0, 2, -2, 3]).repeat(b, 1), torch.tensor([0.0, 0, 1, -1, -2, -3, 1])),
)
case("hypot", torch.hypot, _pairs)
case("logaddexp", lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)), lambda b: (f(b, 4) * 50, f(4) * 50))
case("xlogy", torch.xlogy, lambda b: (torch.tensor([0.0, 1.0, 2.0]).repeat(b, 1), torch.tensor([0.0, 2.0, 3.0])))
case("copysign", torch.copysign, _pairs)
case("heaviside", torch.heaviside, lambda b: (torch.tensor([-1.0, 0, 2]).repeat(b, 1), f(3)))
case("lerp", lambda x, y: (torch.lerp(x, y, 0.3), torch.lerp(x, y, 0.8), torch.lerp(x, y, y)), _pairs)
case("addcmul_addcdiv", lambda x, y: (torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, y, x.abs() + 1)), _pairs)
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
case("isclose", lambda x, y: (torch.isclose(x, y), torch.isclose(x, x + 1e-9)), _pairs)
case("where", lambda x, y: (torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0), torch.where(x > 0, 1, y)), _pairs)
case("where_promotes", lambda x, y: torch.where(x > 0, x, y), lambda b: (f(b, 4), ints(4)))
case(
    "masked_fill",
    lambda x, m: (x.masked_fill(m, -1e9), x.masked_fill(m, float("-inf"))),
    lambda b: (f(b, 4), bools(1, 4)),
)
case("clamp", lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.2)), lambda b: (f(b, 4),))
case("clamp_nan", lambda x: x.clamp(-1, 1), special)
case("clamp_ints", lambda x: (x.clamp(-2, 5), x.clamp(min=1), x.clamp(max=1.5)), lambda b: (ints(b, 4),))
case("clamp_tensors", lambda x, y: (x.clamp(y, y + 1), x.clamp(min=y), x.clamp(2, 1)), _pairs)
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

# ── Reductions ──

case(
    "sum",
    lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.sum(-1, dtype=torch.float64)),
    lambda b: (f(b, 3, 4),),
)
case("sum_ints", lambda x: (x.sum(), x.sum(1), (x > 0).sum(0)), lambda b: (ints(b, 4, dtype=torch.int32),))
case("mean", lambda x: (x.mean(), x.mean(1), x.mean((0, -1), keepdim=True)), lambda b: (f(b, 3, 4),))
case("mean_of_ints", lambda x: x.mean(-1, dtype=torch.float32), lambda b: (ints(b, 4),))
case("amax_amin", lambda x: (x.amax(), x.amax(1), x.amin((0, 1), keepdim=True)), lambda b: (f(b, 3, 4),))
case("max_min", lambda x: (x.max(), x.min(), *x.max(1), *x.min(0), *x.max(-1, keepdim=True)), lambda b: (f(b, 5),))
case("max_ints", lambda x: (x.max(), *x.max(1), *x.min(1)), lambda b: (ints(b, 9),))
case("max_values_only", lambda x: x.max(1).values, lambda b: (f(b, 5),))
case("amax_bools", lambda x: (x.amax(1), x.max(), x.amin(1)), lambda b: (bools(b, 3),))
case("aminmax", lambda x: (*torch.aminmax(x), *torch.aminmax(x, dim=1, keepdim=True)), lambda b: (f(b, 3),))
case(
    "argmax",
    lambda x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True), x.argmax(keepdim=True)),
    lambda b: (f(b, 5),),
)
case("any_all", lambda x: (x.any(), x.all(), x.any(1), x.all(0, keepdim=True), x.any((0, 1))), lambda b: (bools(b, 2),))
case("any_of_floats", lambda x: (x.any(1), x.all(1)), lambda b: (torch.tensor([[0.0, 1.0], [0.0, 0.0]]).repeat(b, 1),))
case("all_of_nothing", lambda x: (x[:, :0].all(1), x[:, :0].any(1), x[:, :0].sum(1)), lambda b: (bools(b, 2),))
case("prod", lambda x: (x.prod(), x.prod(1), x.prod(0, keepdim=True)), lambda b: (f(b, 3),))
case("prod_ints", lambda x: (x.prod(1), x.int().prod(0)), lambda b: (ints(b, 3),))
case(
    "var_std",
    lambda x: (
        x.var(),
        x.std(1),
        x.var(1, unbiased=False),
        x.var((0, 1), correction=0.5, keepdim=True),
        *torch.var_mean(x, 1),
        *torch.std_mean(x, (0, 1)),
    ),
    lambda b: (f(b, 5),),
)
case("var_dynamic", lambda x: x.t().var(-1, correction=0), lambda b: (f(b, 5),))
case(
    "logsumexp", lambda x: (torch.logsumexp(x, 1), torch.logsumexp(x, (0, 1), keepdim=True)), lambda b: (f(b, 3) * 60,)
)
case(
    "logsumexp_infinite",
    lambda x: torch.logsumexp(x, 1),
    lambda b: (torch.tensor([[float("-inf")] * 3, [1.0, float("-inf"), 2.0]]).repeat(b, 1),),
)
case(
    "norms",
    lambda x: (
        x.norm(),
        x.norm(1, dim=1),
        x.norm(float("inf"), dim=0),
        torch.linalg.vector_norm(x, 3, dim=1, keepdim=True),
        torch.linalg.vector_norm(x, 0, dim=1),
        torch.linalg.vector_norm(x, -float("inf")),
    ),
    lambda b: (f(b, 4),),
)
case("normalize", lambda x: F.normalize(x, dim=-1), lambda b: (f(b, 4),))
case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=-1), _pairs)
case("count_nonzero", lambda x: (x.count_nonzero(), x.count_nonzero(1)), lambda b: (ints(b, 4, low=-1, high=2),))
case("trace", lambda x: x.trace(), lambda b: (f(b, 4),))
case(
    "reduce_scalar",
    lambda x: (x.sum(0), x.max(), x.mean(-1), *x.max(0), x.argmax()),
    lambda b: (f(b)[0],),
    is_static=True,
)

# ── Scans and softmax ──

case("cumsum", lambda x: (x.cumsum(0), x.cumsum(-1)), lambda b: (f(b, 4),))
case(
    "cumsum_ints",
    lambda x: (x.cumsum(1), (x > 0).cumsum(0), x.cumsum(1, dtype=torch.float32)),
    lambda b: (ints(b, 4, dtype=torch.int32),),
)
case("cumprod", lambda x: (x.cumprod(0), x.cumprod(1)), lambda b: (f(b, 4),))
case("cummax_cummin", lambda x: (*x.cummax(1), *x.cummin(0)), lambda b: (ints(b, 5),))
case("logcumsumexp", lambda x: torch.logcumsumexp(x, 1), lambda b: (f(b, 4),))
case("diff", lambda x: (x.diff(), x.diff(n=2), x.diff(dim=1, prepend=x[:, :1])), lambda b: (f(b, 5),))
case(
    "softmax",
    lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(1), x.softmax(-1, dtype=torch.float64)),
    lambda b: (f(b, 3, 4),),
)
case("softmax_half_to_float", lambda x: x.softmax(-1, dtype=torch.float32), lambda b: (f(b, 4, dtype=torch.float16),))
case("softmax_ops", lambda x: (nn.Softmax2d()(x), nn.Softmin(1)(x)), lambda b: (f(b, 2, 3, 3),))
case("softmax_of_view", lambda x: torch.softmax(x.view(x.size(1), -1), 0), lambda b: (f(b * 2, 4, 2),))

# ── Matrix products ──

case("matmul", lambda x, y: (x @ y, x[0] @ y, x @ y[:, 0]), lambda b: (f(b, 3, 4), f(4, 5)))
case("matmul_batched", lambda x, y: x @ y, lambda b: (f(b, 1, 3, 4), f(1, 2, 4, 5)))
case("matmul_ints", lambda x, y: x @ y, lambda b: (ints(b, 3), ints(3, 2)))


def _grouped_mm(x, w, offsets=None):
    """torch traces it in this type only."""
    return F.grouped_mm(x.bfloat16(), w.bfloat16(), offs=offsets).float()


def _offsets(*ends):
    return torch.tensor(ends, dtype=torch.int32)


case("grouped_mm", _grouped_mm, lambda b: (f(b * 2, 8), f(4, 8, 16), _offsets(0, b, b, b * 2)), tolerance=1e-2)
case(
    "grouped_mm_one_group",
    lambda x, w, o: _grouped_mm(x, w.mT, o),
    lambda b: (f(b * 2, 8), f(3, 16, 8), _offsets(0, b * 2, b * 2)),
    tolerance=1e-2,
)
case("grouped_mm_batches", _grouped_mm, lambda b: (f(2, b * 8, 8), f(2, 8, 16)), tolerance=1e-2)


class Experts(nn.Module):
    """A row goes to the expert that it names."""

    def __init__(self, is_transposed):
        super().__init__()
        self.is_transposed = is_transposed
        self.weight = nn.Parameter(f(4, 8, 16) if is_transposed else f(4, 16, 8))

    def forward(self, x, expert):
        order = expert.argsort()
        counts = torch.histc(expert.float(), 4, 0, 3)
        weight = self.weight if self.is_transposed else self.weight.transpose(-2, -1)
        y = _grouped_mm(x[order], weight, counts.cumsum(0, dtype=torch.int32))
        return y[order.argsort()], counts


for _is_transposed in (True, False):
    case(
        f"experts_{'as_they_lie' if _is_transposed else 'transposed'}",
        Experts(_is_transposed),
        lambda b: (f(b * 3, 8), ints(b * 3, low=0, high=4)),
        tolerance=1e-2,
    )
case("experts_one_is_hit", Experts(False), lambda b: (f(b * 2, 8), torch.full((b * 2,), 2)), tolerance=1e-2)
case("mm_bmm", lambda x, y: (torch.mm(x[0], y[0]), torch.bmm(x, y)), lambda b: (f(b, 3, 4), f(b, 4, 5)))
case(
    "addmm",
    lambda x, y, z: (
        torch.addmm(z, x, y),
        torch.addmm(z, x, y, alpha=0.5, beta=2),
        torch.addmm(z * float("nan"), x, y, beta=0),
    ),
    lambda b: (f(b, 4), f(4, 5), f(5)),
)
case(
    "baddbmm",
    lambda x, y, z: (torch.baddbmm(z, x, y, alpha=0.5), torch.addbmm(z[0], x, y), torch.baddbmm(z, x, y, beta=0)),
    lambda b: (f(b, 3, 4), f(b, 4, 5), f(b, 3, 5)),
)
case(
    "mv_dot_outer",
    lambda x, y: (
        torch.mv(x, y),
        torch.dot(y, y),
        torch.outer(x[0], y),
        torch.addmv(x[:, 0], x, y),
        torch.addr(x.t()[:, :1], y, y[:1]),
    ),
    lambda b: (f(b, 4), f(4)),
)
case("linear", nn.Linear(4, 5), lambda b: (f(b, 4),))
case("linear_3d", nn.Linear(4, 5), lambda b: (f(b, 3, 4),))
case("linear_without_bias", nn.Linear(4, 5, bias=False), lambda b: (f(b, 2, 3, 4),))
case("linear_1d", lambda x, w: (F.linear(x[0], w), F.linear(x, w[0])), lambda b: (f(b, 4), f(5, 4)))
case("linear_double", nn.Linear(4, 5).double(), lambda b: (f(b, 3, 4, dtype=torch.float64),))
case("bilinear", nn.Bilinear(3, 4, 5), lambda b: (f(b, 3), f(b, 4)))
case(
    "einsum",
    lambda x, y: (torch.einsum("bij,jk->bik", x, y), torch.einsum("b i j -> b j i", x), torch.einsum("...ij,jK", x, y)),
    lambda b: (f(b, 3, 4), f(4, 5)),
)

# ── Convolution and pooling ──

case("conv1d", nn.Conv1d(3, 4, 3, stride=2, padding=1, dilation=2), lambda b: (f(b, 3, 12),))
case(
    "conv2d_groups",
    nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(1, 0), groups=2, bias=False),
    lambda b: (f(b, 4, 9, 8),),
)
case("conv2d_same", nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)), lambda b: (f(b, 3, 6 + b, 7),))
case("conv2d_valid", nn.Conv2d(3, 4, 3, padding="valid"), lambda b: (f(b, 3, 6, 7),))
case("conv1d_same", nn.Conv1d(3, 4, 4, padding="same"), lambda b: (f(b, 3, 9),))
case("conv2d_reflect", nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), lambda b: (f(b, 3, 6, 7),))
case("conv2d_unbatched", nn.Conv2d(3, 4, 3), lambda b: (f(3, 6 + b, 7),))
case("conv3d", nn.Conv3d(2, 3, 2, padding=1), lambda b: (f(b, 2, 3, 4, 5),))
case("conv_transpose1d", nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1), lambda b: (f(b, 3, 6),))
case("conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, dilation=2), lambda b: (f(b, 4, 5, 4),))
case(
    "conv_transpose3d",
    nn.ConvTranspose3d(2, 3, 2, stride=2, output_padding=1, dilation=2),
    lambda b: (f(b, 2, 2, 3, 2),),
)
case("max_pool1d", nn.MaxPool1d(3, 2, 1), lambda b: (f(b, 2, 9),))
case("max_pool2d", nn.MaxPool2d((3, 2), stride=2, padding=1), lambda b: (f(b, 2, 9, 8),))
case("max_pool2d_dilated", nn.MaxPool2d(2, stride=2, dilation=2), lambda b: (f(b, 2, 9, 8),))
case("max_pool2d_unbatched", nn.MaxPool2d(2), lambda b: (f(2, 6 + b, 8),))
case("max_pool3d", nn.MaxPool3d(2), lambda b: (f(b, 2, 4, 4, 4),))
for _size in (8, 9, 10, 11):
    case(
        f"max_pool2d_ceil_{_size}",
        nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
    case(
        f"avg_pool2d_ceil_{_size}",
        nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
    case(
        f"avg_pool2d_ceil_excluded_{_size}",
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
case("max_pool2d_ceil_dynamic", nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), lambda b: (f(1, 2, 6 + b, 9),))
case(
    "avg_pool2d_ceil_dynamic",
    nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    lambda b: (f(1, 2, 6 + b, 9),),
)
case("max_pool2d_indices", nn.MaxPool2d(2, stride=2, return_indices=True), lambda b: (f(b, 3, 5, 6),))
case(
    "max_pool2d_indices_ceil",
    nn.MaxPool2d(3, stride=2, ceil_mode=True, return_indices=True),
    lambda b: (f(b, 3, 6, 8),),
)
case("avg_pool1d", nn.AvgPool1d(3, 2, 1), lambda b: (f(b, 2, 9),))
case("avg_pool2d", nn.AvgPool2d(3, 2, 1, count_include_pad=False), lambda b: (f(b, 2, 9, 8),))
case("avg_pool2d_divisor", nn.AvgPool2d(2, divisor_override=3), lambda b: (f(b, 2, 6, 8),))
case("avg_pool3d", nn.AvgPool3d(2, stride=1, padding=1), lambda b: (f(b, 2, 3, 4, 4),))
case("adaptive_avg_global", nn.AdaptiveAvgPool2d(1), lambda b: (f(b, 2, 4 + b, 5),))
case("adaptive_avg_even", nn.AdaptiveAvgPool2d((2, 5)), lambda b: (f(b, 2, 4, 10),))
case("adaptive_avg_uneven", nn.AdaptiveAvgPool2d((3, 4)), lambda b: (f(b, 2, 7, 10),))
case("adaptive_avg_dynamic", nn.AdaptiveAvgPool1d(3), lambda b: (f(1, 2, 6 + b),))
case("adaptive_avg_3d", nn.AdaptiveAvgPool3d((1, 2, 3)), lambda b: (f(b, 2, 3, 4, 5),))
case(
    "adaptive_max",
    lambda x: (F.adaptive_max_pool2d(x, 1), F.adaptive_max_pool2d(x, (2, 5)), F.adaptive_max_pool2d(x, (3, 4))),
    lambda b: (f(b, 2, 4, 10),),
)
case("adaptive_max_indices", nn.AdaptiveMaxPool1d(3, return_indices=True), lambda b: (f(b, 2, 9),))
case("lp_pool", nn.LPPool2d(2, 2), lambda b: (positive(b, 2, 4, 6),))


# ── Normalisation ──


def with_statistics(module, seed=0):
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.is_floating_point():
            drawn = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(seed + len(name))) + 0.5
            tensor.data.copy_(drawn)
    return module


OUTLIER = torch.cat([torch.tensor([800.0]), torch.linspace(-2, 2, 63)])
case("batch_norm1d", with_statistics(nn.BatchNorm1d(4)), lambda b: (f(b, 4),))
case("batch_norm2d", with_statistics(nn.BatchNorm2d(3)), lambda b: (f(b, 3, 4, 5),))
case("batch_norm_plain", with_statistics(nn.BatchNorm3d(3, affine=False)), lambda b: (f(b, 3, 2, 4, 5),))
case("batch_norm_of_batch", nn.BatchNorm2d(3, track_running_stats=False), lambda b: (f(b, 3, 4, 5),))
case("layer_norm", with_statistics(nn.LayerNorm(5)), lambda b: (f(b, 3, 5),))
case("layer_norm_2d", with_statistics(nn.LayerNorm((3, 5), bias=False)), lambda b: (f(b, 3, 5),))
case("layer_norm_plain", nn.LayerNorm(5, elementwise_affine=False, eps=1e-3), lambda b: (f(b, 5),))
case("layer_norm_half_outlier", nn.LayerNorm(64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("rms_norm", with_statistics(nn.RMSNorm(5, eps=1e-5)), lambda b: (f(b, 3, 5),))
case("rms_norm_plain", nn.RMSNorm((3, 5), elementwise_affine=False), lambda b: (f(b, 3, 5) * 1e-3,))
case("rms_norm_half_outlier", nn.RMSNorm(64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("rms_norm_half_small", nn.RMSNorm(8).half(), lambda b: ((f(b, 8) * 0.01).half(),))
case("group_norm", with_statistics(nn.GroupNorm(2, 6)), lambda b: (f(b, 6, 4, 3 + b),))
case("group_norm_flat", nn.GroupNorm(2, 6, affine=False), lambda b: (f(b, 6),))
case("group_norm_half", nn.GroupNorm(1, 64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("instance_norm", with_statistics(nn.InstanceNorm2d(3, affine=True)), lambda b: (f(b, 3, 4, 5),))
case("instance_norm_tracked", with_statistics(nn.InstanceNorm1d(3, track_running_stats=True)), lambda b: (f(b, 3, 5),))
case("local_response_norm", nn.LocalResponseNorm(3), lambda b: (positive(b, 5, 4, 4),))
case("weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), lambda b: (f(b, 4),))
case(
    "weight_norm_interface",
    lambda v, g: torch.ops.aten._weight_norm_interface(v, g, 0),
    lambda b: (f(b + 1, 3, 2), f(b + 1, 1, 1)),
)
case(
    "weight_norm_last_dim",
    lambda v, g: torch.ops.aten._weight_norm_interface(v, g, 2),
    lambda b: (f(b + 1, 3, 2), f(1, 1, 2)),
)

# ── Complex numbers ──


def _rotate(x, angles):
    rotation = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[:, None]).flatten(-2).type_as(x)


case("rotary_positions", _rotate, lambda b: (f(b, 2, 8), f(b, 4)))
case("rotary_positions_half", _rotate, lambda b: (f(b, 2, 8, dtype=torch.float16), f(b, 4)))


def complex_case(name, function, inputs=lambda b: (f(b, 4), f(b, 4) + 0.5, f(4) + 2), **options):
    """Of two complex tensors and a real one to complex ones."""

    def pairs(x, y, r):
        return tuple(
            torch.view_as_real(out) if out.is_complex() else out
            for out in function(torch.complex(x, y), torch.complex(y, x + 1), r)
        )

    case(f"complex_{name}", pairs, inputs, **options)


complex_case(
    "sums",
    lambda z, w, r: (z + w, z - w, z + r, r - z, z + 1.5, torch.add(z, w, alpha=2), torch.sub(r, w, alpha=3), 1 - z),
)
complex_case("products", lambda z, w, r: (z * w, z * r, r * z, z * 2.5, z**2, z.square(), z @ w.mT, r.to(z.dtype) * z))
complex_case("quotients", lambda z, w, r: (z / w, z / r, r / w, z / 4, w.reciprocal()))
complex_case(
    "parts",
    lambda z, w, r: (z.real, z.imag, z.abs(), z.angle(), z.conj() * w, -z, z.conj().imag.abs(), torch.polar(r, r)),
)
complex_case("exponential", lambda z, w, r: (z.exp(), torch.exp(r.to(z.dtype))))
complex_case(
    "views",
    lambda z, w, r: (
        z.t(),
        z[1:],
        z[:, None].expand(-1, 2, -1),
        z.reshape(-1),
        z.flip(0),
        z[:, [0, 2]],
        z.unbind(1)[2],
        z.roll(1, 1),
    ),
)
complex_case(
    "joins",
    lambda z, w, r: (
        torch.cat((z, w), 1),
        torch.stack((z, w.conj())),
        torch.where(r > 2, z, w),
        F.pad(z, (1, 2)),
        z.sum(1),
        z.mean(0),
        z.cumsum(1),
    ),
    is_static=True,
)  # torch.export fixes the batch
complex_case("doubles", lambda z, w, r: (z.to(torch.complex128) * w, (z * w).abs().double()))
for _norm in (None, "ortho", "forward"):
    complex_case(
        f"fft_{_norm}",
        lambda z, w, r, n=_norm: (
            torch.fft.fft(z, norm=n),
            torch.fft.ifft(z, dim=0, norm=n),
            torch.fft.fftn(z, norm=n),
            torch.fft.ifft2(w, norm=n),
            torch.fft.fft(r, norm=n),
            torch.fft.fftn(r.expand(3, 4), dim=(0, 1), norm=n).real,
        ),
    )
    case(
        f"rfft_{_norm}",
        lambda x, n=_norm: (
            torch.view_as_real(torch.fft.rfft(x, norm=n)),
            torch.fft.irfft(torch.fft.rfft(x, norm=n), norm=n),
            torch.fft.irfft(torch.fft.rfft(x, dim=0, norm=n), x.shape[0], dim=0, norm=n),
            torch.fft.irfft2(torch.fft.rfft2(x, norm=n), norm=n),
        ),
        lambda b: (f(b, 6),),
    )
case(
    "rfft_of_other_size",
    lambda x: (
        torch.fft.rfft(x, 4).abs(),
        torch.fft.rfft(x, 9).abs(),
        torch.fft.irfft(torch.complex(x, x), 7),
        torch.fft.irfft(torch.complex(x, x), 16),
    ),
    lambda b: (f(b, 6),),
)
case(
    "autocorrelation",
    lambda x, y: torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.fft.rfft(y, dim=1).conj(), n=x.shape[1], dim=1),
    lambda b: (f(2, b + 6, 3), f(2, b + 6, 3)),
)
case("fft_long", lambda x: torch.fft.irfft(torch.polar(x.exp(), x), 1280), lambda b: (f(b, 641),))
case("fft_doubles", lambda x: torch.view_as_real(torch.fft.fft(x)), lambda b: (f(b, 10).double(),), tolerance=1e-10)

# ── Views ──

case(
    "reshape",
    lambda x: (x.reshape(-1), x.reshape(x.shape[0], -1), x.view(2, -1, 2), x.flatten(1), x.unflatten(1, (2, 3))),
    lambda b: (f(b, 6, 4),),
)
case(
    "reshape_two_dynamic",
    lambda x: (
        x.reshape(x.shape[0], x.shape[1], 2, 2),
        x.reshape(x.shape[0] * x.shape[1], 4),
        x.transpose(0, 1).reshape(x.shape[1], -1),
    ),
    lambda b: (f(b, b + 2, 4),),
)
case("reshape_to_scalar", lambda x: x.sum().reshape(1, 1, 1), lambda b: (f(b, 2),))
case("reshape_empty", lambda x: (x[:, :0].reshape(x.shape[0], 0, 2), x[:, :0].flatten(1)), lambda b: (f(b, 4, 2),))
case(
    "permute",
    lambda x: (
        x.permute(2, 0, 1),
        x.transpose(1, 2),
        x.movedim(0, -1),
        x.movedim((0, 1), (2, 0)),
        x.swapaxes(0, 1),
        x.mT,
    ),
    lambda b: (f(b, 3, 4),),
)
case("t", lambda x: (x.t(), x.T, x[0].t()), lambda b: (f(b, 3),))
case(
    "unsqueeze_squeeze",
    lambda x: (
        x.unsqueeze(0),
        x.unsqueeze(-1),
        x.squeeze(),
        x.squeeze(1),
        x.squeeze(0),
        x.squeeze((1, 3)),
        x[:, None, :, None],
    ),
    lambda b: (f(b + 1, 1, 3, 1),),
)
case(
    "expand",
    lambda x: (
        x.expand(2, -1, 5),
        x[:, :, None].expand(-1, 4, x.shape[0]),
        x.expand_as(x.repeat(1, 5)),
        torch.broadcast_to(x, (3, x.shape[0], 2)),
    ),
    lambda b: (f(b, 1),),
)
case(
    "as_strided",
    lambda x: (x.as_strided((2, 3), (1, 2)), x.as_strided((2, 2), (2, 1), 3)),
    lambda b: (f(4, 5),),
    is_static=True,
)
case("pixel_shuffle", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 3)), lambda b: (f(b, 8, 6, 3),))
case(
    "pixel_unshuffle_order",
    nn.PixelUnshuffle(2),
    lambda b: (torch.arange(1.0, 9).reshape(1, 2, 2, 2).repeat(b, 1, 1, 1),),
)
case("pixel_shuffle_3d", nn.PixelShuffle(2), lambda b: (f(4, 3 + b, 5),))
case("channel_shuffle", nn.ChannelShuffle(3), lambda b: (f(b, 6, 2, 2),))
case(
    "to_dtypes",
    lambda x: (x.double(), x.half(), x.int(), x.bool(), x.to(torch.uint8), x.long(), x.type_as(x.half())),
    lambda b: (positive(b, 4) * 9,),
)
case("from_ints", lambda x: (x.float(), x.bool(), x.int(), x.to(torch.int8)), lambda b: (ints(b, 4),))
case("copy", lambda x, y: (torch.ops.aten.copy(x, y), torch.ops.aten.copy(x.int(), y)), lambda b: (f(b, 4), f(4) * 5))
case("clone", lambda x: (x.clone() + 1, x.contiguous(), x.detach()), lambda b: (f(b, 4),))

# ── Slices, joins, repeats ──

case(
    "slice",
    lambda x: (x[1:], x[:, 1:3], x[:, ::2], x[:, -2:], x[..., :-1], x[:, 10:], x[:, -10:2]),
    lambda b: (f(b + 1, 4),),
)
case(
    "slice_dynamic", lambda x, y: (x[: y.shape[0]], x[y.shape[0] - 1 :], x[-y.shape[0] :]), lambda b: (f(8, 3), f(b, 2))
)
case("select", lambda x: (x[0], x[-1], x[:, 2], x.select(1, -2)), lambda b: (f(b, 4),))
case("select_dynamic", lambda x, y: x[y.shape[0] - 1], lambda b: (f(8, 3), f(b, 2)))
case("narrow", lambda x: (x.narrow(1, 1, 2), x.narrow(1, -2, 2)), lambda b: (f(b, 4),))
case(
    "split",
    lambda x: (*x.split(2, 1), *x.split((1, 4), -1), *x.chunk(2, 1), *x.tensor_split(3, 1)),
    lambda b: (f(b, 5),),
)
case("split_used_once", lambda x: x.split(2, 1)[1], lambda b: (f(b, 6),))
case("split_dynamic", lambda x: x.split((x.shape[0] - 1, 1), 0), lambda b: (f(b + 1, 3),))
case("unbind", lambda x: (*x.unbind(1), x.unbind(-1)[2]), lambda b: (f(b, 3),))
case(
    "cat",
    lambda x, y: (torch.cat((x, y), 1), torch.cat((x, x)), torch.cat((x, y[:, :0], y), -1)),
    lambda b: (f(b, 3), f(b, 2)),
)
case("cat_promotes", lambda x, y: torch.cat((x, y), 1), lambda b: (f(b, 3), ints(b, 2)))
case("cat_legacy_empty", lambda x: torch.cat((torch.zeros(0), x), 1), lambda b: (f(b, 3),))
case(
    "stack",
    lambda x, y: (torch.stack((x, y)), torch.stack((x, y), -1), torch.stack((x, y), 1)),
    lambda b: (f(b, 3), f(b, 3)),
)
case(
    "flip_roll",
    lambda x: (x.flip(0), x.flip(0, -1), x.fliplr(), x.roll(1, 0), x.roll((1, -2), (0, 1)), x.roll(2), x.roll(7, 1)),
    lambda b: (f(b, 4),),
)
case("repeat", lambda x: (x.repeat(2, 3), x.repeat(2, 1, 1), x.tile((2,)), x.tile((1, 2, 3))), lambda b: (f(b, 3),))
case("repeat_dynamic", lambda x: x[:1].repeat(x.shape[0], 2), lambda b: (f(b, 3),))
case(
    "repeat_interleave",
    lambda x: (x.repeat_interleave(2), x.repeat_interleave(3, 0), x.repeat_interleave(2, -1)),
    lambda b: (f(b, 3),),
)
case("repeat_interleave_tensor", lambda x, r: x.repeat_interleave(r, 1), lambda b: (f(b, 3), torch.tensor([2, 0, 3])))
case(
    "meshgrid",
    lambda x, y: (*torch.meshgrid(x, y, indexing="ij"), *torch.meshgrid(x, y, indexing="xy")),
    lambda b: (f(b), f(3)),
)
case("unfold", lambda x: (x.unfold(1, 3, 2), x.unfold(-1, 2, 1), x.unfold(0, 1, 1)), lambda b: (f(b, 8, 4),))
case("im2col", lambda x: F.unfold(x, 3, padding=1, stride=2), lambda b: (f(b, 2, 7, 6),))
case("col2im", lambda x: F.fold(x, (5, 6), 2, padding=1, stride=2), lambda b: (f(b, 8, 12),))

# ── Indexing ──

_index = lambda b: (f(b, 4, 5), ints(2, 3, low=-4, high=4))  # noqa: E731
case(
    "gather", lambda x, i: (x.gather(1, i), x.gather(0, i % x.shape[0])), lambda b: (f(b, 4), ints(b, 3, low=0, high=4))
)
case("gather_smaller_index", lambda x, i: x.gather(1, i), lambda b: (f(b + 2, 4), ints(b, 3, low=0, high=4)))
case(
    "take_along_dim",
    lambda x, i: torch.take_along_dim(x, i, 1),
    lambda b: (f(b, 4), ints(b, 2, low=-4, high=4)),
    is_static=True,
)  # torch.export fixes the batch
case(
    "index_select",
    lambda x, i: (x.index_select(1, i), x.index_select(-1, i[:1])),
    lambda b: (f(b, 4), ints(3, low=0, high=4)),
)
case("take", lambda x, i: x.take(i), lambda b: (f(b, 4), ints(2, 2, low=-4, high=4)))
case("index_one", lambda x, i: (x[:, i], x[:, :, i[0]], x[:, i[0, 0]]), _index)
case("index_two", lambda x, i: (x[:, i, i], x[:, i[0], i[1]], x[0, i, i[:1]]), _index)
case("index_apart", lambda x, i: (x[:, i[0]][:, :, i[1]], x.transpose(0, 1)[i[0], :, i[1]]), _index)
case("index_broadcast", lambda x, i: x[torch.arange(x.shape[0])[:, None], i[0][None]], _index)
case(
    "index_mask",
    lambda x: (x[x > 0], x[x[:, 0] > 10], x[:, torch.tensor([True, False, True, True])]),
    lambda b: (f(b, 4),),
)
case("index_mask_2d", lambda x, m: x[m], lambda b: (f(b, 4, 3), bools(b, 4)))
case("index_mask_and_int", lambda x: x[torch.tensor([True, False, True, True]), 1], lambda b: (f(4, 2 + b),))
case(
    "index_put",
    lambda x, i: (x.index_put((i[0],), torch.zeros(())), x.index_put((i[0], i[1]), x[0, :3] * 2)),
    lambda b: (f(4, 4 + b), torch.tensor([[0, 2, -1], [1, 0, 3]])),
)
case(
    "index_put_accumulate",
    lambda x, i: x.index_put((i,), torch.ones(3, 4), accumulate=True),
    lambda b: (f(b + 2, 4), torch.tensor([0, 2, 0])),
)
case(
    "index_put_slice",
    lambda x, i, v: torch.ops.aten.index_put(x, [None, i], v),
    lambda b: (f(b, 4, 3), torch.tensor([2, 0]), f(b, 2, 3)),
)
case(
    "index_put_mask",
    lambda x: (
        torch.index_put(x, (x > 0,), torch.tensor(9.0)),
        torch.index_put(x, (x[:, 0] > 0,), torch.tensor([1.0, 2, 3, 4])),
    ),
    lambda b: (f(b, 4),),
)
case(
    "index_copy_add",
    lambda x, i, y: (x.index_copy(1, i, y), x.index_add(1, i, y, alpha=2), x.index_fill(1, i, 3.0)),
    lambda b: (f(b, 4), torch.tensor([2, 0]), f(b, 2)),
)
case(
    "index_copy_rows",
    lambda x, i: (x.index_copy(0, i, x[:2]), x.index_add(0, i, x[:2])),
    lambda b: (f(b + 2, 4), torch.tensor([2, 1])),
)
case(
    "cache_update", lambda c, i, k: c.index_copy(2, i, k), lambda b: (f(2, 2, 8, 3), torch.arange(b) + 1, f(2, 2, b, 3))
)
case(
    "scatter",
    lambda x, i, y: (
        x.scatter(1, i, y),
        x.scatter(1, i, 2.5),
        x.scatter(1, i, y, reduce="add"),
        x.scatter(1, i, y, reduce="multiply"),
    ),
    lambda b: (f(b, 4), torch.tensor([[3, 1]]).repeat(b, 1), f(b, 2)),
)
case(
    "scatter_larger_source",
    lambda x, i, y: x.scatter(1, i, y),
    lambda b: (f(b, 4), torch.tensor([[3, 1]]).repeat(b, 1), f(b, 3)),
)
case(
    "scatter_add",
    lambda x, i, y: x.scatter_add(1, i, y),
    lambda b: (f(b, 4), torch.tensor([[3, 1, 3]]).repeat(b, 1), f(b, 3)),
)
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    case(
        f"scatter_reduce_{_reduce}",
        lambda x, i, y, r=_reduce: (x.scatter_reduce(1, i, y, r), x.scatter_reduce(1, i, y, r, include_self=False)),
        lambda b: (f(b, 4), torch.tensor([[3, 1, 3]]).repeat(b, 1), f(b, 3)),
    )
case("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), lambda b: (f(b, 4), bools(b, 4), f(b * 4)))
case("masked_select", lambda x, m: x.masked_select(m), lambda b: (f(b, 4), bools(4)))
case(
    "select_scatter",
    lambda x, y: (x.select_scatter(y, 1, 2), x.select_scatter(y, 1, -1), x.select_scatter(x[0], 0, 0)),
    lambda b: (f(b, 4), f(b)),
)
case(
    "slice_scatter",
    lambda x, y: (
        x.slice_scatter(y, 1, 1, 3),
        x.slice_scatter(y, 1, 0, 4, 2),
        x.slice_scatter(y, 1, -2),
        x.slice_scatter(x * 2, 0),
    ),
    lambda b: (f(b, 4), f(b, 2)),
)
case("nonzero", lambda x: (x.nonzero(), torch.argwhere(x > 1)), lambda b: (ints(b, 4, low=0, high=3),))
case("where_indices", lambda x: torch.where(x > 0), lambda b: (f(b, 4),))
case("topk", lambda x: (*x.topk(2), *x.topk(1, dim=0, largest=False)), lambda b: (f(b, 5),))
case("sort", lambda x: (*x.sort(), *x.sort(0, descending=True), x.argsort(1), x.msort()), lambda b: (f(b, 5),))
case(
    "sort_stable",
    lambda x: (*x.sort(dim=1, stable=True), *x.sort(dim=1, stable=True, descending=True)),
    lambda b: (ints(b, 9, low=0, high=3),),
)
case(
    "kthvalue_median",
    lambda x: (*x.kthvalue(2), *x.median(1), x.median(), *x.kthvalue(1, 0, keepdim=True)),
    lambda b: (f(b, 6),),
)
case(
    "bucketize",
    lambda x, y: (torch.bucketize(x, y), torch.bucketize(x, y, right=True, out_int32=True)),
    lambda b: (ints(b, 4), torch.tensor([-4, 0, 0, 3])),
)
case(
    "searchsorted",
    lambda s, x: (torch.searchsorted(s, x), torch.searchsorted(s, x, side="right"), torch.searchsorted(s[0], x)),
    lambda b: (f(b, 6).sort().values, f(b, 3)),
)
case("one_hot", lambda x: F.one_hot(x, 5), lambda b: (ints(b, 3, low=0, high=5),))
case("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), lambda b: (ints(b, 4),))
case("isin", lambda x, y: (torch.isin(x, y), torch.isin(x, y, invert=True)), lambda b: (ints(b, 4), ints(3)))
case(
    "histc",
    lambda x: (torch.histc(x, 4, -1, 1), torch.histc(x, 5), torch.histc(x.round(), 3, 0, 2), torch.histc(x * 0, 4)),
    lambda b: (f(b, 6),),
)
case("embedding", nn.Embedding(7, 4, padding_idx=0), lambda b: (ints(b, 3, low=0, high=7),))
for _mode in ("sum", "mean", "max"):
    case(f"embedding_bag_{_mode}", nn.EmbeddingBag(7, 4, mode=_mode), lambda b: (ints(b, 3, low=0, high=7),))

# ── Triangles and diagonals ──

case("tril_triu", lambda x: (x.tril(), x.triu(1), x.tril(-1), x.triu(-2)), lambda b: (f(b, 4, 5),))
case("tril_types", lambda x: (x.tril(), (x > 0).triu(), x.int().tril()), lambda b: (ints(b, 4),))
case(
    "solve_triangular",
    lambda a, b: (
        torch.linalg.solve_triangular(a, b, upper=False),
        torch.linalg.solve_triangular(a[0], b, upper=True),
        torch.linalg.solve_triangular(a, b.mT, upper=True, left=False),
        torch.linalg.solve_triangular(a.nan_to_num().triu(1) * 0.1, b, upper=True, unitriangular=True),
    ),
    lambda b: (f(2, b, b) + 4 * torch.eye(b), f(2, b, 3)),
)
case(
    "diagonal",
    lambda x: (x.diagonal(0, 1, 2), x.diagonal(1), x.diagonal(-1, -1, 0), torch.diag(x[0], -1)),
    lambda b: (f(b, 4, 5),),
)
case(
    "diag_embed",
    lambda x: (x.diag_embed(), x.diag_embed(1), x.diag_embed(-2, 0, 2), torch.diag(x[0])),
    lambda b: (f(b, 3),),
)
case(
    "diagonal_scatter",
    lambda x, y: (x.diagonal_scatter(y), x.diagonal_scatter(y[:3], 1), x.diagonal_scatter(y[:3], -1)),
    lambda b: (f(4, 4) * b, f(4)),
)

# ── Factories ──

case(
    "arange",
    lambda x: (
        torch.arange(x.shape[0]),
        torch.arange(1, x.shape[0] * 2, 2),
        torch.arange(0, 1, 0.3),
        torch.arange(x.shape[0], dtype=torch.float32),
        torch.arange(5, 0, -2),
    ),
    lambda b: (f(b, 2),),
)
case("arange_reals", lambda x: torch.arange(0.5, x.shape[0] + 0.5, 0.7), lambda b: (f(b, 2),), is_static=True)
case(
    "full",
    lambda x: (
        torch.full((x.shape[0], 2), 3.5),
        torch.zeros(x.shape[0]),
        x.new_ones(3, x.shape[0]),
        torch.ones_like(x, dtype=torch.int32),
        x.new_full((2,), 7),
        torch.full_like(x, 2),
    ),
    lambda b: (f(b, 2),),
)
case("full_bools", lambda x: (torch.full((x.shape[0],), True), torch.zeros(3, dtype=torch.bool)), lambda b: (f(b, 2),))
case("scalar_tensor", lambda x: x * torch.scalar_tensor(2.5) + torch.tensor(3), lambda b: (f(b, 2),))
case(
    "linspace",
    lambda x: (
        torch.linspace(0, 1, x.shape[0]),
        torch.linspace(-3, 7, 5),
        torch.linspace(2, 3, 1),
        torch.logspace(0, 2, 4),
    ),
    lambda b: (f(b, 2),),
    is_static=True,
)
case("eye", lambda x: (torch.eye(x.shape[0]), torch.eye(3, 5, dtype=torch.int64)), lambda b: (f(b, 2),))
case(
    "windows",
    lambda x: x * torch.cat((torch.hann_window(4), torch.hamming_window(3, periodic=False))),
    lambda b: (f(b, 7),),
)
case("item", lambda x, k: x * k.item() + k.item(), lambda b: (f(b, 3), torch.tensor(2)))
case("item_as_size", lambda x, k: x.new_zeros(k.item()) + 1, lambda b: (f(b, 3), torch.tensor(4)))

# ── Padding and interpolation ──

for _mode in ("constant", "reflect", "replicate", "circular"):
    case(f"pad_{_mode}", lambda x, m=_mode: F.pad(x, (2, 1, 1, 0), mode=m), lambda b: (f(b, 2, 3, 4),))
case(
    "pad_value",
    lambda x: (F.pad(x, (1, 0), value=2.5), F.pad(x, (-1, 2)), F.pad(x > 0, (1, 1), value=True)),
    lambda b: (f(b, 4),),
)
case("pad_dynamic", lambda x: F.pad(x, (0, x.shape[0], 1, 0)), lambda b: (f(b, 4),))
for _mode in ("nearest", "nearest-exact", "linear"):
    case(
        f"interpolate1d_{_mode}",
        lambda x, m=_mode: (F.interpolate(x, 9, mode=m), F.interpolate(x, scale_factor=1.7, mode=m)),
        lambda b: (f(b, 2, 5),),
    )
for _mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
    case(
        f"interpolate2d_{_mode}",
        lambda x, m=_mode: (
            F.interpolate(x, (7, 3), mode=m),
            F.interpolate(x, scale_factor=2, mode=m),
            F.interpolate(x, scale_factor=(0.6, 1.7), mode=m),
        ),
        lambda b: (f(b, 2, 5, 6),),
    )
for _mode in ("bilinear", "bicubic"):
    case(
        f"interpolate_corners_{_mode}",
        lambda x, m=_mode: F.interpolate(x, (9, 4), mode=m, align_corners=True),
        lambda b: (f(b, 2, 5, 6),),
    )
    case(
        f"interpolate_antialias_{_mode}",
        lambda x, m=_mode: F.interpolate(x, (3, 4), mode=m, antialias=True),
        lambda b: (f(b, 2, 8, 9),),
    )
case(
    "interpolate3d",
    lambda x: (F.interpolate(x, scale_factor=2, mode="trilinear"), F.interpolate(x, (4, 5, 6))),
    lambda b: (f(b, 2, 2, 3, 4),),
)
case(
    "interpolate_dynamic",
    lambda x: F.interpolate(x, (x.shape[2] * 2, 5), mode="bilinear"),
    lambda b: (f(1, 2, 3 + b, 4),),
)
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        case(
            f"grid_sample_{_mode}_{_padding}",
            lambda x, g, m=_mode, p=_padding: F.grid_sample(x, g, m, p, align_corners=m == "bilinear"),
            lambda b: (f(b, 2, 5, 6), f(b, 3, 4, 2) * 0.7),
        )
case(
    "affine_grid",
    lambda t: (
        F.affine_grid(t, (t.shape[0], 1, 4, 5), align_corners=True),
        F.affine_grid(t, (t.shape[0], 1, 4, 5), align_corners=False),
    ),
    lambda b: (f(b, 2, 3),),
)


# ── Recurrent layers ──


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        output, state = self.layer(x)
        return (output, *state) if isinstance(state, tuple) else (output, state)


for _name, _layer in {
    "lstm": nn.LSTM(3, 4), "lstm_deep": nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
    "lstm_without_bias": nn.LSTM(3, 4, bias=False), "gru": nn.GRU(3, 4, 2), "gru_both": nn.GRU(3, 4, bidirectional=True),
    "rnn_tanh": nn.RNN(3, 4, 2), "rnn_relu": nn.RNN(3, 4, nonlinearity="relu", bidirectional=True, batch_first=True),
}.items():  # fmt: skip
    # torch.export fixes the length, so that the batch changes.
    case(_name, Recurrent(_layer), lambda b, first=_layer.batch_first: (f(b, 5, 3) if first else f(5, b, 3),))
case("lstm_unbatched", Recurrent(nn.LSTM(3, 4, 2)), lambda b: (f(5 + b, 3),), is_static=True)
case("cells", lambda x: (*LSTM_CELL(x), GRU_CELL(x), RNN_CELL(x)), lambda b: (f(b, 3),))
LSTM_CELL, GRU_CELL, RNN_CELL = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)

# ── Attention ──

_qkv = lambda b: (f(b, 4, 5, 8), f(b, 4, 6, 8), f(b, 4, 6, 8))  # noqa: E731
case("sdpa", F.scaled_dot_product_attention, _qkv)
case("sdpa_scale", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.2), _qkv)
case("sdpa_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), _qkv)
case(
    "sdpa_causal_short",
    lambda q, k, v: (
        F.scaled_dot_product_attention(q[:, :, :1], k, v, is_causal=True),
        F.scaled_dot_product_attention(q[:, :, :2], k, v, is_causal=True),
    ),
    _qkv,
)
case(
    "sdpa_causal_dynamic", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), lambda b: (f(2, 4, b, 8),)
)
case("sdpa_mask", F.scaled_dot_product_attention, lambda b: (*_qkv(b), f(b, 1, 5, 6)))


def _mask_with_empty_row(b):
    mask = torch.ones(b, 1, 5, 6, dtype=torch.bool)
    mask[..., 2:] = False
    mask[0, 0, 1] = False
    return (*_qkv(b), mask)


case("sdpa_bool_mask", F.scaled_dot_product_attention, _mask_with_empty_row)
case(
    "sdpa_infinite_mask",
    lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k, v, torch.zeros_like(m, dtype=q.dtype).masked_fill(~m, float("-inf"))
    ),
    _mask_with_empty_row,
)
case(
    "sdpa_grouped",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
    lambda b: (f(b, 4, 5, 8), f(b, 2, 6, 8), f(b, 2, 6, 8)),
)
case(
    "sdpa_grouped_mask",
    lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True),
    lambda b: (f(b, 4, b + 3, 8), f(b, 2, 6, 8), f(b, 2, 6, 8), bools(b, 1, b + 3, 6)),
)
case("sdpa_3d", F.scaled_dot_product_attention, lambda b: (f(b, 5, 8), f(b, 6, 8), f(b, 6, 3)))
case("sdpa_half", F.scaled_dot_product_attention, lambda b: tuple(t.half() for t in _qkv(b)))


class MultiheadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)


case("multihead_attention", MultiheadAttention(), lambda b: (f(b, b + 1, 8),))
case(
    "transformer_encoder",
    nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 48, activation="gelu"), 2),
    lambda b: (f(b + 4, b, 32),),
)

# ── Losses and distances ──

_classes = lambda b: (f(b, 4), torch.tensor([0, 3, -100, 2, 1])[:b])  # noqa: E731
case(
    "cross_entropy",
    lambda x, t: (
        F.cross_entropy(x, t),
        F.cross_entropy(x, t, reduction="sum"),
        F.cross_entropy(x, t, reduction="none"),
        F.cross_entropy(x, t, weight=torch.arange(1.0, 5), label_smoothing=0.1),
    ),
    _classes,
)
case(
    "cross_entropy_probabilities",
    lambda x, t: (F.cross_entropy(x, t.softmax(1)), F.cross_entropy(x, t.softmax(1), label_smoothing=0.2)),
    lambda b: (f(b, 4), f(b, 4)),
)
case("cross_entropy_pixels", lambda x, t: F.cross_entropy(x, t), lambda b: (f(b, 4, 3), ints(b, 3, low=0, high=4)))
case(
    "nll_loss",
    lambda x, t: (F.nll_loss(x.log_softmax(1), t), F.nll_loss(x.log_softmax(1), t, torch.arange(1.0, 5))),
    _classes,
)
case(
    "regression_losses",
    lambda x, y: (
        F.mse_loss(x, y),
        F.l1_loss(x, y, reduction="sum"),
        F.smooth_l1_loss(x, y, beta=0.5),
        F.huber_loss(x, y, reduction="none", delta=0.7),
    ),
    lambda b: (f(b, 4), f(b, 4) * 2),
)
case(
    "binary_losses",
    lambda x, y: (
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.arange(1.0, 5)),
    ),
    lambda b: (f(b, 4), f(b, 4)),
)
case(
    "kl_div",
    lambda x, y: (
        F.kl_div(x.log_softmax(1), y.softmax(1)),
        F.kl_div(x.log_softmax(1), y.log_softmax(1), reduction="sum", log_target=True),
    ),
    lambda b: (f(b, 4), f(b, 4) * 2),
)
case(
    "cdist",
    lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1), torch.cdist(x, y, p=3)),
    lambda b: (f(b, 4, 5), f(b, 3, 5)),
)
case(
    "euclidean_dist",
    lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
    lambda b: (f(b, 4, 5), f(b, 3, 5)),
)
case("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), lambda b: (f(b, 4), f(b, 4) * 2))
