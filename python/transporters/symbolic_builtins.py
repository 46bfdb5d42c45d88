"""Python's own functions of numbers, for code that computes with symbolic sizes.

``int(size)``, ``len(tensor)`` and ``max(a, b)`` must return or branch on plain numbers, which would fix a size or
narrow its range. While a model is traced, modules that hold its code see functions of the same names that stay
symbolic.
"""

from __future__ import annotations

import builtins
import functools
import sys
from typing import Any

import torch

from . import _C

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class _NumberType(type):
    """Of classes that stand for int and float: they make symbolic numbers, and check as the originals do."""

    def __instancecheck__(cls, instance) -> bool:
        return builtins.isinstance(instance, cls.original)

    def __subclasscheck__(cls, subclass) -> bool:
        return builtins.issubclass(subclass, cls.original)

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs:
            value = args[0]
            if isinstance(value, torch.Tensor) and _C.is_traced(value):
                value = value.item()
                if isinstance(value, torch.Tensor):  # a real number
                    return value if cls.original is builtins.float else value.to(torch.int64).item()
            if isinstance(value, _SYMBOLS):
                return cls.symbolic(value)
        return cls.original(*args, **kwargs)

    def __getattr__(cls, name):
        return getattr(cls.original, name)

    def __eq__(cls, other) -> bool:
        return other is cls.original or other is cls

    def __hash__(cls) -> int:
        return hash(cls.original)


class _Int(metaclass=_NumberType):
    original = builtins.int
    symbolic = staticmethod(torch.sym_int)


class _Float(metaclass=_NumberType):
    original = builtins.float
    symbolic = staticmethod(torch.sym_float)


def _len(value: Any):
    if isinstance(value, torch.Tensor) and _C.is_traced(value) and value.dim() > 0:
        return value.shape[0]
    return builtins.len(value)


def _is_real_number(value: Any) -> bool:
    """What item() gives for a real number of the data."""
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_floating_point() and _C.is_traced(value)


def _extreme(original, symbolic, of_tensors):
    def extreme(*args, **kwargs):
        values = args
        if len(args) == 1 and isinstance(args[0], (list, tuple, torch.Size)):
            values = args[0]
        if not kwargs and len(values) > 1 and any(_is_real_number(value) for value in values):
            return functools.reduce(of_tensors, (torch.as_tensor(value) for value in values))
        numbers = all(isinstance(v, (builtins.int, builtins.float, *_SYMBOLS)) for v in values)
        if not kwargs and values and numbers and any(isinstance(v, _SYMBOLS) for v in values):
            return functools.reduce(symbolic, values)
        return original(*args, **kwargs)

    return extreme


_REPLACEMENTS = {
    "int": _Int,
    "float": _Float,
    "len": _len,
    "max": _extreme(builtins.max, torch.sym_max, torch.maximum),
    "min": _extreme(builtins.min, torch.sym_min, torch.minimum),
}


# torch takes Python's types for dtypes, but not what stands for them.
_FACTORIES = ("ones", "zeros", "full", "empty", "arange", "tensor", "as_tensor", "ones_like", "zeros_like", "full_like")


def _factory(original):
    @functools.wraps(original)
    def factory(*args, dtype=None, **kwargs):
        return original(*args, dtype=dtype.original if type(dtype) is _NumberType else dtype, **kwargs)

    return factory


def _convert(original):
    """Tensor.to and Tensor.type."""

    @functools.wraps(original)
    def convert(self, *args, **kwargs):
        args = [arg.original if type(arg) is _NumberType else arg for arg in args]
        kwargs = {name: arg.original if type(arg) is _NumberType else arg for name, arg in kwargs.items()}
        return original(self, *args, **kwargs)

    return convert


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    """Replacements for the modules that define the classes of `model` and of its submodules, and for torch functions
    that code there gives types to."""
    names = {cls.__module__ for module in model.modules() for cls in type(module).__mro__}
    names.update(
        name
        for name in sys.modules
        if name in ("transformers.utils.generic", "transformers.vision_utils", "transformers.masking_utils")
    )
    owners = [sys.modules[name] for name in sorted(names) if name in sys.modules and not _is_library(name)]
    return [
        *((owner, name, lambda _, replacement=replacement: replacement)
          for owner in owners
          for name, replacement in _REPLACEMENTS.items()
          if name not in vars(owner)),
        *((torch, name, _factory) for name in _FACTORIES),
        *((torch.Tensor, name, _convert) for name in ("to", "type")),
    ]  # fmt: skip


def _is_library(name: str) -> bool:
    """Modules that know symbolic sizes themselves."""
    return name.split(".")[0] in ("torch", "builtins", "transporters", "typing", "abc", "enum")
