"""Tensors that are split at sizes which the data decides.

Why: models split the features of all images at `sizes.tolist()` and join them again later, so a graph would hold the
number of images and a number from the data for each. The split is put off until somebody looks at single pieces;
joining pieces that nobody looked at gives the tensor that they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from .. import _C


class Sizes(Sequence):
    """The numbers of a traced tensor, read when they are looked at."""

    def __init__(self, tensor: torch.Tensor, read):
        self._tensor, self._read, self._numbers = tensor, read, None

    def numbers(self) -> list:
        if self._numbers is None:
            self._numbers = self._read(self._tensor)
        return self._numbers

    def __len__(self):
        return len(self.numbers())

    def __getitem__(self, index):
        return self.numbers()[index]

    def __iter__(self):
        return iter(self.numbers())

    def __eq__(self, other):
        return self.numbers() == other

    def __add__(self, other):
        return self.numbers() + list(other)

    def __radd__(self, other):
        return list(other) + self.numbers()


class Pieces(Sequence):
    """What a tensor is split into along `dim`, made by `split()` when it is looked at."""

    __class__ = tuple  # code that joins tuples and lists asks for them

    def __init__(self, whole: torch.Tensor, dim: int, split: Callable[[], Sequence[torch.Tensor]]):
        self.whole, self.dim = whole, dim % whole.dim()
        self._split, self._tensors = split, None

    def tensors(self) -> Sequence[torch.Tensor]:
        if self._tensors is None:
            self._tensors = self._split()
        return self._tensors

    def flattened(self) -> Pieces:
        """[piece.reshape(-1, piece.shape[-1]) for piece in self]."""
        whole = self.whole.reshape(-1, self.whole.shape[-1])
        return Pieces(whole, 0, lambda: [piece.reshape(-1, piece.shape[-1]) for piece in self.tensors()])

    def __len__(self):
        return len(self.tensors())

    def __getitem__(self, index):
        return self.tensors()[index]

    def __iter__(self):
        return iter(self.tensors())


def _tolist(original):
    def tolist(self):
        if _C.is_traced(self) and self.dim() == 1 and self.dtype in (torch.int32, torch.int64):
            return Sizes(self, original)
        return original(self)

    return tolist


def _split(original):
    def split(self, split_size, dim=0):
        if isinstance(split_size, Sizes):
            return Pieces(self, dim, lambda: original(self, split_size.numbers(), dim))
        return original(self, split_size, dim)

    return split


def _cat(original):
    def cat(tensors, dim=0, **kwargs):
        dim = kwargs.pop("axis", dim)  # NumPy's name, which torch takes too
        if type(tensors) is Pieces:
            same = dim % tensors.whole.dim() == tensors.dim
            tensors = [tensors.whole] if same else tensors.tensors()
        return original(tensors, dim, **kwargs)

    return cat


def _of_tensors(original):
    """Functions in C++ take real lists only."""

    def function(tensors, *args, **kwargs):
        return original(tensors.tensors() if type(tensors) is Pieces else tensors, *args, **kwargs)

    return function


def settled(outputs: Any) -> Any:
    """What a model returned, with pieces as tuples and lists of tensors."""

    def is_pieces(value) -> bool:
        return type(value) is Pieces

    if not any(map(is_pieces, _pytree.tree_leaves(outputs))):
        return outputs
    return _pytree.tree_map(lambda leaf: leaf.tensors() if is_pieces(leaf) else leaf, outputs, is_leaf=is_pieces)


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    return [
        (torch.Tensor, "tolist", _tolist),
        (torch.Tensor, "split", _split),
        (torch, "cat", _cat),
        (torch, "stack", _of_tensors),
        (torch._C._nn, "pad_sequence", _of_tensors),
    ]
