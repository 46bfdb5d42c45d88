"""Canine's attention within chunks of a sequence whose length is a symbol.

Why: the chunks are cut in a Python loop, so a graph would hold their number. Here every place attends to the whole
sequence under a mask that leaves its own chunk. Sequences of a fixed length keep their loop.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch


def _in_chunks(original):
    @functools.wraps(original)
    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        strides = self.attend_from_chunk_stride, self.attend_to_chunk_stride
        is_plain = strides == (self.attend_from_chunk_width, self.attend_to_chunk_width) and not (
            self.always_attend_to_first_position or self.first_position_attends_to_all or output_attentions
        )
        length = hidden_states.shape[1]
        if not (self.local and is_plain and isinstance(length, torch.SymInt)):
            return original(self, hidden_states, attention_mask, output_attentions)
        places = torch.arange(length, device=hidden_states.device)
        from_chunk, to_chunk = (places // stride for stride in strides)
        # The layer adds (1 - mask) * the least number: minus infinity outside the chunk, also where all of it is padding.
        mask = torch.where(from_chunk[:, None] == to_chunk[None, :], attention_mask.float(), float("-inf"))
        attended = self.self(hidden_states, hidden_states, mask, output_attentions)[0]
        return (self.output(attended, hidden_states),)

    return forward


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    canine = sys.modules.get("transformers.models.canine.modeling_canine")
    return [(canine.CanineAttention, "forward", _in_chunks)] if canine is not None else []
