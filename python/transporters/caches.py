"""transformers' caches between callers and programs.

Programs know how many tokens a cache has from its tensors (patches/cache_layers.py); layers with a window count in a
number besides. A cache that eager code has filled can be given to a program, and one that comes back used by eager
code.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree

from ._C import ExportError


def cache_utils():
    """transformers.cache_utils when it is loaded: nothing is a cache before."""
    return sys.modules.get("transformers.cache_utils")


def each(values: Iterable[Any]) -> Iterator[Any]:
    """transformers' caches among these values, those of an encoder-decoder one by one."""
    utils = cache_utils()
    for value in values if utils is not None else ():
        if isinstance(value, utils.EncoderDecoderCache):
            yield from (value.self_attention_cache, value.cross_attention_cache)
        elif isinstance(value, utils.Cache):
            yield value


def to_program(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, their caches with tensors that tell how many tokens they have. Raises ExportError when a
    cache of fixed size has no place for the new ones."""
    utils = cache_utils()
    if utils is None:
        return values
    _check_room(values, utils)
    for cache in each(values.values()):
        for layer in cache.layers:
            if isinstance(layer, utils.StaticSlidingWindowLayer):
                # Eager code stops to count in the tensor when the window is full.
                layer.cumulative_length.clamp_(min=layer.cumulative_length_int)
    return {name: _with_all_positions(value, utils) for name, value in values.items()}


def _check_room(values: dict[str, Any], utils) -> None:
    names = [name for name in ("decoder_input_ids", "input_ids", "inputs_embeds") if values.get(name) is not None]
    for name, cache in values.items():
        cache = cache.self_attention_cache if isinstance(cache, utils.EncoderDecoderCache) else cache
        for layer in cache.layers if isinstance(cache, utils.Cache) and names else ():
            if not isinstance(layer, utils.StaticLayer) or layer.is_sliding or not layer.is_initialized:
                continue
            size, past, new = layer.keys.shape[2], int(layer.cumulative_length), values[names[0]].shape[1]
            if past + new > size:
                raise ExportError(
                    f"[run] '{name}' has {past} tokens and room for {size}: {new} more do not fit. Stop here, or make the "
                    "cache with a larger max_cache_len"
                )


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


def from_program(given: Mapping[str, Any], returned: Any) -> Any:
    """What a program returned, with the caches that it was given (it may have written to them): their layers count what
    their tensors hold, a cache of the same tensors is that cache, and what the program does not give back (see
    `without_given`) is what it was given."""
    utils = cache_utils()
    if utils is None:
        return returned
    outputs = list(returned.values()) if isinstance(returned, dict) else []
    before = [cache for cache in given.values() if isinstance(cache, utils.Cache)]
    # The cache of a first call counts as eager code does.
    for cache in each([*given.values(), *outputs] if before else []):
        for layer in cache.layers:
            if isinstance(layer, utils.StaticSlidingWindowLayer) and layer.is_initialized:
                layer.cumulative_length_int = int(layer.cumulative_length)
            elif isinstance(layer, utils.DynamicSlidingWindowLayer) and layer.is_initialized:
                layer.cumulative_length = layer.keys.shape[-2]
    for name, cache in returned.items() if isinstance(returned, dict) else ():
        if len(before) != 1 or type(cache) is not type(before[0]):
            continue
        if isinstance(cache, utils.EncoderDecoderCache) and _is_empty(cache.cross_attention_cache):
            cache.cross_attention_cache = before[0].cross_attention_cache
        tensors, given_tensors = (_pytree.tree_leaves(value) for value in (cache, before[0]))
        if len(tensors) == len(given_tensors) and all(a is b for a, b in zip(tensors, given_tensors)):
            returned[name] = before[0]
    return returned


def _is_empty(cache: Any) -> bool:
    return not any(layer.is_initialized for layer in cache.layers)


def with_updated(outputs: Any, kwargs: dict[str, Any], given: list[torch.Tensor]) -> Any:
    """What a model returned, with the cache that it was given and has filled where it does not return that: eager code
    sees it in the object that it gave."""
    utils = cache_utils()
    if utils is None or not isinstance(outputs, dict) or not dataclasses.is_dataclass(outputs):
        return outputs
    inputs = {id(tensor) for tensor in given}
    fields = [field.name for field in dataclasses.fields(outputs)]
    for name in ("cache", "past_key_values"):
        cache = kwargs.get(name)
        if name in fields and outputs.get(name) is None and isinstance(cache, utils.Cache):
            if not all(id(tensor) in inputs for tensor in _pytree.tree_leaves(cache)):
                outputs[name] = cache
    return outputs


def without_given(outputs: Any, given: list[torch.Tensor]) -> Any:
    """What a model returned, its encoder-decoder caches without the keys and values of the encoder's output where those
    are inputs: a graph that gave them back would copy them at each step."""
    utils = cache_utils()
    if utils is None or not isinstance(outputs, dict):
        return outputs
    inputs = {id(tensor) for tensor in given}
    for name, cache in outputs.items():
        if not isinstance(cache, utils.EncoderDecoderCache):
            continue
        layers = cache.cross_attention_cache.layers
        if not all(id(layer.keys) in inputs and id(layer.values) in inputs for layer in layers):
            continue
        cache, cross = copy.copy(cache), copy.copy(cache.cross_attention_cache)
        cross.layers = [copy.copy(layer) for layer in layers]
        for layer in cross.layers:
            layer.keys = layer.values = None
            layer.is_initialized = False
        cache.cross_attention_cache = cross
        outputs[name] = cache
    return outputs
