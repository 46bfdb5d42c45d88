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
            raise ExportError(f"[generation] {type(module).__name__} is called with {len(value)} arguments without names")
        else:
            named[name] = value
    return named


@contextlib.contextmanager
def recorded(modules: dict[str, torch.nn.Module]) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """While it lasts, keeps copies of the keyword arguments of each call of these modules, taken before the call: caches
    change in it."""
    calls: dict[str, list[dict[str, Any]]] = {name: [] for name in modules}

    def recorder(name: str):
        def record(module, args, kwargs):
            named = {key: value for key, value in as_kwargs(module, args, kwargs).items() if key not in _HINTS}
            # One copy for all, so that what is shared (a cache and its layers) stays shared.
            calls[name].append(copy.deepcopy(named))
            return (), named

        return record

    handles = [module.register_forward_pre_hook(recorder(name), with_kwargs=True) for name, module in modules.items()]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
