"""Patches of model code that can't be traced as it is, or whose trace would be right for the sample only.

Each file says why its patch is there. A patch is in place while a model is traced, and gives what the original gives
for every input.
"""

from __future__ import annotations

from typing import Any

import torch

from . import (
    audio_padding,
    dynamic_rope,
    experts,
    image_lists,
    image_sizes,
    length_statistics,
    linear_attention,
    local_attention,
    masked_units,
    multimodal_rope,
    packed_attention,
    pieces,
    place_lists,
    prefix_masks,
    recurrences,
    shifted_windows,
    size_branches,
    sliding_windows,
    vision_grids,
    vision_merging,
)
from .multimodal_rope import traces_rope_index

__all__ = ["entries", "traces_rope_index"]


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    """(owner, attribute, factory) for what this model's modules need."""
    kinds = (
        dynamic_rope,
        packed_attention,
        vision_grids,
        vision_merging,
        multimodal_rope,
        experts,
        linear_attention,
        recurrences,
        image_lists,
        image_sizes,
        local_attention,
        prefix_masks,
        shifted_windows,
        size_branches,
        audio_padding,
        length_statistics,
        sliding_windows,
        masked_units,
        place_lists,
        pieces,
    )
    return [entry for kind in kinds for entry in kind.entries(model)]
