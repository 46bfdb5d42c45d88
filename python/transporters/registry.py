"""What extends exports from Python: reversible patches, fixes of the traced graph, ONNX translations.

Backends: "dynamo", "onnx", "openvino", "executorch"; every export starts with the patches of "dynamo".
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import _C
from ._C import ExportError

Factory = Callable[[Any], Any]

_patches: dict[str, list[tuple[str, Factory]]] = {}


def register_patch(backend: str, *paths: str) -> Callable[[Factory], Factory]:
    """Replaces attributes while a model is traced for `backend`.

    Each path is a dotted Python path ("torch.where", "transformers.models.x.modeling_x.Router.forward"); the decorated
    factory receives the original and returns the replacement. Originals are back after every export, also a failed one.
    Paths are looked up when an export starts; one whose module is not there is skipped, one whose last names do not exist
    raises ExportError.
    """
    _C.check_backend(backend)
    if not paths:
        raise ExportError("[registry] register_patch needs the dotted paths to patch")

    def decorator(factory: Factory) -> Factory:
        for path in paths:
            if "." not in path:
                raise ExportError(f"[registry] '{path}' is no dotted path; write the module too, as in 'torch.where'")
            _patches.setdefault(backend, []).append((path, factory))
        return factory

    return decorator


def unregister_patch(factory: Factory) -> None:
    """Takes back everything that this factory was registered for."""
    for entries in _patches.values():
        entries[:] = [entry for entry in entries if entry[1] is not factory]


def register_fx_node_fix(backend: str):
    raise NotImplementedError


def register_fx_program_fix(backend: str):
    raise NotImplementedError


def _owner(path: str) -> tuple[Any, str] | None:
    """The object that has the attribute a path names, or None when its module is not there."""
    names = path.split(".")
    for count in range(len(names) - 1, 0, -1):
        module_name = ".".join(names[:count])
        try:
            owner = sys.modules.get(module_name) or importlib.import_module(module_name)
        except ImportError:
            continue
        for name in names[count:-1]:
            if not hasattr(owner, name):
                raise ExportError(f"[patches] '{path}' is registered, but {module_name} has no '{name}'")
            owner = getattr(owner, name)
        if not hasattr(owner, names[-1]):
            raise ExportError(f"[patches] '{path}' is registered, but there is no '{names[-1]}' to replace")
        return owner, names[-1]
    return None


@contextlib.contextmanager
def replaced(entries: list[tuple[Any, str, Factory]]) -> Iterator[None]:
    """Puts replacements in place of (owner, attribute) for the block; later entries see earlier ones as originals."""
    undo: list[tuple[Any, str, Any, bool]] = []
    try:
        for owner, name, factory in entries:
            own = name in vars(owner) if hasattr(owner, "__dict__") else False
            raw = vars(owner)[name] if own else None
            if name == "__code__":
                own, raw = True, owner.__code__
            replacement = factory(getattr(owner, name, None))
            if isinstance(raw, staticmethod) and not isinstance(replacement, staticmethod):
                replacement = staticmethod(replacement)
            undo.append((owner, name, raw, own))
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, raw, own in reversed(undo):
            if own:
                setattr(owner, name, raw)
            else:
                delattr(owner, name)


def user_patches(backends: list[str]) -> list[tuple[Any, str, Factory]]:
    """Registered patches of these backends as (owner, attribute, factory)."""
    entries = []
    for backend in backends:
        for path, factory in _patches.get(backend, []):
            owner = _owner(path)
            if owner is not None:
                entries.append((*owner, factory))
    return entries
