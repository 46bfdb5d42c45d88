"""What exports of transformers' models need of transformers itself."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import torch

from . import patches
from .patches import cache_layers


OUTPUT_FLAGS = ("use_cache", "output_attentions", "output_hidden_states", "return_dict", "return_loss")

# What they refuse, as they export no losses.
_LABELS = ("labels", "future_values", "return_loss")

# What transformers' exporters compute from image grids ahead of the trace, and this package's patches within it: a
# program that takes what the model takes serves other images without that.
_TRACED = frozenset(
    ("position_ids", "cu_seqlens", "max_seqlen", "window_index", "cu_window_seqlens", "max_window_seqlen",
     "bilinear_indices", "bilinear_weights", "interp_indices", "interp_weights", "frame_index", "temporal_merge_index")
)  # fmt: skip


def version() -> str:
    """Of the transformers that is loaded."""
    return sys.modules["transformers"].__version__


def is_transformers_model(model: torch.nn.Module) -> bool:
    modeling = sys.modules.get("transformers.modeling_utils")
    return modeling is not None and isinstance(model, modeling.PreTrainedModel)


def prepare(model: torch.nn.Module, inputs: MutableMapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(inputs for forward, output flags): flags taken out, values that the model's forward would otherwise compute from
    the data of its inputs added where no patch traces that computation. As in transformers' exporters, `inputs` itself
    is changed, so that the caller can call the exported program with it. Labels, which those refuse, stay: a model that
    is called with them is exported with its loss."""
    from transformers.exporters.utils import prepare_for_export

    given = dict(inputs)
    labels = {name: inputs.pop(name) for name in _LABELS if name in inputs}
    with output_flags(model, {"return_loss": False}):
        _, prepared, flags = prepare_for_export(model, inputs)
    if "return_loss" in labels:
        flags["return_loss"] = labels.pop("return_loss")
    for values in (inputs, prepared):
        values.update(labels)
        # In the order that the caller gave them, which is that of the program's inputs.
        for name in [*(name for name in given if name in values), *(name for name in values if name not in given)]:
            values[name] = values.pop(name)
    traced = _TRACED if "grid_thw" in given or "target_sizes" in given else frozenset()
    if hasattr(model, "get_rope_index"):
        traced = {*traced, "position_ids"} if patches.traces_rope_index(model) else traced - {"position_ids"}
    for name, value in given.items():
        if isinstance(value, torch.Tensor) and name in inputs and not isinstance(inputs[name], torch.Tensor):
            # Numbers would fix what the caller can still choose; this engine reads them from the tensor.
            inputs[name] = prepared[name] = value
    for name in traced - given.keys():
        inputs.pop(name, None)
        prepared.pop(name, None)
    return dict(prepared), flags


@contextlib.contextmanager
def output_flags(model: torch.nn.Module, flags: dict[str, Any]) -> Iterator[None]:
    """Sets flags that the caller gave as inputs on the model's config for the block."""
    config = getattr(model, "config", None)
    known = {name: value for name, value in flags.items() if value is not None and hasattr(config, name)}
    saved = {name: getattr(config, name) for name in known}
    for name, value in known.items():
        setattr(config, name, value)
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(config, name, value)


def holds_cache(inputs: Iterable[Any]) -> bool:
    from transformers.exporters.exporter_dynamo import is_cache_object

    return any(is_cache_object(value) for value in inputs)


def traced_call(is_transformers: bool, kwargs: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """For the time that a call with these arguments is traced."""
    return cache_layers.of_call(kwargs) if is_transformers else contextlib.nullcontext()


def model_patches(model: torch.nn.Module, with_cache: bool, is_dynamic: bool) -> list[tuple[Any, str, Any]]:
    """What is replaced while this model is traced: the patches of this package, and where it has none, transformers'
    own (registered where its Dynamo exporter is defined) for the modules that are loaded. Its patches of torch are not
    needed: this engine sees torch's ops themselves. Those of cache layers are for caches that are inputs: what a first
    call returns stays as eager returns it."""
    import transformers.exporters.exporter_dynamo  # noqa: F401  registers them
    from transformers.exporters import utils

    ours = patches.entries(model) + cache_layers.entries(with_cache)
    replaced = {(owner, attribute) for owner, attribute, _ in ours}
    entries = []
    for path, attribute, factory in getattr(utils, "_PATCHES", {}).get("dynamo", []):
        if path.startswith("transformers.cache_utils."):
            continue
        owner = _loaded(path)
        if owner is not None and hasattr(owner, attribute) and (owner, attribute) not in replaced:
            entries.append((owner, attribute, factory))
    if is_dynamic:
        entries.append((torch.jit, "is_tracing", _is_tracing))
        # Bound by name where they are used; int() of a size must stay symbolic there too.
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("transformers.") and module is not None:
                names = vars(module)
                if "torch_int" in names:
                    entries.append((module, "torch_int", lambda _: _torch_int))
                if "torch_float" in names:
                    entries.append((module, "torch_float", lambda _: _torch_float))
    return entries + ours


def _is_tracing(original):
    """Models interpolate position embeddings whatever the size when they are traced, so that other image sizes work."""

    def is_tracing():
        return original() or "interpolate" in sys._getframe(1).f_code.co_name

    return is_tracing


def _torch_int(value):
    return torch.sym_int(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else int(value)


def _torch_float(value):
    return torch.sym_float(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else float(value)


def _loaded(path: str) -> Any:
    """The object that a dotted path names when its module is loaded already, else None."""
    if not path.startswith("transformers."):
        return None
    names = path.split(".")
    for count in range(len(names), 0, -1):
        owner = sys.modules.get(".".join(names[:count]))
        if owner is not None:
            for name in names[count:]:
                owner = vars(owner).get(name)
                if owner is None:
                    return None
            return owner
    return None


def config_files(model: torch.nn.Module, generation_config: Any = None) -> dict[str, str]:
    """config.json and generation_config.json of a model, as save_pretrained writes them."""
    files = {}
    generation_config = generation_config or getattr(model, "generation_config", None)
    configs = {"config.json": getattr(model, "config", None), "generation_config.json": generation_config}
    for name, config in configs.items():
        if config is not None and hasattr(config, "to_json_string"):
            files[name] = config.to_json_string(use_diff=True)
    return files
