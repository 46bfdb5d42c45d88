"""Eager with ONNX's choice among equal elements.

torch.topk takes any of equal elements at its cut (https://docs.pytorch.org/docs/stable/generated/torch.topk.html), ONNX's
TopK the first. Scores of tiny models are equal often: zeros behind a relu, say.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def _topk(self, k, dim=-1, largest=True, sorted=True, *, out=None):
    ordered = torch.sort(self, dim=dim, descending=largest, stable=True)
    kept = [part.narrow(dim, 0, int(k)) if self.dim() else part for part in ordered]
    return torch.return_types.topk(kept)


@contextmanager
def first_of_equals() -> Iterator[None]:
    """torch.topk takes the first of equal elements, in the order of the tensor."""
    function, method = torch.topk, torch.Tensor.topk
    torch.topk = lambda input, *args, **kwargs: _topk(input, *args, **kwargs)
    torch.Tensor.topk = _topk
    try:
        yield
    finally:
        torch.topk, torch.Tensor.topk = function, method
