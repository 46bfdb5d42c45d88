"""Configs and exporters picked by the name of a target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import configs, exporters
from ._C import ExportError

_CONFIGS = {
    "dynamo": configs.DynamoConfig,
    "onnx": configs.OnnxConfig,
    "openvino": configs.OpenVINOConfig,
    "executorch": configs.ExecutorchConfig,
}
_EXPORTERS = {
    "dynamo": exporters.DynamoExporter,
    "onnx": exporters.OnnxExporter,
    "openvino": exporters.OpenVINOExporter,
    "executorch": exporters.ExecutorchExporter,
}


def _format_of(name: Any) -> str:
    if str(name) not in _CONFIGS:
        raise ExportError(f"[config] export_format is one of {', '.join(_CONFIGS)}, not {str(name)!r}")
    return str(name)


class AutoExportConfig:
    """The config class that a dictionary's "export_format" names."""

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any]) -> configs.DynamoConfig:
        """Raises ExportError for a missing or unknown format and for unknown fields."""
        if "export_format" not in config_dict:
            raise ExportError(f"[config] 'export_format' is missing: one of {', '.join(_CONFIGS)}")
        return _CONFIGS[_format_of(config_dict["export_format"])].from_dict(dict(config_dict))

    @classmethod
    def from_json(cls, text: str) -> configs.DynamoConfig:
        """The same from JSON."""
        return cls.from_dict(json.loads(text))


class AutoHfExporter:
    """The exporter that a config asks for."""

    @classmethod
    def from_config(cls, config: configs.DynamoConfig | Mapping[str, Any]) -> exporters.HfExporter:
        name = config["export_format"] if isinstance(config, Mapping) else config.export_format
        return _EXPORTERS[_format_of(name)]()
