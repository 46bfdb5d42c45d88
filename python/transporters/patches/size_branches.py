"""Branches that ask whether a size is the one that the model was made for.

Why: models interpolate their position embeddings only for images of another size, so a graph would hold the sample's
branch. At the size that a model was made for interpolation changes nothing: symbolic sizes count as different.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch

from . import rewriting

# Per method the comparisons.
_METHODS = {
    "timesformer.modeling_timesformer.TimesformerEmbeddings.forward": (
        "embeddings.size(1) != self.position_embeddings.size(1)",
        "num_frames != self.time_embeddings.size(1)",
    ),
}


def differ(size, other) -> bool:
    """size != other, true for a symbolic size."""
    return isinstance(size, torch.SymInt) or size != other


def _rewrite(conditions: tuple[str, ...]) -> type[ast.NodeTransformer]:
    class Rewrite(ast.NodeTransformer):
        def visit_Compare(self, node):
            if ast.unparse(node) not in conditions:
                return node
            return rewriting.call(__name__, "differ", node.left, node.comparators[0])

    return Rewrite


_REWRITES = {path: _rewrite(conditions) for path, conditions in _METHODS.items()}


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = []
    for path, rewrite in _REWRITES.items():
        module_name, class_name, method = path.rsplit(".", 2)
        cls = getattr(sys.modules.get(f"transformers.models.{module_name}"), class_name, None)
        if cls is not None and any(type(module) is cls for module in model.modules()):
            found += rewriting.entries(getattr(cls, method), rewrite)
    return found
