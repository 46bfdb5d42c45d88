"""The examples: what their artefacts compute, in ONNX Runtime and in torch, equals what the C++ module gave at sizes
other than the traced ones."""

import subprocess
from collections import defaultdict

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors.numpy import load_file

EXAMPLES = ["conv_net", "front_end_net", "lstm", "transformer_encoder"]


@pytest.fixture(scope="module")
def artefacts(build_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for name in EXAMPLES:
        result = subprocess.run([build_dir / "examples" / f"example_{name}", folder], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    return folder


def references(folder, name):
    """[(inputs by name, output)] that the example computed eagerly; among them batch 1 and more."""
    runs = defaultdict(dict)
    for key, tensor in load_file(folder / f"{name}.safetensors").items():
        number, argument = key.split(".")
        runs[number][argument] = tensor
    assert len(runs) >= 3
    return [(run, run.pop("output")) for run in runs.values()]


def close(actual, expected):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", EXAMPLES)
def test_onnx_equals_the_module(artefacts, name):
    onnx.checker.check_model(artefacts / f"{name}.onnx", full_check=True)
    session = onnxruntime.InferenceSession(artefacts / f"{name}.onnx")
    for inputs, expected in references(artefacts, name):
        (actual,) = session.run(None, inputs)
        close(actual, expected)


@pytest.mark.parametrize("name", EXAMPLES)
def test_pt2_equals_the_module(artefacts, name):
    module = torch.export.load(artefacts / f"{name}.pt2").module()
    for inputs, expected in references(artefacts, name):
        actual = module(*(torch.from_numpy(tensor) for tensor in inputs.values()))
        close(actual.detach().numpy(), expected)


def test_names_of_the_front_end_net_are_kept_and_dropout_is_gone(artefacts):
    program = torch.export.load(artefacts / "front_end_net.pt2")
    assert set(program.state_dict) >= {"conv1.weight", "conv2.bias", "fc1.weight", "fc2.weight"}
    assert "dropout" not in str(program.graph)
    model = onnx.load(artefacts / "front_end_net.onnx", load_external_data=False)
    assert "conv1.weight" in {tensor.name for tensor in model.graph.initializer}
    assert not {"Dropout", "RandomUniformLike", "Bernoulli"} & {node.op_type for node in model.graph.node}


def test_sizes_out_of_range_are_refused(artefacts):
    module = torch.export.load(artefacts / "conv_net.pt2").module()
    with pytest.raises(Exception, match="64|batch|dim"):
        module(torch.zeros(65, 3, 32, 32))
