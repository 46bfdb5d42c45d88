"""Recurrences along a sequence.

Why: models compute them in a Python loop over the sequence, so a graph would hold its length, and each of its steps.
Steps that can be combined in any grouping are combined over distances of 1, 2, 4, ... instead (Hillis and Steele,
"Data parallel algorithms", 1986): for a symbolic length as many times as the longest sequence needs, which the
program checks.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

from ..registry import replaced
from . import rewriting
from .vision_grids import module_names

LONGEST = 1 << 17  # of a symbolic length


def associative_scan(combine: Callable, steps: tuple[torch.Tensor, ...], dim: int, **_) -> tuple[torch.Tensor, ...]:
    """For each place along `dim`, all steps up to it combined. combine(earlier, later) is associative."""
    dim = dim % steps[0].dim()
    length = steps[0].shape[dim]
    longest = LONGEST if isinstance(length, torch.SymInt) else length
    torch._check(length <= longest, lambda: f"a recurrence takes at most {longest} steps")
    places = torch.arange(length, device=steps[0].device)
    distance = 1
    while distance < longest:
        earlier = tuple(step.index_select(dim, (places - distance).clamp(min=0)) for step in steps)
        has_earlier = (places >= distance).view(-1, *[1] * (steps[0].dim() - dim - 1))
        steps = tuple(torch.where(has_earlier, new, old) for new, old in zip(combine(earlier, steps), steps))
        distance *= 2
    return steps


def _linear(earlier, later):
    """Of h = factor * h + addition."""
    return earlier[0] * later[0], later[0] * earlier[1] + later[1]


def _selective_scan(original):
    """Mamba: its own branch for torch's associative scan, with the one above."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def mamba_selective_scan(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        # The package has a function of the module's name.
        library = importlib.import_module("torch._higher_order_ops.associative_scan")
        bound.arguments.update(use_mambapy=False, use_associative_scan=True)
        module = sys.modules[inspect.unwrap(original).__module__]
        branch = [
            (library, "associative_scan", lambda _: associative_scan),
            (module, "is_torchdynamo_compiling", lambda _: lambda: True),
            (module, "is_torchdynamo_exporting", lambda _: lambda: False),
        ]
        with replaced(branch):
            return original(*bound.args, **bound.kwargs)

    return mamba_selective_scan


def _rnn_scan(original):
    """Recurrent Gemma."""

    @functools.wraps(original)
    def scan(self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype=torch.float32):
        if hidden_states.shape[1] == 1:
            return original(self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype)
        gates, additions = (recurrent_gate * ~reset).to(acc_dtype), hidden_states.to(acc_dtype)
        factors, states = associative_scan(_linear, (gates, additions), dim=1)
        if recurrent_states is not None:
            states = states + factors * recurrent_states[:, None]
        return states.to(hidden_states.dtype), states[:, -1]

    return scan


def _weighted(earlier, later):
    """Of sums weighted by exponentials, each kept relative to the largest exponent so far (log decay, exponent,
    numerator, denominator)."""
    largest = torch.maximum(earlier[1] + later[0], later[1])
    old, new = (earlier[1] + later[0] - largest).exp(), (later[1] - largest).exp()
    sums = (old * before + new * added for before, added in zip(earlier[2:], later[2:]))
    return (earlier[0] + later[0], largest, *sums)


def _rwkv(original):
    """RWKV: an average weighted by keys, which decays with the distance."""

    @functools.wraps(original)
    def rwkv_linear_attention_cpu(time_decay, time_first, key, value, state=None, return_state=False):
        exponents, values = key.float(), value.float()
        if state is None:
            zeros = torch.zeros_like(exponents[:, 0])
            state = [zeros, zeros, zeros - 1e38]
        else:
            return_state = True
        numerator, denominator, largest = (part[:, None].float() for part in state)
        decay = (-torch.exp(time_decay.float())).expand_as(exponents)
        steps = associative_scan(_weighted, (decay, exponents, values, torch.ones_like(values)), dim=1)
        start = (torch.zeros_like(largest), largest, numerator, denominator)
        _, largests, numerators, denominators = _weighted(start, steps)
        before = [
            torch.cat([first, rest[:, :-1]], dim=1)
            for first, rest in zip(start[1:], (largests, numerators, denominators))
        ]
        no_decay = torch.zeros_like(exponents)
        now = (no_decay, exponents + time_first, values, torch.ones_like(values))
        _, _, above, below = _weighted((no_decay, *before), now)
        state = [numerators[:, -1], denominators[:, -1], largests[:, -1]] if return_state else None
        return (above / below).to(key.dtype), state

    return rwkv_linear_attention_cpu


class _CutAlways(ast.NodeTransformer):
    """Mamba 2 asks whether its last chunk was padded before it cuts that off; the cut leaves whole chunks as they
    are."""

    def visit_If(self, node):
        return node.body if ast.unparse(node.test) == "pad_size > 0" else node


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = []
    for module in (sys.modules[name] for name in module_names(model) if name in sys.modules):
        names = vars(module)
        for name, factory in (("mamba_selective_scan", _selective_scan), ("rwkv_linear_attention_cpu", _rwkv)):
            if callable(names.get(name)):
                found.append((module, name, factory))
        if callable(names.get("mamba2_chunk_scan")):
            found += rewriting.entries(names["mamba2_chunk_scan"], _CutAlways)
        griffin = names.get("RecurrentGemmaRglru")
        if griffin is not None:
            found.append((griffin, "_rnn_scan", _rnn_scan))
    return found
