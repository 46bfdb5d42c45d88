"""What extends exports from Python: reversible patches, fixes of the traced graph, ONNX translations and fixes.

Backends: "dynamo", "onnx", "openvino", "executorch"; every export starts with the patches of "dynamo". Each function
here registers for all exports of the process until :func:`unregister`, or until the block of :func:`registrations`
ends. What a registered function raises comes out of ``export`` as it was raised.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import _C
from ._C import ExportError

if TYPE_CHECKING:
    from .graph import GraphNode, GraphProgram, Lowering, OnnxModel, OnnxValue

    NodeFix = Callable[[GraphProgram, GraphNode], bool | None]
    ProgramFix = Callable[[GraphProgram], bool | None]
    Translation = Callable[[Lowering, GraphNode], OnnxValue | list[OnnxValue | None]]
    IrFix = Callable[[OnnxModel], bool | None]

Factory = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[..., Any])

_patches: dict[str, list[tuple[str, Factory]]] = {}
# (function, what takes its registration back), oldest first.
_registered: list[tuple[Callable[..., Any], Callable[[], None]]] = []


def register_patch(backend: str, *paths: str) -> Callable[[Factory], Factory]:
    """Replaces attributes while a model is traced for `backend`.

    Each path is a dotted Python path ("torch.where", "transformers.models.x.modeling_x.Router.forward"); the decorated
    factory receives the original and returns the replacement, both as functions: a static method stays one, and a class
    method's function takes the class first. Originals are back after every export, also a failed one.
    Paths are looked up when an export starts; one whose module is not there is skipped, one whose last names do not
    exist raises ExportError.
    """
    _C.check_backend(backend)
    if not paths:
        raise ExportError("[registry] register_patch needs the dotted paths to patch")
    for path in paths:
        if "." not in path:
            raise ExportError(f"[registry] '{path}' is no dotted path; write the module too, as in 'torch.where'")

    def decorator(factory: Factory) -> Factory:
        entries = _patches.setdefault(backend, [])
        for path in paths:
            entry = (path, factory)
            entries.append(entry)
            _registered.append((factory, functools.partial(entries.remove, entry)))
        return factory

    return decorator


def register_fx_node_fix(backend: str) -> Callable[[F], F]:
    """Applies ``fix(program, node)`` to each node of a graph that was traced for `backend`.

    It may rewrite the graph around the node, and may return whether it did. For "onnx" it runs before decompositions
    and again after them.
    """
    _C.check_backend(backend)
    return _registering(lambda fix: _C.register_node_fix(backend, _name(fix), fix))


def register_fx_program_fix(backend: str) -> Callable[[F], F]:
    """Applies ``fix(program)`` to each program that was traced for `backend`, before the node fixes. It may return
    whether it changed anything."""
    _C.check_backend(backend)
    return _registering(lambda fix: _C.register_program_fix(backend, _name(fix), fix))


def register_onnx_translation(*ops: str) -> Callable[[F], F]:
    """Says in ONNX what ops compute: ``translation(lowering, node)`` returns the value, or a list with one a output.

    An op is "aten::gelu" (all its overloads), "aten::add.Tensor", or one of your own ("mylib::attention"). It wins over
    the built-in translation. ATen ops that libtorch itself decomposes while tracing are not in the graph.
    """
    if not ops:
        raise ExportError("[registry] register_onnx_translation needs the ops to translate, as in 'mylib::attention'")
    return _registering(lambda translation: _C.register_translation(list(ops), translation))


def register_onnx_ir_fix(name: str | None = None) -> Callable[[F], F]:
    """Applies ``fix(model)`` to each ONNX model after the built-in fixes. It may return whether it changed anything."""
    return _registering(lambda fix: _C.register_ir_fix(name or _name(fix), fix))


def unregister(function: Callable[..., Any]) -> None:
    """Takes back everything that this function was registered for; one that was not registered is ignored."""
    _take_back([entry for entry in _registered if entry[0] is function])


@contextlib.contextmanager
def registrations() -> Iterator[None]:
    """What the block registers is taken back at its end."""
    before = list(_registered)
    try:
        yield
    finally:
        _take_back([entry for entry in _registered if not any(entry is other for other in before)])


def _take_back(entries) -> None:
    for entry in entries:
        entry[1]()
    _registered[:] = [entry for entry in _registered if not any(entry is taken for taken in entries)]


def _registering(register: Callable[[Any], int]) -> Callable[[F], F]:
    def decorator(function: F) -> F:
        made = register(function)
        _registered.append((function, lambda: _C.unregister(made)))
        return function

    return decorator


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


# ── Patches ──


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
            own = hasattr(owner, "__dict__") and name in vars(owner)
            raw = inspect.getattr_static(owner, name, None)
            if name == "__code__":  # of a function that others hold by reference
                own, raw = True, owner.__code__
            kind = type(raw) if isinstance(raw, (staticmethod, classmethod)) else None
            # A class method's function, which the replacement can call for any subclass.
            replacement = factory(raw.__func__ if kind is classmethod else getattr(owner, name, None))
            if kind is not None and not isinstance(replacement, kind):
                replacement = kind(replacement)
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
