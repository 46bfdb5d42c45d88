"""The exporters: DynamoExporter and OnnxExporter, with the interface of transformers.exporters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import torch

from . import _C, fallback, tracing, transformers_support
from ._C import ExportError
from .configs import DynamoConfig, ExecutorchConfig, ExportFormat, OnnxConfig, OpenVINOConfig
from .exported import DynamoProgram, ExportedComponent, ExportedModel, OnnxProgram


class HfExporter:
    """What all exporters share."""

    export_format: ClassVar[ExportFormat]
    config_class: ClassVar[type[DynamoConfig]]
    # Whose patches and fixes apply while tracing.
    backends: ClassVar[list[str]]

    def export(
        self,
        model: torch.nn.Module | torch.export.ExportedProgram,
        sample_inputs: Mapping[str, Any] | tuple | None = None,
        config: DynamoConfig | Mapping[str, Any] | None = None,
    ) -> ExportedModel:
        """Exports a module as one graph.

        model: any torch.nn.Module, or an ExportedProgram that torch traced (then `sample_inputs` is left out).
        sample_inputs: what forward is called with, keyword arguments as a dict or positional ones as a tuple. Sizes and
            types matter, values do not.
        config: this exporter's config, or its fields as a dict.

        Raises ExportError naming stage, op, module path and the model's source line. The model stays as it was.
        """
        config = self._to_config(config)
        component = self._export_component(model, sample_inputs, config)
        return ExportedModel(
            {"model": component},
            str(self.export_format),
            self._native_config(config),
            self._config_files(model),
            component.program.notes,
        )

    def export_for_generation(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Any],
        config: DynamoConfig | Mapping[str, Any] | None = None,
        *,
        generation_config: Any = None,
        multi_token_decode: bool = False,
    ) -> ExportedModel:
        """Exports each stage of a model that generates as a graph of its own: those of
        :func:`decompose_for_generation`, which says what the other arguments are.

        inputs: what ``model.generate`` takes.
        config: one for all components, or a dict with a config for each of their names.

        Returns a mapping of component name -> program. Raises ExportError naming the component that failed.
        """
        from .generation import components

        return components.export(self, model, inputs, config, generation_config, multi_token_decode)

    def _export_component(self, model, sample_inputs, config, one_token: bool = False) -> ExportedComponent:
        if isinstance(model, torch.export.ExportedProgram):
            if sample_inputs is not None:
                raise ExportError("[signature] an ExportedProgram has its inputs; leave sample inputs out")
            program = fallback.import_program(model)
            notes: list[str] = []
        else:
            program, notes = self._trace(model, sample_inputs, config, one_token)
        lowered = self._lower(program, config)
        if transformers_support.is_transformers_model(model):
            lowered.add_package("transformers", transformers_support.version())
        component = ExportedComponent(self._to_program(lowered, config))
        component.program.notes = notes
        return component

    def _config_files(self, model, generation_config=None) -> dict[str, str]:
        """config.json and generation_config.json of the folder."""
        if isinstance(model, torch.export.ExportedProgram):
            return {}
        return transformers_support.config_files(model, generation_config)

    def _to_config(self, config) -> DynamoConfig:
        if config is None:
            return self.config_class()
        if isinstance(config, Mapping):
            return self.config_class.from_dict(dict(config))
        if not isinstance(config, self.config_class):
            raise ExportError(
                f"[config] {type(self).__name__} takes a {self.config_class.__name__} or a dict, not a "
                f"{type(config).__name__}"
            )
        return config

    def _trace(self, model, sample_inputs, config, one_token) -> tuple[_C.Program, list[str]]:
        if not isinstance(model, torch.nn.Module):
            raise ExportError(
                f"[signature] a torch.nn.Module or an ExportedProgram is expected, not a {type(model).__name__}"
            )
        if sample_inputs is None:
            raise ExportError("[signature] sample inputs are needed: a dict of keyword arguments, or a tuple")
        if isinstance(sample_inputs, Mapping):
            args, kwargs = (), cast(dict[str, Any], sample_inputs)
        elif isinstance(sample_inputs, (tuple, list)):
            args, kwargs = tuple(sample_inputs), {}
        else:
            raise ExportError(
                f"[signature] sample inputs are a dict or a tuple, not a {type(sample_inputs).__name__}; a single tensor "
                "goes into a tuple: (x,)"
            )
        if config.fallback is None:
            return tracing.trace(model, args, kwargs, config, self.backends, one_token)
        given = dict(kwargs)  # tracing takes a transformers model's flags out of it
        try:
            return tracing.trace(model, args, kwargs, config, self.backends, one_token)
        except ExportError as error:
            return fallback.trace(model, args, given, config, self.backends, error)

    def _native_config(self, config) -> str:
        return json.dumps({**json.loads(tracing.engine_config(config)), "dynamic": config.dynamic})

    def _lower(self, program: _C.Program, config) -> _C.Component:
        return _C.lower(program, str(self.export_format), self._native_config(config))

    def _to_program(self, component: _C.Component, config) -> DynamoProgram | OnnxProgram:
        raise NotImplementedError


class DynamoExporter(HfExporter):
    """Exports to ExportedProgram.

    exported = DynamoExporter().export(model, inputs, config=DynamoConfig(dynamic=True))
    exported.module()(**inputs)
    exported.save("model.pt2")
    """

    export_format = ExportFormat.DYNAMO
    config_class = DynamoConfig
    backends = ["dynamo"]

    def _to_program(self, component, config) -> DynamoProgram:
        return DynamoProgram(component)


class OnnxExporter(HfExporter):
    """Exports to ONNX.

    exported = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    exported(**inputs)                 # in ONNX Runtime
    exported.save("model.onnx")
    """

    export_format = ExportFormat.ONNX
    config_class = OnnxConfig
    backends = ["dynamo", "onnx"]

    def _native_config(self, config) -> str:
        fields = {
            **json.loads(super()._native_config(config)),
            "optimize": config.optimize,
            "external_data_threshold": config.external_data_threshold,
        }
        if config.opset_version is not None:
            fields["opset_version"] = config.opset_version
        return json.dumps(fields)

    def _to_program(self, component, config) -> OnnxProgram:
        return OnnxProgram(component, self._native_config(config))


class _NotBuilt(HfExporter):
    def __init__(self):
        raise ExportError(f"[{self.export_format}] this target is not built yet; DynamoExporter and OnnxExporter are")


class ExecutorchExporter(_NotBuilt):
    """Exports to ExecuTorch (not built yet)."""

    export_format = ExportFormat.EXECUTORCH
    config_class = ExecutorchConfig
    backends = ["dynamo", "executorch"]


class OpenVINOExporter(_NotBuilt):
    """Exports to OpenVINO IR (not built yet)."""

    export_format = ExportFormat.OPENVINO
    config_class = OpenVINOConfig
    backends = ["dynamo", "openvino"]
