"""What modules are called with while a model generates."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Iterator
from typing import Any

import torch

from .._C import ExportError

# Hints of the generation loop: a graph that followed them would answer for some positions only.
_HINTS = ("logits_to_keep", "num_logits_to_keep")


def _is_hint(name: str, value: Any) -> bool:
    from transformers import GenerationConfig

    return name in _HINTS or isinstance(value, GenerationConfig)


# Module -> the keyword arguments of each of its calls.
Calls = dict[torch.nn.Module, list[dict[str, Any]]]


def as_kwargs(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call under the names of forward's parameters. Raises ExportError when one has no name."""
    signature = inspect.signature(module.forward)
    bound = signature.bind(*args, **kwargs)
    named = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            raise ExportError(
                f"[generation] {type(module).__name__} is called with {len(value)} arguments without names"
            )
        else:
            named[name] = value
    return named


@contextlib.contextmanager
def recorded(modules: list[torch.nn.Module]) -> Iterator[Calls]:
    """While it lasts, keeps copies of the keyword arguments of each call of these modules, taken before the call:
    caches change in it."""
    calls: Calls = {module: [] for module in modules}

    def record(module, args, kwargs):
        named = {key: value for key, value in as_kwargs(module, args, kwargs).items() if not _is_hint(key, value)}
        # One copy for all, so that what is shared (a cache and its layers) stays shared.
        calls[module].append(copy.deepcopy(named))
        return (), named

    handles = [module.register_forward_pre_hook(record, with_kwargs=True) for module in calls]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
