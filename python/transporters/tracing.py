"""Running a Python model under the engine's tracer."""

from __future__ import annotations

import contextlib
import inspect
import json
import linecache
import os
from collections.abc import Iterator
from typing import Any

import torch

from . import (
    _C,
    cache_axes,
    caches,
    dims,
    pytrees,
    registry,
    state,
    symbolic_builtins,
    torch_patches,
    transformers_support,
)
from ._C import ExportError
from .configs import DynamoConfig
from .patches.pieces import settled


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    """Models ask torch.compiler whether they are exported, to take their export-friendly branches."""
    compiler = torch.compiler
    saved = compiler._is_exporting_flag, compiler._is_compiling_flag
    compiler._is_exporting_flag = compiler._is_compiling_flag = True
    try:
        yield
    finally:
        compiler._is_exporting_flag, compiler._is_compiling_flag = saved


def positional_names(model: torch.nn.Module, count: int) -> list[str]:
    """Names of the first `count` parameters of forward."""
    if count == 0:
        return []
    parameters = inspect.signature(model.forward).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = [p.name for p in parameters if p.kind == p.VAR_POSITIONAL]
    while rest and len(names) < count:
        names.append(f"{rest[0]}_{len(names)}")
    if len(names) < count:
        raise ExportError(
            f"[signature] {type(model).__name__}.forward takes {len(names)} positional arguments, {count} are given"
        )
    return names[:count]


def engine_config(config: DynamoConfig) -> str:
    return json.dumps(
        {
            "prefer_deferred_runtime_asserts_over_guards": config.prefer_deferred_runtime_asserts_over_guards,
            "strict": config.strict,
        }
    )


def _leaf_names(in_spec: str, positional: list[str]) -> list[str]:
    """Dotted paths of the leaves of (args, kwargs), positional arguments under their parameters' names."""
    names = []
    for path in pytrees.leaf_paths(in_spec):
        first, _, rest = path.partition(".")
        if first == "0" and rest:
            index, _, rest = rest.partition(".")
            names.append(positional[int(index)] + (f".{rest}" if rest else ""))
        else:
            names.append(rest)
    return names


def _sample(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        if leaf.device.type not in ("cpu", "meta"):
            raise ExportError(
                f"[signature] an input is on {leaf.device}; move model and inputs to the CPU for the export"
            )
        return leaf.detach().contiguous()
    return leaf


def _automatic_axes(
    leaves: list[Any], paths: list[str], kwargs: dict[str, Any], one_token: bool
) -> list[list[dims.Axis]]:
    roles = cache_axes.axis_names(kwargs)
    one_token = one_token or cache_axes.go_on_token_by_token(kwargs)
    axes = []
    for leaf, path in zip(leaves, paths):
        of_leaf = (roles.get(path) or dims.automatic(path, leaf)) if isinstance(leaf, torch.Tensor) else []
        axes.append(dims.of_one_token(of_leaf, leaf) if one_token and of_leaf else of_leaf)
    return axes


def trace(
    model: torch.nn.Module,
    args: tuple,
    kwargs: dict[str, Any],
    config: DynamoConfig,
    backends: list[str],
    one_token: bool = False,
) -> tuple[_C.Program, list[str]]:
    """The program of one call model(*args, **kwargs), and what the trace took for granted. The model is left as it was.

    one_token: where `dynamic` makes axes dynamic, a single new token stays one.

    Raises ExportError naming stage, op, module path and the model's source line.
    """
    flags: dict[str, Any] = {}
    is_transformers = transformers_support.is_transformers_model(model)
    if is_transformers:
        kwargs, flags = transformers_support.prepare(model, kwargs)
    pytrees.register_caches(model)

    leaves, spec = pytrees.flatten((args, kwargs), "inputs")
    in_spec = pytrees.dumps(spec, "the inputs")
    positional = positional_names(model, len(args))
    paths = _leaf_names(in_spec, positional)
    if config.dynamic_shapes is not None:
        specs = dims.resolve(config.dynamic_shapes, args, kwargs, positional)
        axes = [dims.to_axes(leaf, spec, path) for leaf, spec, path in zip(leaves, specs, paths)]
    elif config.dynamic:
        axes = _automatic_axes(leaves, paths, kwargs, one_token)
    else:
        axes = [[None] * leaf.dim() if isinstance(leaf, torch.Tensor) else [] for leaf in leaves]
    samples = [_sample(leaf) for leaf in leaves]

    def forward(tensors: list[torch.Tensor]):
        remaining = iter(tensors)
        traced = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        call_args, call_kwargs = torch.utils._pytree.tree_unflatten(traced, spec)
        with state.preserved(model), transformers_support.traced_call(is_transformers, call_kwargs):
            outputs = settled(model(*call_args, **call_kwargs))
        outputs = caches.with_updated(outputs, call_kwargs, tensors)
        if "onnx" in backends:
            outputs = caches.without_given(outputs, tensors)
        out_leaves, out_spec = pytrees.flatten(outputs, "outputs")
        dumped = pytrees.dumps(out_spec, "the outputs")
        return list(zip(pytrees.leaf_paths(dumped), out_leaves)), dumped

    is_dynamic = any(axis is not None for leaf_axes in axes for axis in leaf_axes)
    # Where all sizes are fixed, numbers of the data are still symbolic.
    patches = torch_patches.entries() + symbolic_builtins.entries(model)
    if is_transformers:
        patches += transformers_support.model_patches(
            model,
            with_cache=transformers_support.holds_cache([*args, *kwargs.values()]),
            is_dynamic=is_dynamic,
        )
    patches += registry.user_patches(backends)
    with (
        torch.no_grad(),
        state.preserved(model),
        transformers_support.output_flags(model, flags),
        registry.replaced(patches),
        state.module_paths(model),
        _exporting(),
    ):

        def attempt(axes):
            return _C.trace(
                forward=forward,
                inputs=list(zip(paths, samples, axes)),
                state=state.collect(model),
                in_spec=in_spec,
                architecture=type(model).__name__,
                config=engine_config(config),
                backends=backends,
                is_training=any(module.training for module in model.modules()),
            )

        try:
            return attempt(axes)
        except Exception as error:
            for other, changes in _fewer_symbols(axes, samples, paths):
                with contextlib.suppress(Exception):
                    program, notes = attempt(other)
                    return program, [*notes, *(f"{change}: {_first_line(error)}" for change in changes)]
            raise _located(error) from error


def _fewer_symbols(axes: list, samples: list, paths: list[str]) -> Iterator[tuple[list, list[str]]]:
    """Axes that leave a trace fewer symbols, and what they take for granted, for models that refuse all of them: the
    first axes of equally many samples are one, and axes of size 1, which a trace takes as larger, stay 1 (channels of
    audio, say), first those behind the first axis. Axes that the caller asked for stay as they are."""
    shared, sharing = _one_batch(axes, samples, paths)
    tried = [axes]
    for start, changed, changes in ((None, shared, sharing), (1, axes, []), (1, shared, sharing), (0, axes, [])):
        if start is not None:
            changed, fixed = _without_single(changed, samples, paths, start)
            changes = [*changes, *fixed]
        if changed not in tried:
            tried.append(changed)
            yield changed, changes


def _one_batch(axes: list, samples: list, paths: list[str]) -> tuple[list, list[str]]:
    first = {index: sample.shape[0] for index, (leaf_axes, sample) in enumerate(zip(axes, samples))
             if leaf_axes and isinstance(leaf_axes[0], str)}  # fmt: skip
    if not first:
        return axes, []
    size = next(iter(first.values()))
    same = [index for index, other in first.items() if other == size]
    names = [axes[index][0] for index in same]
    name = "batch" if "batch" in names else names[0]
    changed = [[name, *leaf_axes[1:]] if index in same else leaf_axes for index, leaf_axes in enumerate(axes)]
    return changed, [f"axis 0 of '{paths[index]}' is taken for '{name}'" for index in same if axes[index][0] != name]


def _without_single(axes: list, samples: list, paths: list[str], start: int) -> tuple[list, list[str]]:
    changed, fixed = [], []
    for leaf_axes, sample, path in zip(axes, samples, paths):
        sizes = sample.shape if isinstance(sample, torch.Tensor) else ()
        is_fixed = [isinstance(axis, str) and size == 1 and dim >= start
                    for dim, (axis, size) in enumerate(zip(leaf_axes, sizes))]  # fmt: skip
        changed.append([None if fix else axis for axis, fix in zip(leaf_axes, is_fixed)])
        fixed += [f"axis {dim} of '{path}' was fixed to 1" for dim, fix in enumerate(is_fixed) if fix]
    return changed, fixed


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# ── Errors ──


def _located(error: Exception) -> ExportError:
    """The error as ExportError, with the innermost line of the user's code that it passed."""
    message = str(error)
    if not isinstance(error, ExportError) and not message.startswith("["):
        message = f"[trace] {type(error).__name__}: {message}"
    line = _user_line(error.__traceback__)
    if line:
        message += f"\n  at {line}"
    hint = _hint(message)
    if hint:
        message += f"\n  {hint}"
    located = ExportError(message)
    for name in ("stage", "op", "module"):
        setattr(located, name, getattr(error, name, ""))
    located.source = line
    return located


def _user_line(traceback) -> str:
    own = os.path.dirname(os.path.realpath(__file__)) + os.sep
    linked = os.path.dirname(__file__) + os.sep
    library = os.path.dirname(torch.__file__) + os.sep
    line = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith((own, linked, library, "<")):
            text = linecache.getline(file, traceback.tb_lineno).strip()
            line = f"{file}:{traceback.tb_lineno}: {text}"
        traceback = traceback.tb_next
    return line


_HINTS = (
    ("flash_attn", "load the model with attn_implementation='sdpa' or 'eager': flash attention has no export"),
    ("data-dependent", "the branch depends on values, not sizes: register a patch for the method, or use torch.where"),
)


def _hint(message: str) -> str:
    return next((f"hint: {hint}" for mark, hint in _HINTS if mark in message), "")
