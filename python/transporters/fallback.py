"""Programs that torch traced: ExportedPrograms as input, and torch.export in place of this engine's tracer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

from . import _C, dims, pytrees, registry, state, transformers_support
from ._C import ExportError
from .configs import DynamoConfig
from .tracing import positional_names


def import_program(exported: torch.export.ExportedProgram) -> _C.Program:
    """A program of torch's in this engine's form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pt2"
        torch.export.save(exported, path)
        program = _C.load_program(path)
    # What the file itself says is the first entry, which can be a helper of torch.
    program.architecture = _root_class(exported) or program.architecture
    return program


def _root_class(exported: torch.export.ExportedProgram) -> str:
    """The class of the module that was exported, as torch recorded it with the nodes; "" when there are none."""
    for node in exported.graph.nodes:
        for path, cls in (node.meta.get("nn_module_stack") or {}).values():
            name = cls if isinstance(cls, str) else cls.__name__
            if path == "" and not name.startswith("_empty_nn_module_stack"):
                return name.rsplit(".", 1)[-1]
    return ""


def trace(
    model: torch.nn.Module,
    args: tuple,
    kwargs: dict[str, Any],
    config: DynamoConfig,
    backends: list[str],
    reason: ExportError,
) -> tuple[_C.Program, list[str]]:
    """The program of one call as torch.export traces it, for a model that this engine's tracer refused with `reason`.

    Raises `reason` when torch can't trace it either, with torch's error as its cause.
    """
    flags: dict[str, Any] = {}
    patches = registry.user_patches(backends)
    is_transformers = transformers_support.is_transformers_model(model)
    if is_transformers:
        kwargs, flags = transformers_support.prepare(model, kwargs)
        patches = (
            transformers_support.model_patches(
                model, with_cache=transformers_support.holds_cache([*args, *kwargs.values()]), is_dynamic=False
            )
            + patches
        )
    pytrees.register_caches(model)
    leaves, spec = pytrees.flatten((args, kwargs), "inputs")
    # Own objects: one tensor that is given twice is two inputs.
    leaves = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = _pytree.tree_unflatten(leaves, spec)
    with (
        torch.no_grad(),
        state.preserved(model),
        transformers_support.output_flags(model, flags),
        registry.replaced(patches),
    ):
        try:
            exported = torch.export.export(
                model,
                args,
                kwargs,
                dynamic_shapes=_dynamic_shapes(model, args, kwargs, leaves, config),
                strict=False,
                prefer_deferred_runtime_asserts_over_guards=config.prefer_deferred_runtime_asserts_over_guards,
            )
        except Exception as error:
            reason.add_note(f"torch.export can't trace it either: {type(error).__name__}: {error}")
            raise reason from error
    note = f"traced with torch.export, since this engine's tracer stopped: {str(reason).splitlines()[0]}"
    return import_program(exported), [note]


def _dynamic_shapes(model, args, kwargs, leaves, config: DynamoConfig) -> Any:
    """The config's axes in the form that torch.export takes; None when all are static."""
    if config.dynamic_shapes is not None:
        specs = dims.resolve(config.dynamic_shapes, args, kwargs, positional_names(model, len(args)))
    elif config.dynamic:
        specs = [
            dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if _is_tensor(leaf) else None for leaf in leaves
        ]
    else:
        return None
    shapes = torch.export.ShapesCollection()
    for leaf, spec in zip(leaves, specs):
        if _is_tensor(leaf) and spec is not None:
            shapes[leaf] = _with_front_axes(spec, leaf.dim())
    return shapes.dynamic_shapes(model, args, kwargs) if len(shapes) else None


def _with_front_axes(spec: Any, rank: int) -> Any:
    """Axes counted from the front, Dims in place of their names."""
    entries = spec.items() if hasattr(spec, "items") else enumerate(spec)
    return {
        axis % rank: torch.export.Dim(dim) if isinstance(dim, str) else dim for axis, dim in entries if dim is not None
    }


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor)
