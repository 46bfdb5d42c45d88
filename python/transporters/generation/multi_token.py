"""Decode steps of one token each as one step of several tokens."""

from __future__ import annotations

import copy
from typing import Any

import torch

from .._C import ExportError

# Inputs that hold an entry per token -> the axis of the tokens.
_TOKEN_AXES = {
    "input_ids": 1,
    "inputs_embeds": 1,
    "decoder_input_ids": 1,
    "audio_latents": 1,
    "mm_token_type_ids": 1,
    "token_type_ids": 1,
    "cache_position": 0,
    "position_ids": -1,
    "decoder_position_ids": -1,
}
_MASKS = ("attention_mask", "decoder_attention_mask")


def merged(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The call that these consecutive calls of one token each are together: the first one's cache, all tokens. Raises
    ExportError for steps of more tokens (a model without a cache)."""
    result = dict(steps[0])
    for name, axis in _TOKEN_AXES.items():
        values = [step.get(name) for step in steps]
        if all(isinstance(value, torch.Tensor) for value in values):
            if name.endswith(("input_ids", "inputs_embeds")) and any(value.shape[axis] != 1 for value in values):
                raise ExportError(
                    f"[generation] '{name}' has {values[0].shape[axis]} tokens in a decode step: the model generates "
                    "without a cache, so that its decode stage takes any number as it is"
                )
            result[name] = torch.cat(values, dim=axis)
    for name in _MASKS:
        if name in result:
            result[name] = _merged_mask([step.get(name) for step in steps], [_window_starts(step) for step in steps])
    return result


def check(model: torch.nn.Module, outputs: Any, steps: list[dict[str, Any]]) -> None:
    """Raises ExportError when a model's answer to the tokens together is not the one to the last of them: not every
    model goes on from its cache with several tokens."""
    together = getattr(outputs, "logits", None)
    if together is None:
        return
    with torch.no_grad():
        last = model(**copy.deepcopy(steps[-1])).logits[:, -1]
    difference = (together[:, -1] - last).abs().max()
    if not difference <= 1e-3 * last.abs().max():
        raise ExportError(
            f"[generation] {type(model).__name__} does not go on from its cache with several tokens as with one after the "
            f"other: logits differ by {difference:.3g}; export it without multi_token_decode"
        )


def _merged_mask(masks: list[Any], starts: list[int], is_windowed: bool = True) -> Any:
    """Masks with a row per query stand one below the other, their columns at the position that the first one's begin
    at; of those that only tell padding the last is the longest."""
    if isinstance(masks[0], dict):
        return {key: _merged_mask([mask[key] for mask in masks], starts, key in _WINDOWED) for key in masks[0]}
    if any(mask is None for mask in masks) or masks[-1].dim() != 4:
        return masks[-1]
    shifts = [start - starts[0] if is_windowed else 0 for start in starts]
    columns = max(mask.shape[-1] + shift for mask, shift in zip(masks, shifts))
    hidden = False if masks[0].dtype == torch.bool else torch.finfo(masks[0].dtype).min
    rows = [
        torch.nn.functional.pad(mask, (shift, columns - shift - mask.shape[-1]), value=hidden)
        for mask, shift in zip(masks, shifts)
    ]
    return torch.cat(rows, dim=2)


_WINDOWED = ("sliding_attention", "chunked_attention")


def _window_starts(step: dict[str, Any]) -> int:
    """The position that the first column of a step's mask is for, where layers of its cache have a window."""
    from transformers.cache_utils import EncoderDecoderCache, StaticSlidingWindowLayer

    for cache in step.values():
        cache = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
        for layer in getattr(cache, "layers", ()):
            if isinstance(layer, StaticSlidingWindowLayer):
                return layer.get_mask_sizes(1)[1]
    return 0
