"""What exports give back: programs that run, save and load."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from . import _C, pytrees
from ._C import ExportError
from .onnx_program import OnnxProgram
from .signature import Signature


class DynamoProgram:
    """A traced program, torch.export's ExportedProgram in this engine."""

    def __init__(self, component: _C.Component):
        self._component = component
        self.metadata = component.metadata
        self.notes: list[str] = []

    def module(self) -> DynamoModule:
        """Something to call like the exported module."""
        return DynamoModule(self)

    @property
    def graph(self) -> str:
        """The graph as text: inputs with their role, nodes, outputs, ranges of the symbols."""
        return str(self._component.program)

    def save(self, path: str | os.PathLike) -> None:
        """Writes a `.pt2` for torch.export.load. It appears whole or not at all."""
        self._component.program.save(os.fspath(path))

    def to_exported_program(self) -> torch.export.ExportedProgram:
        """The same program as torch's own class."""
        for text in (self.metadata["in_spec"], self.metadata["out_spec"]):
            pytrees.loads(text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.pt2"
            self.save(path)
            return torch.export.load(str(path))

    def __repr__(self) -> str:
        return f"DynamoProgram({self.metadata['architecture']})"


class DynamoModule(torch.nn.Module):
    """Runs a program op by op through libtorch; buffers and inputs that it writes to keep their new values."""

    def __init__(self, program: DynamoProgram):
        super().__init__()
        native = program._component.program
        self._interpreter = _C.Interpreter(native)
        self._signature = Signature(program.metadata, native)

    def forward(self, *args, **kwargs):
        leaves = self._signature.flatten(args, kwargs)
        outputs = self._interpreter.run([leaf for _, leaf in leaves if isinstance(leaf, torch.Tensor)])
        return self._signature.unflatten(outputs, kwargs)


class ExportedComponent:
    """One exported graph: its program, and what was recorded about it."""

    def __init__(self, program: DynamoProgram | OnnxProgram):
        self.program = program

    @property
    def metadata(self) -> dict[str, Any]:
        return self.program.metadata


class ExportedModel(Mapping):
    """An exported model: its graphs by name, and the configs to save beside them.

    It is a mapping of their names to programs. A single-graph export behaves like its program: ``module()``,
    ``save(path)``, ``model_proto``, and calls.
    """

    def __init__(self, components, export_format: str, config: str, config_files: dict[str, str], notes: list[str]):
        self.components: dict[str, ExportedComponent] = components
        self.export_format = export_format
        self.notes = notes
        self._config = config
        self._config_files = config_files
        self._module = None

    @property
    def program(self) -> DynamoProgram | OnnxProgram:
        """The program of a single-graph export."""
        if len(self.components) != 1:
            raise ExportError(
                f"[run] this export has {len(self.components)} components ({', '.join(self.components)}); take one from "
                ".components"
            )
        return next(iter(self.components.values())).program

    def __getitem__(self, name: str) -> DynamoProgram | OnnxProgram:
        if name not in self.components:
            raise KeyError(f"there is no component {name!r}; the components are {', '.join(self.components)}")
        return self.components[name].program

    def __iter__(self) -> Iterator[str]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.program, name)

    def __call__(self, *args, **kwargs):
        """Runs a single-graph export; returns what the model returns. Keyword arguments that the export does not have
        are refused."""
        if self._module is None:
            program = self.program
            self._module = program.module() if isinstance(program, DynamoProgram) else program
        return self._module(*args, **kwargs)

    def save_pretrained(self, save_directory: str | os.PathLike, *, single_file: bool = False) -> None:
        """Writes the folder that transformers' ExportedModel.from_pretrained loads: one file a component, export.json,
        config.json. It appears whole or not at all.

        ONNX components share one data file, with each weight once. Each `.pt2` holds its weights; with `single_file`
        they are models of one archive, `model.pt2`, with each weight once: torch.export.pt2_archive loads it,
        transformers does not."""
        model = _C.ExportedModel(str(self.export_format), self._config)
        for name, component in self.components.items():
            model.add(name, component.program._component)
        model.set_config_files(self._config_files)
        model.save_pretrained(os.fspath(save_directory), single_file)

    def __repr__(self) -> str:
        return f"ExportedModel(format={str(self.export_format)!r}, components={list(self.components)})"
