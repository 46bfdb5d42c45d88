"""State-space scans: the recurrence over a sequence in a form whose size does not depend on its length.

Mamba's models step through the sequence in a Python loop when they are exported, which fixes the length. They also have
an associative scan, which torch.export can't hold; here it becomes a prefix scan in log2(length) steps of ordinary ops
(Hillis and Steele, "Data parallel algorithms", 1986).
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils import _pytree

# Of a symbolic length: the scan has as many steps as the longest sequence needs.
LONGEST = 1 << 16

_MODULES = (
    "transformers.models.falcon_mamba.modeling_falcon_mamba",
    "transformers.models.jamba.modeling_jamba",
    "transformers.models.mamba.modeling_mamba",
    "transformers.models.zamba.modeling_zamba",
)


def associative_scan(combine_fn, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"):
    """torch's associative_scan: element t combines the elements up to t of tensors of one length along `dim`."""
    leaves, spec = _pytree.tree_flatten(xs)
    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]
    length = leaves[0].shape[dim]
    longest = LONGEST if isinstance(length, torch.SymInt) else length
    torch._check(length <= longest, lambda: f"a scan takes at most {longest} steps")
    position = torch.arange(length, device=leaves[0].device)
    distance = 1
    while distance < longest:
        source = (position - distance).clamp(min=0)
        earlier = [leaf.index_select(dim, source) for leaf in leaves]
        combined = combine_fn(_pytree.tree_unflatten(earlier, spec), _pytree.tree_unflatten(leaves, spec))
        has_earlier = position >= distance
        leaves = [
            torch.where(_along(has_earlier, dim, leaf.dim()), new, leaf)
            for new, leaf in zip(_pytree.tree_leaves(combined), leaves)
        ]
        distance *= 2
    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]
    return _pytree.tree_unflatten(leaves, spec)


def _along(vector: torch.Tensor, dim: int, rank: int) -> torch.Tensor:
    shape = [1] * rank
    shape[dim] = -1
    return vector.view(shape)


def _exporting(original):
    """The scans ask for this to choose the loop; everything else gets the true answer."""

    def is_torchdynamo_exporting():
        return "selective_scan" not in sys._getframe(1).f_code.co_name and original()

    return is_torchdynamo_exporting


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    used = {type(module).__module__ for module in model.modules()}
    loaded = [sys.modules[name] for name in _MODULES if name in used]
    if not loaded:
        return []
    from torch._higher_order_ops import associative_scan as torch_module

    patched = [(module, "is_torchdynamo_exporting", _exporting) for module in loaded]
    return [(torch_module, "associative_scan", lambda _: associative_scan), *patched]
