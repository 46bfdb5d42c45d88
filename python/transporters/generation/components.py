"""An export of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from .. import _C
from .._C import ExportError
from ..exported import ExportedModel
from .decompose import decompose_for_generation

if TYPE_CHECKING:
    from ..configs import DynamoConfig
    from ..exporters import HfExporter


def export(
    exporter: HfExporter,
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    config: DynamoConfig | Mapping[str, Any] | None,
    generation_config: Any,
    multi_token_decode: bool,
) -> ExportedModel:
    """What HfExporter.export_for_generation promises."""
    stages = decompose_for_generation(model, inputs, generation_config, multi_token_decode)
    configs = _config_of_each(exporter, config, list(stages))
    components, notes = {}, []
    for name, (module, kwargs) in stages.items():
        try:
            one_token = name == "decode" and not multi_token_decode
            component = exporter._export_component(module, kwargs, configs[name], one_token)
        except (ExportError, _C.InternalError) as error:
            raise _of_stage(error, name, module, kwargs) from error
        components[name] = component
        notes += [f"{name}: {note}" for note in component.program.notes]
    return ExportedModel(
        components,
        str(exporter.export_format),
        exporter._native_config(configs[next(iter(stages))]),
        exporter._config_files(model, generation_config),
        notes,
    )


def _config_of_each(exporter: HfExporter, config: Any, names: list[str]) -> dict[str, DynamoConfig]:
    """A config for each name: the given one, or its entries when it has those of components. Raises ExportError listing
    the names that are missing or unknown."""
    by_component = isinstance(config, Mapping) and any(
        name in names or isinstance(value, exporter.config_class) for name, value in config.items()
    )
    if not by_component:
        return dict.fromkeys(names, exporter._to_config(config))
    missing = [name for name in names if name not in config]
    unknown = [name for name in config if name not in names]
    if missing or unknown:
        parts = [f"it misses {', '.join(missing)}"] if missing else []
        parts += [f"there is no {', '.join(map(str, unknown))}"] if unknown else []
        raise ExportError(
            f"[config] configs are given by component, but {' and '.join(parts)}; components: {', '.join(names)}"
        )
    return {name: exporter._to_config(config[name]) for name in names}


def _of_stage(error: Exception, name: str, module: torch.nn.Module, kwargs: dict[str, Any]) -> ExportError:
    """The error, saying which component it is of."""
    inputs = ", ".join(kwargs)
    located = ExportError(f"{error}\n  in component '{name}' ({type(module).__name__}, with {inputs})")
    for attribute in ("stage", "op", "module", "source"):
        setattr(located, attribute, getattr(error, attribute, ""))
    located.component = name
    return located
