"""What exports give back: programs that run, save and load."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

from . import _C, cache_lengths, pytrees
from ._C import ExportError


class _Signature:
    """Between a caller's arguments and the leaves of a component."""

    def __init__(self, metadata: dict[str, Any], program: _C.Program):
        self.in_spec = pytrees.loads(metadata["in_spec"])
        self.out_spec = pytrees.loads(metadata["out_spec"])
        self.kwarg_names = list(self.in_spec.children()[1].context)
        self.constants = json.loads(metadata["in_constants"])
        self.inputs = [entry[1:] for entry in program.inputs if entry[0] == "user_input"]

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """(path, tensor or constant) of each leaf; a number that the program takes is a 0-dim tensor. Constant keyword
        arguments may be left out. Raises ExportError for what does not fit."""
        fixed = {name: value for name, value in self.constants.items() if name in self.kwarg_names}
        values = {**fixed, **kwargs}
        missing = [name for name in self.kwarg_names if name not in values]
        unknown = [name for name in values if name not in self.kwarg_names]
        if missing or unknown:
            given = ", ".join(kwargs) or "none"
            what = f"misses {', '.join(missing)}" if missing else f"does not take {', '.join(unknown)}"
            raise ExportError(f"[run] the program {what}; its inputs are {', '.join(self.kwarg_names)}, given are {given}")
        values = cache_lengths.to_program({name: values[name] for name in self.kwarg_names})
        leaves, spec = _pytree.tree_flatten((args, values))
        if spec.num_leaves != self.in_spec.num_leaves:
            raise ExportError(f"[run] the inputs nest unlike those of the export: {spec} and {self.in_spec}")
        return [(entry[0], _checked(leaf, *entry)) for leaf, entry in zip(leaves, self.inputs)]

    def unflatten(self, outputs: list[Any], kwargs: dict[str, Any]) -> Any:
        """What the model returns, of the leaves; caches of `kwargs` may have been written to."""
        returned = _pytree.tree_unflatten(outputs, self.out_spec)
        cache_lengths.from_program([*kwargs.values(), *(returned.values() if isinstance(returned, dict) else ())])
        return returned


def _checked(leaf: Any, path: str, value: str | None, constant: Any, is_number: bool) -> Any:
    """The leaf of a call as the signature's entry takes it."""
    if is_number and isinstance(leaf, (bool, int, float)):
        return torch.tensor(leaf)
    if value is not None and not isinstance(leaf, torch.Tensor):
        expected = "number" if is_number else "tensor"
        raise ExportError(f"[run] '{path}': a {expected} is expected where a {type(leaf).__name__} is given")
    if value is None and (isinstance(leaf, torch.Tensor) or leaf != constant):
        raise ExportError(f"[run] '{path}' is {constant!r} in this export, given is {leaf!r}; export it with that value")
    return leaf


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
        self._signature = _Signature(program.metadata, native)

    def forward(self, *args, **kwargs):
        leaves = self._signature.flatten(args, kwargs)
        outputs = self._interpreter.run([leaf for _, leaf in leaves if isinstance(leaf, torch.Tensor)])
        return self._signature.unflatten(outputs, kwargs)


class OnnxProgram:
    """An ONNX model; called, it runs in ONNX Runtime. Buffers and inputs that it writes to keep their new values."""

    def __init__(self, component: _C.Component, config: str):
        self._component = component
        self._config = config
        self.metadata = component.metadata
        self.notes: list[str] = []
        self._session = None
        self._folder = None
        self._signature: _Signature | None = None
        self._buffers: dict[str, torch.Tensor] = {}  # those that a run has written to

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model and, where weights are large, `<name>.onnx.data` beside it."""
        model = _C.ExportedModel("onnx", self._config)
        model.add("model", self._component)
        model.save(os.fspath(path))

    @property
    def model_proto(self):
        """The model as an onnx.ModelProto with its weights inside."""
        import onnx

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            self.save(path)
            return onnx.load(str(path))

    @property
    def graph(self) -> str:
        """The ONNX graph as text."""
        return self._component.onnx_text

    def session(self):
        """An onnxruntime.InferenceSession on the CPU, made at the first call."""
        if self._session is None:
            import onnxruntime

            self._folder = tempfile.TemporaryDirectory()  # weights stay mapped while the session lives
            path = Path(self._folder.name) / "model.onnx"
            self.save(path)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return self._session

    def __call__(self, *args, **kwargs):
        session = self.session()
        if self._signature is None:
            program = self._component.program
            self._signature, self._outputs = _Signature(self.metadata, program), program.outputs
        leaves = dict(self._signature.flatten(args, kwargs))
        given = {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)} | self._buffers
        feed = {
            value.name: _to_ort(given[path])
            for value in [*session.get_inputs(), *session.get_overridable_initializers()]
            if (path := value.name) in given or (path := value.name.removeprefix("input.")) in given
        }
        names = [value.name for value in session.get_outputs()]
        values = dict(zip(names, (_from_ort(value) for value in session.run_with_ort_values(names, feed))))
        outputs = []
        for kind, path, value_name, constant, is_number in self._outputs:
            if value_name is None and not is_number:
                outputs.append(constant)
                continue
            name = path or "output"
            value = values[name if name in values else f"output.{name}"]
            if kind == "user_output":
                outputs.append(value.item() if is_number else value)
            elif kind == "user_input_mutation":
                leaves[path].copy_(value)
            else:
                self._buffers[path] = value
        return self._signature.unflatten(outputs, kwargs)

    def __repr__(self) -> str:
        return f"OnnxProgram({self.metadata['architecture']})"


def _to_ort(tensor: torch.Tensor):
    """An OrtValue of a CPU tensor; bfloat16, which NumPy lacks, goes by its bits."""
    import onnxruntime

    array = tensor.detach().cpu().contiguous()
    if array.dtype == torch.bfloat16:
        bfloat16 = 16  # TensorProto.BFLOAT16
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(torch.uint16).numpy(), bfloat16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array.numpy())


def _from_ort(value) -> torch.Tensor:
    if value.element_type() == 16:
        return torch.from_dlpack(value._ortvalue.to_dlpack()).clone()
    return torch.from_numpy(value.numpy())


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

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Writes the folder that transformers' ExportedModel.from_pretrained loads: one file a component, export.json,
        config.json. It appears whole or not at all."""
        model = _C.ExportedModel(str(self.export_format), self._config)
        for name, component in self.components.items():
            model.add(name, component.program._component)
        model.set_config_files(self._config_files)
        model.save_pretrained(os.fspath(save_directory))

    def __repr__(self) -> str:
        return f"ExportedModel(format={str(self.export_format)!r}, components={list(self.components)})"
