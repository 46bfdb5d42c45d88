"""Linear attention with the gated delta rule, for sequences whose length is a symbol.

Why: the state goes from chunk to chunk in a Python loop, so a graph would hold the number of chunks. A sequence in a
single chunk has no such loop; its triangular system is solved by one op. That takes memory for the square of the length,
as attention does. Sequences of a fixed length keep their chunks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import torch

from ..registry import replaced
from .vision_grids import module_names


def _in_one_chunk(original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def chunk_gated_delta_rule(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        length = bound.arguments["key"].shape[1]
        if not isinstance(length, torch.SymInt):
            return original(*args, **kwargs)
        bound.arguments["chunk_size"] = length
        module = sys.modules[original.__module__]
        # Exports for some targets avoid the solver; with it the loop over the rows of a chunk goes too.
        with replaced([(module, "is_torchdynamo_exporting", lambda _: lambda: False)]):
            return original(*bound.args, **bound.kwargs)

    return chunk_gated_delta_rule


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    modules = [sys.modules[name] for name in module_names(model) if name in sys.modules]
    name = "torch_chunk_gated_delta_rule"
    return [(module, name, _in_one_chunk) for module in modules if callable(vars(module).get(name))]
