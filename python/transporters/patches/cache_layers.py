"""Cache layers as graphs hold them.

Why: layers with a window count their tokens in a Python number, and take other branches by it, so that a graph would be
right for the sample's number only. While stages are captured and traced, a dynamic layer keeps the keys of all tokens
(its mask has the window), and a static one counts in its tensor `cumulative_length`, which it has anyway.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .. import _C

# Columns of the mask that the caller gives to static layers with a window, while a model is traced.
_mask_length: list[Any] = []
# Ids of the layers that hold what the encoder gave: as long as that is, not as the sample's.
_cross_layers: set[int] = set()


def entries(with_cache: bool = True) -> list[tuple[Any, str, Any]]:
    """(class, method, factory) of the replacements; without caches among the inputs, of those that change nothing that
    a first call returns."""
    from transformers import cache_utils

    states = (cache_utils.LinearAttentionLayer, "update_conv_state", _update_conv_state)
    if not with_cache:
        return [states]

    whole, windowed = cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer
    replaced = [
        (windowed, name, lambda _, name=name: getattr(whole, name))
        for name in ("update", "get_mask_sizes", "get_seq_length")
    ]
    static = cache_utils.StaticSlidingWindowLayer
    replaced += [
        (static, "update", lambda _: _update),
        (static, "get_mask_sizes", lambda _: _mask_sizes),
        (static, "get_seq_length", lambda _: lambda self: _plain(self.cumulative_length)),
    ]
    return [*replaced, states, (cache_utils.StaticLayer, "lazy_initialization", _initialization)]


def _plain(count: torch.Tensor) -> Any:
    """A tensor's number, unless it is traced."""
    return count if _C.is_traced(count) else int(count)


def _update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
    """The buffer holds the last `window` tokens, the first of them at 0 until more have come. Returned are the keys of
    the positions that the mask's columns are for: from the first that the first of the new tokens sees."""
    if not self.is_initialized:
        self.lazy_initialization(key_states, value_states)
    window, new = self.max_cache_len, key_states.shape[-2]
    past = self.cumulative_length.clone()
    self.cumulative_length.add_(new)
    dropped = (past - window).clamp(min=0)  # position of the buffer's first token

    def place(position: torch.Tensor) -> torch.Tensor:
        """Where a position is in buffer and new tokens, one after the other."""
        return torch.where(position < past, position - dropped, window + position - past)

    slots = torch.arange(window, device=past.device)
    kept = slots + (past + new - window).clamp(min=0)
    kept = torch.where(kept < past + new, place(kept), slots)
    length = _mask_length[-1] if _mask_length else _visible(_plain(past), window, new)
    seen = torch.arange(length, device=past.device) + (past - window + 1).clamp(min=0)
    seen = place(torch.minimum(seen, past + new - 1))

    keys = torch.cat([self.keys, key_states], dim=2)
    values = torch.cat([self.values, value_states], dim=2)
    visible = keys.index_select(2, seen), values.index_select(2, seen)
    self.keys.copy_(keys.index_select(2, kept))
    self.values.copy_(values.index_select(2, kept))
    return visible


def _visible(past: Any, window: int, new: Any) -> Any:
    """Columns of the mask, as the layer itself would tell: the window, and more where new tokens go past it."""
    if isinstance(past, torch.Tensor):
        return window - 1 + new
    return max(window, min(past, window - 1) + new)


def _mask_sizes(self, query_length: int):
    past = _plain(self.cumulative_length)
    offset = past - self.max_cache_len + 1
    offset = offset.clamp(min=0) if isinstance(offset, torch.Tensor) else max(offset, 0)
    return _visible(past, self.max_cache_len, query_length), offset


def _initialization(original):
    def lazy_initialization(self, key_states, value_states):
        original(self, key_states, value_states)
        if id(self) in _cross_layers:
            self.keys, self.values = torch.zeros_like(key_states), torch.zeros_like(value_states)

    return lazy_initialization


def _update_conv_state(original):
    """The first states, of a prompt that may be shorter than the convolution: eager code asks whether it is."""

    def update_conv_state(self, conv_states, state_idx=0, conv_kernel_size=None, **kwargs):
        if self.has_previous_state[state_idx] or self.record_past:
            return original(self, conv_states, state_idx, conv_kernel_size=conv_kernel_size, **kwargs)
        if not self.is_conv_states_initialized[state_idx]:
            self.lazy_initialization(conv_states=conv_states, state_idx=state_idx, conv_kernel_size=conv_kernel_size)
        self.has_previous_state[state_idx] = True
        size = self.conv_kernel_size[state_idx]
        self.conv_states[state_idx].copy_(torch.nn.functional.pad(conv_states, (size, 0))[..., -size:])
        # Zeros before it are what a causal convolution puts there itself.
        return conv_states

    return update_conv_state


@contextlib.contextmanager
def of_call(kwargs: dict[str, Any]) -> Iterator[None]:
    """While a call with these arguments is traced, the layers of its caches know its mask and which of them are for the
    encoder's output."""
    from transformers.cache_utils import EncoderDecoderCache

    lengths = [
        length for name in ("decoder_attention_mask", "attention_mask") if (length := _columns(kwargs.get(name)))
    ]
    cross = {
        id(layer)
        for value in kwargs.values()
        if isinstance(value, EncoderDecoderCache)
        for layer in value.cross_attention_cache.layers
    }
    _mask_length.extend(lengths[:1])
    _cross_layers.update(cross)
    try:
        yield
    finally:
        del _mask_length[len(_mask_length) - len(lengths[:1]) :]
        _cross_layers.difference_update(cross)


def _columns(mask: Any) -> Any:
    """Of a mask with a row per query, that of layers with a window where there are several."""
    if isinstance(mask, dict):
        mask = mask.get("sliding_attention", mask.get("chunked_attention"))
    return mask.shape[-1] if isinstance(mask, torch.Tensor) and mask.dim() == 4 else None
