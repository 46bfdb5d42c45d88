"""Hiera's pre-training, which keeps equally many units of each image.

Why: the units are taken by a boolean index, whose number a trace doesn't know. It follows from the image's size: the
places of the units that are kept, in order, are those that a stable sort puts first.
"""

from __future__ import annotations

import ast
import math
import sys
from typing import Any

import torch

from . import rewriting


def kept(model, features: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """features[positions], in rows per image; positions (batch, places, channels) has equally many places for each."""
    patches = model.embeddings.patch_embeddings
    units = int(math.prod(patches.mask_spatial_shape) * (1 - patches.mask_ratio))
    count = units * math.prod(model.config.masked_unit_size)
    places = (~positions[..., 0]).to(torch.int64).argsort(dim=1, stable=True)[:, :count]
    return features.gather(1, places[..., None].expand(-1, -1, features.shape[-1]))


class _Rewrite(ast.NodeTransformer):
    def visit_Subscript(self, node):
        if ast.unparse(node) != "hidden_states[positions]":
            return node
        return rewriting.call(__name__, "kept", ast.Name("self", ast.Load()), node.value, node.slice)


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    hiera = sys.modules.get("transformers.models.hiera.modeling_hiera")
    is_masked = any(getattr(module, "is_mae", False) for module in model.modules())
    return rewriting.entries(hiera.HieraModel.forward, _Rewrite) if hiera is not None and is_masked else []
