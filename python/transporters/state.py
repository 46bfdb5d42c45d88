"""A module's parameters and buffers for an export, and its Python state kept as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

_CONTAINERS = (dict, list, set)


def collect(model: torch.nn.Module) -> list[tuple[str, torch.Tensor, bool, bool]]:
    """(name, tensor, is a parameter, persistent) of all parameters and buffers; tied ones under each of their names."""
    state = [(name, tensor, True, True) for name, tensor in model.named_parameters(remove_duplicate=False)]
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, buffer in module._buffers.items():
            if buffer is not None:
                full_name = f"{prefix}.{name}" if prefix else name
                state.append((full_name, buffer, False, name not in module._non_persistent_buffers_set))
    return state


@contextlib.contextmanager
def preserved(model: torch.nn.Module) -> Iterator[None]:
    """Whatever the block sets on the module, its submodules and its config is taken back at the end: attributes,
    registered tensors, and the contents of the lists, dicts and sets that are attributes."""
    holders = list(model.modules())
    configs = {
        id(config): config for module in holders if hasattr(config := getattr(module, "config", None), "__dict__")
    }
    holders.extend(configs.values())
    attributes = [(holder.__dict__, dict(holder.__dict__)) for holder in holders]
    contents = {}
    for _, saved in attributes:
        for value in saved.values():
            if isinstance(value, _CONTAINERS):
                contents.setdefault(id(value), (value, value.copy()))
    try:
        yield
    finally:
        for current, saved in attributes:
            current.clear()
            current.update(saved)
        for value, saved in contents.values():
            _restore(value, saved)


def _restore(value, saved) -> None:
    if isinstance(value, list):
        value[:] = saved
    else:
        value.clear()
        value.update(saved)


@contextlib.contextmanager
def module_paths(model: torch.nn.Module) -> Iterator[None]:
    """While it lasts, the engine knows which submodule runs: nodes and errors carry its dotted path."""
    from . import _C

    paths = {}
    for name, module in model.named_modules():
        paths.setdefault(id(module), name)
    original = torch.nn.Module.__call__

    def call(self, *args, **kwargs):
        path = paths.get(id(self))
        if not path:
            return original(self, *args, **kwargs)
        _C.enter_module(path)
        try:
            return original(self, *args, **kwargs)
        finally:
            _C.leave_module()

    torch.nn.Module.__call__ = call
    try:
        yield
    finally:
        torch.nn.Module.__call__ = original
