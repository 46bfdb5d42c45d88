"""Which axes of caches and of their masks are dynamic, and their names: an axis in two places is one size."""

from __future__ import annotations

from typing import Any

import torch

from .caches import cache_utils, each


def axis_names(kwargs: dict[str, Any]) -> dict[str, list[str | None]]:
    """Path of a leaf of the caches among these arguments -> names of its axes, None for those that the model fixes."""
    utils = cache_utils()
    names: dict[str, list[str | None]] = {}
    for name, value in kwargs.items() if utils is not None else ():
        if isinstance(value, utils.EncoderDecoderCache):
            _name_axes(names, f"{name}.self_attention_cache", value.self_attention_cache, utils)
            _name_axes(names, f"{name}.cross_attention_cache", value.cross_attention_cache, utils, "encoder_sequence")
        elif isinstance(value, utils.Cache):
            _name_axes(names, name, value, utils)
    lengths = {length for axes in names.values() for length in axes[2:3]}
    for name, queries in (("attention_mask", "sequence"), ("decoder_attention_mask", "decoder_sequence")):
        if lengths & {"cache_length", "window"}:
            names.update(_mask_axes(name, kwargs.get(name), queries, "cache_length" in lengths))
    return names


def _mask_axes(path: str, mask: Any, queries: str, has_whole: bool) -> dict[str, list[str | None]]:
    """Names of the axes of masks with a row per query for caches of fixed size: batch, head, query, key."""
    if isinstance(mask, dict):
        return {
            name: axes
            for kind, part in mask.items()
            for name, axes in _mask_axes(f"{path}.{kind}", part, queries, kind == "full_attention").items()
        }
    is_whole = isinstance(mask, torch.Tensor) and mask.dim() == 4
    return {path: ["batch", None, queries, "cache_length" if has_whole else "visible"]} if is_whole else {}


def _name_axes(names, prefix: str, cache: Any, utils, length: str | None = None) -> None:
    for index, layer in enumerate(cache.layers):
        of_layer = length or "past_length"
        if isinstance(layer, utils.StaticLayer) and length is None:
            of_layer = "window" if isinstance(layer, utils.StaticSlidingWindowLayer) else "cache_length"
        for name in ("keys", "values"):
            names[f"{prefix}.layers.{index}.{name}"] = ["batch", None, of_layer, None]
        for name in ("conv_states", "recurrent_states"):
            for state, tensor in getattr(layer, name, {}).items():
                if tensor is not None:
                    names[f"{prefix}.layers.{index}.{name}.{state}"] = ["batch", *[None] * (tensor.dim() - 1)]


def go_on_token_by_token(kwargs: dict[str, Any]) -> bool:
    """Whether there are states of a recurrence among these arguments: models go on from those in another way for one
    token than for several, if they do at all."""
    return any(any(_states(layer).values()) for cache in each(kwargs.values()) for layer in cache.layers)


def _states(layer: Any) -> dict[int, bool]:
    return getattr(layer, "has_previous_state", {})
