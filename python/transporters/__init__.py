"""transporters: export PyTorch modules and Hugging Face models to ExportedProgram (.pt2) and ONNX in C++.

    from transporters import OnnxConfig, OnnxExporter

    exported = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    exported.save_pretrained("exported")

The names and arguments are those of ``transformers.exporters``. Only torch is needed to import this package;
transformers and the runtimes are imported when they are used.
"""

import os as _os

import torch as _torch  # libtorch must be loaded before the extension

from . import _C
from ._C import ExportError, InternalError

# Errors and notes name lines of the model's code: neither torch's nor this package's.
for _folder in (
    _os.path.dirname(_torch.__file__),
    _os.path.dirname(_os.path.realpath(__file__)),
    _os.path.dirname(__file__),
):
    _C.hide_source(_folder + _os.sep)

from . import symbols as _symbols

_symbols.install()

from .auto import AutoExportConfig, AutoHfExporter
from .configs import DynamoConfig, ExecutorchConfig, ExportFormat, OnnxConfig, OpenVINOConfig
from .exported import DynamoProgram, ExportedComponent, ExportedModel, OnnxProgram
from .exporters import DynamoExporter, ExecutorchExporter, HfExporter, OnnxExporter, OpenVINOExporter
from .generation import decompose_for_generation
from .registry import (
    register_fx_node_fix,
    register_fx_program_fix,
    register_onnx_ir_fix,
    register_onnx_translation,
    register_patch,
    registrations,
    unregister,
)

__version__ = _C.__version__

__all__ = [
    "AutoExportConfig",
    "AutoHfExporter",
    "DynamoConfig",
    "DynamoExporter",
    "DynamoProgram",
    "ExecutorchConfig",
    "ExecutorchExporter",
    "ExportError",
    "ExportFormat",
    "ExportedComponent",
    "ExportedModel",
    "HfExporter",
    "InternalError",
    "OnnxConfig",
    "OnnxExporter",
    "OnnxProgram",
    "OpenVINOConfig",
    "OpenVINOExporter",
    "decompose_for_generation",
    "register_fx_node_fix",
    "register_fx_program_fix",
    "register_onnx_ir_fix",
    "register_onnx_translation",
    "register_patch",
    "registrations",
    "unregister",
]
