"""Rotary embeddings whose base grows with the length (rope type "dynamic").

Why: the module keeps the frequencies of the longest input so far and branches on the largest position, so a graph would
hold the branch that the sample took. The same frequencies are a function of the length: those of the beginning up to
`max_position_embeddings`, then the grown ones, as a model gives that has not seen longer inputs before.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch


def _forward(original):
    inner = inspect.unwrap(original)

    @functools.wraps(original)
    def forward(self, x, position_ids, layer_type=None):
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        layer = {} if layer_type is None else {"layer_type": layer_type}
        rope_type = self.rope_type if layer_type is None else self.rope_type[layer_type]
        if "dynamic" not in rope_type:
            return original(self, x, position_ids, **layer)
        name = "inv_freq" if layer_type is None else f"{layer_type}_inv_freq"
        length = position_ids.max() + 1
        grown, self.attention_scaling = ROPE_INIT_FUNCTIONS[rope_type](self.config, x.device, seq_len=length, **layer)
        start = getattr(self, name.replace("inv_freq", "original_inv_freq"))
        kept = getattr(self, name)
        setattr(self, name, torch.where(length > self.original_max_seq_len, grown, start))
        try:
            return inner(self, x, position_ids, **layer)
        finally:
            setattr(self, name, kept)

    return forward


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    def is_dynamic(module):
        kinds = getattr(module, "rope_type", "")
        return any("dynamic" in str(kind) for kind in (kinds.values() if isinstance(kinds, dict) else [kinds]))

    classes = {type(module): None for module in model.modules() if is_dynamic(module)}
    return [(cls, "forward", _forward) for cls in classes]
