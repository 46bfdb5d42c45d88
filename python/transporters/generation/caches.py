"""Cache layers as graphs hold them: what they count is a tensor or a size, never a number of the sample."""

from __future__ import annotations

from typing import Any


def capture_patches() -> list[tuple[Any, str, Any]]:
    """Replacements while stages are captured, for the caches to be as the exported stages make them."""
    from transformers import cache_utils

    # A graph can't count tokens in a Python number: layers with a window keep all keys, and the mask has the window.
    whole, windowed = cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer
    return [
        (windowed, name, lambda _, name=name: getattr(whole, name)) for name in ("update", "get_mask_sizes", "get_seq_length")
    ]
