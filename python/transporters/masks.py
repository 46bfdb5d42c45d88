"""Attention masks that generate() leaves out since they have no padding."""

from __future__ import annotations

from typing import Any

import torch

from .caches import cache_utils, each


_TOKENS = ("input_ids", "inputs_embeds", "audio_input_ids")


def fill(kwargs: dict[str, Any], described: Any) -> dict[str, Any]:
    """{"attention_mask": ...} for a call that has none, or one with kinds left out: all tokens, those of the cache,
    where there is one, and the new ones. `described` is what the export's metadata tells of the mask it takes. {} where
    nothing is missing, and where the arguments do not tell enough."""
    given = kwargs.get("attention_mask")
    new = next((kwargs[name] for name in _TOKENS if kwargs.get(name) is not None), None)
    cache = next(each(kwargs.values()), None)
    if new is None or not isinstance(described, dict):
        return {}
    kinds = described.get("leaves")
    if kinds is None:
        mask = _mask(described, "", new, cache) if given is None and "rank" in described else None
        return {} if mask is None else {"attention_mask": mask}
    if given is not None and not isinstance(given, dict):
        return {}
    masks = dict(given or {})
    for kind, of_kind in kinds.items():
        if masks.get(kind) is None and "rank" in of_kind:
            masks[kind] = _mask(of_kind, kind, new, cache)
    return {"attention_mask": {kind: masks[kind] for kind in kinds if kind in masks}}


def _mask(described: dict[str, Any], kind: str, new: torch.Tensor, cache: Any) -> torch.Tensor | None:
    past, queries = _length(cache), new.shape[1]
    if described["rank"] == 2:
        return torch.ones(new.shape[0], past + queries, dtype=getattr(torch, described["dtype"]))
    if described["rank"] != 4 or cache is None:
        return None
    layer = _static_layer(cache, kind)
    if layer is None and kind != "full_attention" and (kind or _slides(cache)):
        return None
    length, start = layer.get_mask_sizes(queries) if layer is not None else (past + queries, 0)
    columns, rows = torch.arange(length) + start, (torch.arange(queries) + past)[:, None]
    visible = columns <= rows
    if layer is not None and layer.is_sliding:
        visible &= columns > rows - layer.max_cache_len
    visible = visible.expand(new.shape[0], 1, queries, length)
    dtype = getattr(torch, described["dtype"])
    if dtype == torch.bool:
        return visible.contiguous()
    return torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)


def _length(cache: Any) -> int:
    """The tokens in a cache, as far as it tells: states of recurrences alone hold none."""
    layers = getattr(cache, "layers", ())
    return int(cache.get_seq_length()) if any(hasattr(layer, "keys") for layer in layers) else 0


def _slides(cache: Any) -> bool:
    return any(getattr(layer, "is_sliding", False) for layer in getattr(cache, "layers", ()))


def _static_layer(cache: Any, kind: str) -> Any:
    """The first layer of fixed size that a mask of this kind is for; without a kind all layers are alike."""
    layers = [layer for layer in getattr(cache, "layers", ()) if isinstance(layer, cache_utils().StaticLayer)]
    is_sliding = {"full_attention": False, "sliding_attention": True}.get(kind)
    if kind and is_sliding is None:
        return None
    return next((layer for layer in layers if is_sliding in (None, layer.is_sliding)), None)
