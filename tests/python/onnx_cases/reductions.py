"""Reductions, scans and softmax: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import bools, case, f, ints, pairs
from torch import nn

torch.manual_seed(0)  # of the modules below

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
case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=-1), pairs)
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
