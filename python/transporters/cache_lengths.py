"""Token counts of caches, between their layers' Python numbers and what programs hold.

Programs know how many tokens a cache has from its tensors (patches/cache_layers.py); layers with a window count in a number
besides. A cache that eager code has filled can be given to a program, and one that comes back used by eager code.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch


def _cache_utils():
    return sys.modules.get("transformers.cache_utils")


def caches(values: Iterable[Any]) -> Iterator[Any]:
    """transformers' caches among these values, those of an encoder-decoder one by one."""
    utils = _cache_utils()
    for value in values if utils is not None else ():
        if isinstance(value, utils.EncoderDecoderCache):
            yield from (value.self_attention_cache, value.cross_attention_cache)
        elif isinstance(value, utils.Cache):
            yield value


def to_program(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, their caches with tensors that tell how many tokens they have."""
    utils = _cache_utils()
    if utils is None:
        return values
    for cache in caches(values.values()):
        for layer in cache.layers:
            if isinstance(layer, utils.StaticSlidingWindowLayer) and layer.cumulative_length_int > int(layer.cumulative_length):
                layer.cumulative_length.fill_(layer.cumulative_length_int)
    return {name: _with_all_positions(value, utils) for name, value in values.items()}


def _with_all_positions(cache: Any, utils) -> Any:
    """A dynamic cache whose layers have an entry for each token: those that left the window are behind every mask."""
    if not isinstance(cache, utils.Cache) or not any(_forgot(layer, utils) for layer in getattr(cache, "layers", ())):
        return cache
    cache = copy.copy(cache)
    cache.layers = [copy.copy(layer) if _forgot(layer, utils) else layer for layer in cache.layers]
    for layer in cache.layers:
        if _forgot(layer, utils):
            missing = layer.cumulative_length - layer.keys.shape[-2]
            layer.keys, layer.values = (
                torch.nn.functional.pad(states, (0, 0, missing, 0)) for states in (layer.keys, layer.values)
            )
    return cache


def _forgot(layer: Any, utils) -> bool:
    return (
        isinstance(layer, utils.DynamicSlidingWindowLayer)
        and layer.is_initialized
        and layer.cumulative_length > layer.keys.shape[-2]
    )


def from_program(values: Iterable[Any]) -> None:
    """Sets the numbers of these caches' layers to what their tensors tell."""
    utils = _cache_utils()
    for cache in caches(values):
        for layer in cache.layers:
            if isinstance(layer, utils.StaticSlidingWindowLayer) and layer.is_initialized:
                layer.cumulative_length_int = int(layer.cumulative_length)
            elif isinstance(layer, utils.DynamicSlidingWindowLayer) and layer.is_initialized:
                layer.cumulative_length = layer.keys.shape[-2]
