"""Products of matrices: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import case, f, ints
from torch import nn

torch.manual_seed(0)  # of the modules below

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
