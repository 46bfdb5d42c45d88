"""Attention over sequences that are packed into one, with their boundaries in `cu_seqlens`.

Why: vision and audio towers split queries, keys and values at `cu_seqlens.tolist()` and attend piece by piece, so a
graph would hold the number of pieces and their lengths. transformers' own patch for its exporters takes all pieces
for equally long, which gives wrong values for images of different sizes. Here the forward runs as for a single piece,
under a mask that keeps the pieces apart: right for every segmentation, with memory for the square of the whole
sequence.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import torch

from ..registry import replaced


class _OnePiece:
    """In place of cu_seqlens where a forward computes the lengths of the pieces: one, as long as the sequence."""

    def __init__(self, length):
        self._length = length

    def __getitem__(self, _):
        return self

    def __sub__(self, _):
        return self

    def tolist(self):
        return [self._length]


def _names(code: types.CodeType) -> set[str]:
    """Names that a function's code uses, comprehensions included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


@functools.lru_cache(maxsize=None)
def _splits_at_boundaries(forward: Any) -> bool:
    code = getattr(inspect.unwrap(forward), "__code__", None)
    if code is None or "cu_seqlens" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return False
    return {"split", "tolist", "ALL_ATTENTION_FUNCTIONS"} <= _names(code)


def _same_piece(cu_seqlens: torch.Tensor, length) -> torch.Tensor:
    """(1, 1, length, length): whether two places of the packed sequence belong to one piece."""
    places = torch.arange(length, device=cu_seqlens.device)
    piece = (places[:, None] >= cu_seqlens[None, 1:]).sum(-1)
    return (piece[:, None] == piece[None, :])[None, None]


def _masked(interface, implementation: str, allowed: torch.Tensor):
    """The attention function with the mask in the form that it takes."""

    def attention(module, query, key, value, attention_mask=None, **kwargs):
        mask = allowed
        if implementation == "eager":
            mask = torch.where(allowed, 0.0, torch.finfo(query.dtype).min).to(query.dtype)
        return interface(module, query, key, value, attention_mask=mask, **kwargs)

    return attention


def _in_one_piece(original):
    parameters = inspect.signature(original)
    interfaces = inspect.unwrap(original).__globals__["ALL_ATTENTION_FUNCTIONS"]

    @functools.wraps(original)
    def forward(self, *args, **kwargs):
        implementation = self.config._attn_implementation or "eager"
        bound = parameters.bind(self, *args, **kwargs)
        cu_seqlens = bound.arguments.get("cu_seqlens")
        if cu_seqlens is None or implementation not in ("eager", "sdpa"):
            return original(self, *args, **kwargs)
        length = bound.arguments["hidden_states"].shape[-2]
        allowed = _same_piece(cu_seqlens, length)
        bound.arguments["cu_seqlens"] = _OnePiece(length)

        def get_interface(get):
            return lambda name, default: _masked(get(name, default), implementation, allowed)

        with replaced([(interfaces, "get_interface", get_interface)]):
            return original(*bound.args, **bound.kwargs)

    return forward


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules()}
    return [(cls, "forward", _in_one_piece) for cls in classes if _splits_at_boundaries(cls.forward)]
