"""What an export can be asked for: the fields of transformers' export configs."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Literal, Self

from ._C import ExportError


class ExportFormat(str, Enum):
    """The target of an export."""

    EXECUTORCH = "executorch"
    OPENVINO = "openvino"
    DYNAMO = "dynamo"
    ONNX = "onnx"

    def __str__(self) -> str:
        return self.value


class ExportConfig:
    """What every config has: conversion to and from dictionaries and JSON."""

    export_format: ExportFormat

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any]) -> Self:
        """The config with these fields; raises ExportError for a field it does not have."""
        known = [field.name for field in fields(cls)]
        for name in config_dict:
            if name not in known:
                raise ExportError(f"[config] {cls.__name__} has no field '{name}'; it has {', '.join(known)}")
        config_dict = dict(config_dict)
        given = config_dict.pop("export_format", None)
        own = next(field.default for field in fields(cls) if field.name == "export_format")
        if given is not None and str(given) != str(own):
            raise ExportError(f"[config] export_format is '{given}', but {cls.__name__} is for '{own}'")
        return cls(**config_dict)

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return copy.deepcopy(self.__dict__)

    def to_json_string(self) -> str:
        """The fields as JSON, keys sorted; what JSON can't hold (Dims) as its repr."""
        values = {name: value for name, value in self.__dict__.items() if name != "quantizer"}
        return json.dumps(values, indent=2, sort_keys=True, default=repr)


@dataclass
class DynamoConfig(ExportConfig):
    """Export to ExportedProgram.

    dynamic: every axis of every input is dynamic where the model allows.
    dynamic_shapes: axes by input, nested as the inputs are, with ``torch.export.Dim``, ``Dim.AUTO``, ``Dim.DYNAMIC`` or
        None for a static axis; takes precedence over ``dynamic``.
    strict: accepted for compatibility; this tracer always sees every op.
    prefer_deferred_runtime_asserts_over_guards: a condition that would narrow an explicit Dim becomes a runtime assert
        in place of an error.
    fallback: ``"torch.export"`` traces with torch what this engine can't trace, and goes on from there.
    """

    export_format: ExportFormat = ExportFormat.DYNAMO
    dynamic: bool = False
    strict: bool = False
    dynamic_shapes: Any = None
    prefer_deferred_runtime_asserts_over_guards: bool = False
    quantizer: Any = None
    fallback: Literal["torch.export"] | None = None

    def __post_init__(self):
        if self.fallback not in (None, "torch.export"):
            raise ExportError(f"[config] fallback is None or 'torch.export', not {self.fallback!r}")
        if self.quantizer is not None:
            raise ExportError("[config] quantizers are not built yet; leave 'quantizer' out")


@dataclass
class OnnxConfig(DynamoConfig):
    """Export to ONNX: DynamoConfig's fields and ONNX's own.

    opset_version: of ONNX's domain; None takes the default.
    optimize: constants folded, dead code removed, transposes folded into weights, ...
    external_data_threshold: weights of at least this many bytes go to ``<name>.onnx.data``.
    """

    export_format: ExportFormat = ExportFormat.ONNX
    opset_version: int | None = None
    optimize: bool = True
    external_data_threshold: int = 1024
    ort_fusions: str | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.ort_fusions is not None:
            raise ExportError(
                "[config] ort_fusions is not built: ONNX Runtime fuses these graphs itself when it loads them; leave it out"
            )


@dataclass
class ExecutorchConfig(DynamoConfig):
    """Export to ExecuTorch (not built yet)."""

    export_format: ExportFormat = ExportFormat.EXECUTORCH
    backend: str = "xnnpack"
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True


@dataclass
class OpenVINOConfig(DynamoConfig):
    """Export to OpenVINO IR (not built yet)."""

    export_format: ExportFormat = ExportFormat.OPENVINO
    compress_to_fp16: bool = False
    stateful: bool = True
