"""Attention in windows of sequences that are padded to a multiple of the window (Longformer, LED, BigBird).

Why: whether a sequence is padded, and `[:-padding_len]` behind it, fit the sample only. Windows that overlap are made
of strides of memory, which graphs for other runtimes don't have.
"""

from __future__ import annotations

import ast
from typing import Any

import torch

from . import rewriting
from .vision_grids import module_names


def is_padded(padding) -> bool:
    """padding > 0; true for a symbol, as padding by nothing changes nothing."""
    return isinstance(padding, torch.SymInt) or padding > 0


def overlapping(features: torch.Tensor, size, **_) -> torch.Tensor:
    """Windows (batch, windows, places, channels) of features, (batch, length, channels) by a third of a window each, or
    (batch, pieces, places, channels) by half a window."""
    window = size[2]
    hop = window // (2 if features.dim() == 4 else 3)
    places = torch.arange(size[1], device=features.device)[:, None] * hop + torch.arange(window, device=features.device)
    return (features.flatten(1, 2) if features.dim() == 4 else features)[:, places]


class _Rewrite(ast.NodeTransformer):
    def visit_Compare(self, node):
        return rewriting.call(__name__, "is_padded", node.left) if ast.unparse(node) == "padding_len > 0" else node

    def visit_Subscript(self, node):
        """x[:, :-padding_len] as x[:, :x.shape[1] - padding_len]."""
        self.generic_visit(node)
        for dim, part in enumerate(node.slice.elts if isinstance(node.slice, ast.Tuple) else ()):
            if isinstance(part, ast.Slice) and part.upper is not None and ast.unparse(part.upper) == "-padding_len":
                part.upper = ast.parse(f"{ast.unparse(node.value)}.shape[{dim}] - padding_len", mode="eval").body
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "as_strided"):
            return node
        made = rewriting.call(__name__, "overlapping", node.func.value)
        made.keywords = node.keywords
        return made


_FUNCTIONS = (
    "forward",
    "_pad_to_window_size",
    "_pad_to_block_size",
    "_chunk",
    "_sliding_chunks_matmul_attn_probs_value",
)
_MODULES = ("longformer", "led", "big_bird", "bigbird_pegasus")


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    modules = {f"transformers.models.{name}.modeling_{name}" for name in _MODULES}
    if not modules & set(module_names(model)):
        return []
    classes = {type(module): None for module in model.modules()}
    return [
        entry
        for cls in classes
        if cls.__module__ in modules
        for name in _FUNCTIONS
        if name in vars(cls)
        for entry in rewriting.entries(getattr(cls, name), _Rewrite)
    ]
