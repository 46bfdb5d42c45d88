"""ONNX models, and their runs in ONNX Runtime."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from . import _C
from .signature import Signature


class OnnxProgram:
    """An ONNX model; called, it runs in ONNX Runtime. Buffers and inputs that it writes to keep their new values."""

    def __init__(self, component: _C.Component, config: str):
        self._component = component
        self._config = config
        self.metadata = component.metadata
        self.notes: list[str] = []
        self._session = None
        self._folder = None
        self._signature: Signature | None = None
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
            self._signature, self._outputs = Signature(self.metadata, program), program.outputs
        leaves = dict(self._signature.flatten(args, kwargs))
        given = {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)} | self._buffers
        feed = {
            value.name: _to_ort(given[path])
            for value in [*session.get_inputs(), *session.get_overridable_initializers()]
            if (path := value.name) in given or (path := value.name.removeprefix("input.")) in given
        }
        written = self._written(given, feed)
        values = {name: _from_ort(value) for name, value in _run(session, feed, written).items()}
        # What was written in place is in the caller's own tensors.
        changed = {path: given[path] for path in (name.removeprefix("output.") for name in written)}
        for kind, path, *_ in self._outputs:
            if kind == "user_input_mutation" and path not in changed:
                changed[path] = leaves[path].copy_(_named(values, path))
        outputs = []
        for kind, path, value_name, constant, is_number in self._outputs:
            if kind == "user_output" and value_name is None and not is_number:
                outputs.append(constant)
            elif kind == "user_output" and is_number:
                outputs.append(_named(values, path).item())
            elif kind == "user_output":
                # The new value of an input is that input.
                outputs.append(changed[path] if path in changed else _named(values, path))
            elif kind != "user_input_mutation":
                self._buffers[path] = _named(values, path)
        return self._signature.unflatten(outputs, kwargs)

    def _written(self, given: dict[str, torch.Tensor], feed: dict[str, Any]) -> dict[str, Any]:
        """Output -> the buffer of the input that it may overwrite, for those that are the caller's memory."""
        metadata = self.session().get_modelmeta().custom_metadata_map
        names = metadata.get("shared_buffers", "").splitlines()
        return {
            f"output.{name}": feed[f"input.{name}"]
            for name in names
            if feed[f"input.{name}"].data_ptr() == given[name].data_ptr()
        }

    def __repr__(self) -> str:
        return f"OnnxProgram({self.metadata['architecture']})"


def _run(session, feed: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name; those of `written` go to the memory given there, and are left out."""
    names = [value.name for value in session.get_outputs()]
    if not written:
        return dict(zip(names, session.run_with_ort_values(names, feed)))
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_ortvalue_input(name, value)
    for name in names:
        if name in written:
            binding.bind_ortvalue_output(name, written[name])
        else:
            binding.bind_output(name, "cpu")
    session.run_with_iobinding(binding)
    return {name: value for name, value in zip(names, binding.get_outputs()) if name not in written}


def _named(values: dict[str, Any], path: str) -> Any:
    """The output of a path; the whole result has no path, and one that is an input too a prefix."""
    name = path or "output"
    return values[name if name in values else f"output.{name}"]


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
