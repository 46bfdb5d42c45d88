"""Runs saved files without the package that wrote them: .pt2 through torch.export, .onnx in ONNX Runtime."""

import functools
import re

import torch

from harness.compare import flatten


class Misfit(RuntimeError):
    """The file's inputs aren't the model's."""


def open_pt2(path):
    """A function of inputs that runs a .pt2, which torch.export loads when it is first called."""
    module = functools.cache(lambda: torch.export.load(str(path)).module())
    return lambda inputs: module()(**inputs)


def open_onnx(path):
    """An ONNX Runtime session of one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_onnx(session, inputs: dict) -> dict[str, torch.Tensor]:
    """Outputs by name, in the graph's order. Inputs are found by their dotted names. Raises Misfit."""
    given = {_plain(name): tensor for name, tensor in flatten(inputs).items()}
    feed = {}
    for port in session.get_inputs():
        name = _plain(port.name)
        tensor = given.get(name, given.get(name.removeprefix("input_")))
        if tensor is None:
            raise Misfit(f"the graph wants an input {port.name!r}; the model's are {', '.join(flatten(inputs))}")
        feed[port.name] = tensor.detach().contiguous().numpy()
    names = [port.name for port in session.get_outputs()]
    return {name: torch.as_tensor(value) for name, value in zip(names, session.run(names, feed), strict=True)}


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)
