"""Dynamic axes as torch.export writes them, for the engine: one entry per axis of each leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ._C import ExportError

# (name, min, max) must stay dynamic over that range, "name" may, None is static.
Axis = tuple[str, int, int | None] | str | None

# Roles of the axes of well-known inputs: a name is one symbol wherever the sample sizes agree.
_ROLES = {
    "input_ids": ("batch", "sequence"),
    "attention_mask": ("batch", "sequence"),
    "token_type_ids": ("batch", "sequence"),
    "mm_token_type_ids": ("batch", "sequence"),
    "position_ids": ("batch", "sequence"),
    "inputs_embeds": ("batch", "sequence"),
    "decoder_input_ids": ("batch", "decoder_sequence"),
    "decoder_attention_mask": ("batch", "decoder_sequence"),
    "decoder_inputs_embeds": ("batch", "decoder_sequence"),
    "encoder_hidden_states": ("batch", "encoder_sequence"),
    "encoder_attention_mask": ("batch", "encoder_sequence"),
}


def automatic(path: str, tensor: torch.Tensor) -> list[Axis]:
    """Every axis dynamic where the model allows."""
    roles = _ROLES.get(path, ())
    if path == "position_ids" and tensor.dim() != 2:
        roles = (f"{path}_dim0", *roles) if tensor.dim() == 3 else ()
    return [roles[axis] if axis < len(roles) else f"{path}_dim{axis}" for axis in range(tensor.dim())]


def of_one_token(axes: list[Axis], tensor: torch.Tensor) -> list[Axis]:
    """The axes with those of the new tokens fixed where there is one."""
    return [
        None if axis in ("sequence", "decoder_sequence") and size == 1 else axis
        for axis, size in zip(axes, tensor.shape)
    ]


def _to_axis(dim: Any, path: str, axis: int) -> Axis:
    from torch.export import Dim

    if dim is None or dim is Dim.STATIC or isinstance(dim, int):
        return None
    if dim is Dim.AUTO:
        return f"{path}_dim{axis}"
    if dim is Dim.DYNAMIC:
        return (f"{path}_dim{axis}", 0, None)
    if isinstance(dim, str):
        return (dim, 0, None)
    name = getattr(dim, "__name__", None)
    if name is None:
        raise _wrong(path, f"axis {axis} is given {dim!r}; use a torch.export.Dim, Dim.AUTO, Dim.DYNAMIC or None")
    if hasattr(dim, "fn"):  # 2*batch + 1: the engine finds the relation itself
        return f"{path}_dim{axis}"
    high = getattr(dim, "max", None)
    unbounded = high is None or high >= 2**31 - 2
    return (name, int(getattr(dim, "min", 0)), None if unbounded else int(high))


def _wrong(path: str, message: str) -> ExportError:
    return ExportError(f"[dynamic shapes] input '{path}': {message}")


def _axes_of(tensor: torch.Tensor, spec: Any, path: str) -> list[Axis]:
    rank = tensor.dim()
    axes: list[Axis] = [None] * rank
    if spec is None:
        return axes
    if isinstance(spec, Mapping):
        for axis, dim in spec.items():
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise _wrong(path, f"has rank {rank}, but a Dim is given for axis {axis!r}")
            axes[axis % rank] = _to_axis(dim, path, axis % rank)
        return axes
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        if len(spec) != rank:
            raise _wrong(path, f"has rank {rank}, but {len(spec)} axes are given")
        return [_to_axis(dim, path, axis) for axis, dim in enumerate(spec)]
    raise _wrong(path, f"axes are an object of axis to Dim or a sequence, not {type(spec).__name__}")


def resolve(dynamic_shapes: Any, args: tuple, kwargs: dict[str, Any], names: list[str]) -> list[Any]:
    """One spec per leaf of (args, kwargs), in their order. `names` are the forward's positional parameter names.

    Raises ExportError when the spec's nesting does not fit the inputs.
    """
    inputs = dict(zip(names, args)) | kwargs
    if isinstance(dynamic_shapes, Mapping):
        unknown = [name for name in dynamic_shapes if name not in inputs]
        if unknown:
            raise ExportError(f"[dynamic shapes] there is no input {unknown[0]!r}; the inputs are {', '.join(inputs)}")
        by_input = [dynamic_shapes.get(name) for name in inputs]
    elif isinstance(dynamic_shapes, Sequence):
        if len(dynamic_shapes) != len(inputs):
            raise ExportError(
                f"[dynamic shapes] axes are given for {len(dynamic_shapes)} inputs, but there are {len(inputs)}"
            )
        by_input = list(dynamic_shapes)
    else:
        raise ExportError(f"[dynamic shapes] a dict or a sequence is expected, not {type(dynamic_shapes).__name__}")
    leaves: list[Any] = []
    for (name, value), spec in zip(inputs.items(), by_input):
        leaves.extend(_spread(value, spec, name))
    return leaves


def _spread(value: Any, spec: Any, path: str) -> list[Any]:
    if isinstance(value, torch.Tensor) or type(value) not in _pytree.SUPPORTED_NODES:
        return [spec]
    children, tree = _pytree.tree_flatten(value, is_leaf=lambda item: item is not value)
    if spec is None:
        return (
            [None] * tree.num_leaves
            if all(isinstance(c, torch.Tensor) for c in children)
            else [leaf for child in children for leaf in _spread(child, None, path)]
        )
    if isinstance(value, Mapping) and isinstance(spec, Mapping):
        specs = [spec.get(key) for key in value]
    elif isinstance(spec, Mapping) and not all(isinstance(key, int) for key in spec):
        specs = list(spec.values())
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        specs = list(spec)
    else:
        raise _wrong(path, f"is a {type(value).__name__}; give its axes nested the same way")
    if len(specs) != len(children):
        raise _wrong(path, f"has {len(children)} parts, but axes are given for {len(specs)}")
    return [leaf for child, part in zip(children, specs) for leaf in _spread(child, part, path)]


def to_axes(leaf: Any, spec: Any, path: str) -> list[Axis]:
    """The axes of one leaf; constants have none."""
    return _axes_of(leaf, spec, path) if isinstance(leaf, torch.Tensor) else []
