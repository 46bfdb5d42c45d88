"""Indexing: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import bools, case, f, ints
from torch import nn

torch.manual_seed(0)  # of the modules below

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
