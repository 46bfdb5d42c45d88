"""Flattening what models take and return: tensors and constants, and the tree around them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from typing import Any

import torch
from torch.utils import _pytree

from . import _C
from ._C import ExportError

CONSTANTS = (bool, int, float, str, type(None))
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_leaf(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, *CONSTANTS, *SYMBOLS))


def register_caches(model: torch.nn.Module) -> None:
    """Makes the cache classes that this model may take or return pytree nodes, in the form transformers' exports
    have."""
    if "transformers" not in sys.modules:
        return
    register = _transformers_register()
    from transformers.cache_utils import Cache

    def subclasses(cls):
        for subclass in cls.__subclasses__():
            yield subclass
            yield from subclasses(subclass)

    for cls in subclasses(Cache):
        register(cls)
    for module_name in {type(module).__module__ for module in model.modules()}:
        for _, cls in inspect.getmembers(sys.modules.get(module_name), inspect.isclass):
            if cls.__module__ == module_name and cls.__name__.endswith("Cache"):
                register(cls)


def _transformers_register():
    try:
        from transformers.exporters.exporter_dynamo import register_pytree_node
    except ImportError as error:
        raise ExportError(
            "[signature] caches need a transformers that has transformers.exporters (5.24 is tested); "
            f"{importlib.import_module('transformers').__version__} is installed"
        ) from error
    return register_pytree_node


def _register_class(cls: type, path: str) -> bool:
    """Makes a class whose object was met as a leaf a node. Returns whether it could."""
    if dataclasses.is_dataclass(cls):
        _pytree.register_dataclass(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
        return True
    if issubclass(cls, dict):
        # ModelOutput registers itself; other dictionaries flatten by their keys.
        _pytree.register_pytree_node(
            cls,
            lambda value: (list(value.values()), list(value)),
            lambda values, keys: cls(zip(keys, values)),
            serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
            flatten_with_keys_fn=lambda value: (
                [(_pytree.MappingKey(key), item) for key, item in value.items()],
                list(value),
            ),
        )
        return True
    if "transformers" in sys.modules and hasattr(cls, "__dict__") and cls.__module__ != "builtins":
        _transformers_register()(cls)
        return cls in _pytree.SUPPORTED_NODES
    return False


def flatten(value: Any, what: str) -> tuple[list[Any], _pytree.TreeSpec]:
    """Leaves and tree of a value. Raises ExportError naming `what` for objects that no export can hold."""
    for _ in range(16):  # a newly registered class can hold another unknown one
        leaves, spec = _pytree.tree_flatten(value)
        unknown = {type(leaf) for leaf in leaves if not is_leaf(leaf)}
        if not unknown:
            return leaves, spec
        for cls in unknown:
            if not _register_class(cls, what):
                raise ExportError(
                    f"[signature] {what} hold a {cls.__module__}.{cls.__qualname__}, which an export can't hold; give "
                    "tensors, numbers, strings, None and containers of them, or register the class with "
                    "torch.utils._pytree.register_pytree_node"
                )
    raise ExportError(f"[signature] {what} nest too deeply")


def dumps(spec: _pytree.TreeSpec, what: str) -> str:
    try:
        return _pytree.treespec_dumps(spec)
    except NotImplementedError as error:
        # A named tuple has no name to be saved under until it is given one.
        for cls in _named_tuples(spec):
            _pytree._register_namedtuple(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")
        try:
            return _pytree.treespec_dumps(spec)
        except NotImplementedError:
            raise ExportError(f"[signature] the structure of {what} can't be saved: {error}") from error


def _named_tuples(spec: _pytree.TreeSpec):
    if spec.type is not None and hasattr(spec.context, "_fields"):
        yield spec.context
    for child in spec.children():
        yield from _named_tuples(child)


def loads(text: str) -> _pytree.TreeSpec:
    """Reads a tree back; classes that it names are imported and registered where needed."""
    for module, name in re.findall(r'"type": "((?:\w+\.)*\w+)[.:](\w+)"', text):
        if module == "builtins" or not module:
            continue
        try:
            cls = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        if cls not in _pytree.SUPPORTED_NODES:
            _register_class(cls, name)
    return _pytree.treespec_loads(text)


def leaf_paths(text: str) -> list[str]:
    """Dotted names of the leaves of a saved tree: "logits", "past_key_values.layers.0.keys"."""
    return _C.leaf_paths(text)
