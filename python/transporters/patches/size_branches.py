"""Branches that ask how a size compares with another one, where one answer serves for all sizes.

Why: models interpolate position embeddings or features only for images of another size, so a graph would hold the
sample's branch. At the size that a model was made for interpolation changes nothing: symbolic sizes count as different.
Codecs shorten only audio that is too long; to cut at the length changes no other: symbolic lengths count as shorter.
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
    "mobilevit.modeling_mobilevit.MobileViTLayer.unfolding": (
        "new_width != orig_width",
        "new_height != orig_height",
    ),
    "encodec.modeling_encodec.EncodecModel.decode": ("padding_mask.shape[-1] < audio_values.shape[-1]",),
    "mimi.modeling_mimi.MimiModel.decode": ("padding_mask.shape[-1] < audio_values.shape[-1]",),
}


def differ(size, other) -> bool:
    """size != other, true for a symbolic size."""
    return isinstance(size, torch.SymInt) or size != other


def shorter(size, other) -> bool:
    """size < other, true for symbolic sizes."""
    return isinstance(size, torch.SymInt) or isinstance(other, torch.SymInt) or size < other


def _rewrite(conditions: tuple[str, ...]) -> type[ast.NodeTransformer]:
    class Rewrite(ast.NodeTransformer):
        def visit_Compare(self, node):
            if ast.unparse(node) not in conditions:
                return node
            function = "shorter" if isinstance(node.ops[0], ast.Lt) else "differ"
            return rewriting.call(__name__, function, node.left, node.comparators[0])

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
