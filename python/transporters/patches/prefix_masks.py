"""Masks of PaliGemma where no token types are given, and of AIMv2's texts.

Why: their layers aren't causal by themselves, so eager attends to everything when it leaves the mask out, which it does
when nothing is padded, and causally when something is. A trace always builds the mask; this makes it the one that
eager's choice comes to, for every padding.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch


def _create_causal_mask(original):
    @functools.wraps(original)
    def create_causal_mask(*args, **kwargs):
        mask = original(*args, **kwargs)
        config = kwargs.get("config", args[0] if args else None)
        text = config.get_text_config()
        is_prefix = getattr(text, "use_bidirectional_attention", text.model_type == "aimv2_text_model") is True
        chosen_by_blocks = kwargs.get("block_sequence_ids") is not None
        # Only masks of sdpa are left out, and only where no past comes before the tokens.
        is_left_out = isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and mask.shape[-1] == mask.shape[-2]
        if chosen_by_blocks or not is_prefix or not is_left_out:
            return mask
        padding = kwargs.get("attention_mask")
        if padding is None:
            return torch.ones_like(mask)
        return mask | padding.bool().all() if padding.dim() == 2 else mask

    return create_causal_mask


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    modules = (sys.modules.get(f"transformers.models.{name}.modeling_{name}") for name in ("paligemma", "aimv2"))
    return [(module, "create_causal_mask", _create_causal_mask) for module in modules if module is not None]
