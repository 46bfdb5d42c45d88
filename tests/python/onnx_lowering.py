"""Runs a function through torch.export, our conversion of the `.pt2` and ONNX Runtime, and compares with torch."""

import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

onnxruntime.set_default_logger_severity(3)

TRACED, OTHERS = 3, (1, 5)  # the size traced with, and those the model must work at, too
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}


class LoweringError(Exception):
    pass


class Lowerer:
    """The lower_onnx tool, kept running."""

    def __init__(self, tool: Path, folder: Path):
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = folder
        self.count = 0

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def __call__(self, program, opset=20) -> Path:
        self.count += 1
        saved, out = (self.folder / f"{self.count}{suffix}" for suffix in (".pt2", ".onnx"))
        torch.export.save(program, saved)
        self.process.stdin.write(f"{saved}\t{out}\t{opset}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise LoweringError(f"{answer}\n{program.graph}")
        return out


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def export(function, make_inputs, is_static=False):
    """An ExportedProgram in which every dimension that `make_inputs` changes with its argument is dynamic."""
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    inputs = make_inputs(TRACED)
    shapes = tuple(
        {
            dim: torch.export.Dim.AUTO
            for dim, (size, other) in enumerate(zip(tensor.shape, changed.shape))
            if size != other and not is_static
        }
        for tensor, changed in zip(inputs, make_inputs(TRACED + 1))
    )
    if isinstance(module, Function):
        shapes = (shapes,)  # one *inputs
    with torch.no_grad():
        return torch.export.export(module.eval(), inputs, dynamic_shapes=shapes)


def check(path: Path, function, inputs, tolerance=None, options=None):
    """The model's outputs are those of the function."""
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {}
    for declared, tensor in zip(session.get_inputs(), inputs):
        feeds[declared.name] = tensor.detach().numpy()
    actual = session.run(None, feeds)
    with torch.no_grad():
        expected = function(*inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected):
        allowed = tolerance or TOLERANCE.get(wanted.dtype, 1e-4)
        assert list(got.shape) == list(wanted.shape)
        assert got.dtype == wanted.numpy().dtype
        wanted = wanted.numpy()
        if not np.issubdtype(wanted.dtype, np.floating):
            np.testing.assert_array_equal(got, wanted)
            continue
        finite = np.abs(wanted[np.isfinite(wanted)])
        largest = float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(got, wanted, rtol=0, atol=allowed * max(largest, 1e-30))


def check_file(path: Path):
    onnx.checker.check_model(path, full_check=True)
