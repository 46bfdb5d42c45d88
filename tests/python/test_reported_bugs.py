"""Small inputs that went wrong for users of other exporters, each named by a public report of it."""

import os
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
import transformers
from conftest import TINY
from onnx_lowering import Lowerer, check_file
from torch import nn
from transformers.exporters.base import ExportedModel

onnxruntime.set_default_logger_severity(3)


@pytest.fixture(scope="module")
def convert(build_dir, tmp_path_factory):
    """convert(module, inputs, dims, opset): an ONNX file of the module; `dims` as torch.export's dynamic_shapes."""
    lowerer = Lowerer(build_dir / "tests" / "lower_onnx", tmp_path_factory.mktemp("onnx"))

    def run(module, inputs, dims=None, opset=20):
        with torch.no_grad():
            program = torch.export.export(module.eval(), inputs, dynamic_shapes=dims)
        path = lowerer(program, opset)
        check_file(path)
        return path

    yield run
    lowerer.close()


def run(path, *tensors, optimize=True):
    options = onnxruntime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options)
    feeds = {value.name: tensor.numpy() for value, tensor in zip(session.get_inputs(), tensors)}
    return [torch.from_numpy(output) for output in session.run(None, feeds)]


class Attention(nn.Module):
    def __init__(self, is_causal=False):
        super().__init__()
        self.is_causal = is_causal

    def forward(self, query, key, value, mask=None):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.is_causal)


@pytest.mark.parametrize("opset", [18, 20, 23, 24])
def test_a_row_that_may_attend_to_nothing_is_zero(convert, opset):
    """onnxscript#2479, pytorch#103749: NaN or the mean of the values in place of zeros; left-padded batches have such
    rows."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 8, 16)
    mask = torch.ones(2, 1, 8, 8, dtype=torch.bool)
    mask[0, :, 2] = False
    path = convert(Attention(), (x, x, x, mask), opset=opset)
    (actual,) = run(path, x, x, x, mask)
    assert (actual[0, :, 2] == 0).all()
    torch.testing.assert_close(actual, Attention()(x, x, x, mask), rtol=0, atol=1e-5)


@pytest.mark.parametrize("opset", [18, 20, 23, 24])
@pytest.mark.parametrize("queries", [1, 2])
def test_the_causal_mask_is_aligned_to_the_top_left(convert, queries, opset):
    """onnx#8054, onnxruntime#29020: with fewer queries than keys, the first query sees the first key only."""
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 4, queries, 16), torch.randn(2, 4, 5, 16), torch.randn(2, 4, 5, 16)
    (actual,) = run(convert(Attention(is_causal=True), (query, key, value), opset=opset), query, key, value)
    torch.testing.assert_close(actual[:, :, 0], value[:, :, 0], rtol=0, atol=1e-5)
    torch.testing.assert_close(actual, Attention(is_causal=True)(query, key, value), rtol=0, atol=1e-5)


class Integers(nn.Module):
    def forward(self, a, b):
        return a // b, a % b, a >> 1 if not a.is_floating_point() else a.floor()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
def test_floor_division_of_negative_numbers(convert, dtype):
    """pytorch#191014, #78442, #60179: quotients, remainders and shifts were rounded toward zero."""
    a = torch.tensor([-7, -5, -1, 0, 3, 7, -8], dtype=dtype)
    b = torch.tensor([2, 3, 2, 5, -2, -3, 4], dtype=dtype)
    for actual, expected in zip(run(convert(Integers(), (a, b)), a, b), Integers()(a, b)):
        assert actual.equal(expected)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_an_outlier_does_not_overflow_half_precision_statistics(convert, norm):
    """onnxruntime#31626, #15752: the square of 800 is infinite in float16."""
    torch.manual_seed(0)
    x = torch.randn(2, 64).half()
    x[0, 5] = 800
    module = norm(64).half()
    (actual,) = run(convert(module, (x,)), x, optimize=False)
    torch.testing.assert_close(actual, module(x), rtol=0, atol=1e-2 * module(x).abs().max().item())
    assert actual[0].abs().sum() > 0


def test_a_bfloat16_linear_runs(convert):
    """huggingface/optimum#1720: types did not match inside the file, or the runtime lacked the op."""
    torch.manual_seed(0)
    module, x = nn.Linear(4, 3).bfloat16(), torch.randn(2, 4).bfloat16()
    model = onnx.load(convert(module, (x,)))
    (output,) = model.graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
    # numpy has no bfloat16: a Cast at the end to read, ONNX Runtime's own value to pass.
    model.graph.node.append(onnx.helper.make_node("Cast", [output.name], ["read"], to=onnx.TensorProto.FLOAT))
    model.graph.output.append(onnx.helper.make_tensor_value_info("read", onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (name,) = (value.name for value in session.get_inputs())
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        x.view(torch.uint16).numpy(), onnx.TensorProto.BFLOAT16
    )
    (actual,) = session.run_with_ort_values(["read"], {name: value})
    torch.testing.assert_close(torch.from_numpy(actual.numpy()), module(x).float(), rtol=0, atol=5e-2)


class FlippedSoftmax(nn.Module):
    def forward(self, x):
        return {"softmax": torch.flip(F.softmax(x, dim=-1), (0,))}


def test_an_output_named_like_an_inner_node(convert):
    """pytorch#173076, #158094: the file could not be loaded."""
    x = torch.randn(3, 4)
    path = convert(FlippedSoftmax(), (x,))
    session = onnxruntime.InferenceSession(path)
    assert [value.name for value in session.get_outputs()] == ["softmax"]
    torch.testing.assert_close(run(path, x)[0], FlippedSoftmax()(x)["softmax"])


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
def test_dynamic_rope_grows_and_returns(cli, tiny_checkpoint, tmp_path, format):
    """vllm#41236: the base of dynamic NTK scaling depends on the current length, also in an export."""
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    checkpoint = tiny_checkpoint("llama", max_position_embeddings=8, rope_parameters=rope)
    cli("export", checkpoint, "--to", format, "--dynamic", "--batch", 2, "--sequence", 6, "--out", tmp_path / "out")
    exported = ExportedModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    for length in (6, 16, 6):
        ids = torch.arange(3, 3 + 2 * length).view(2, length)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        fresh = transformers.LlamaForCausalLM.from_pretrained(checkpoint).eval()
        with torch.no_grad():
            expected = fresh(**inputs).logits
        torch.testing.assert_close(exported(**inputs)["logits"], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("format, suffixes", [("onnx", (".onnx", ".onnx.data")), ("dynamo", (".pt2",))])
def test_tied_weights_are_stored_once(cli, tmp_path, format, suffixes):
    """optimum#1326, transformers#12985: the embedding and the head were stored twice, one of them transposed."""
    config = transformers.GPT2Config(**{**TINY, "vocab_size": 20_000, "n_layer": 2, "n_head": 4, "n_embd": 32})
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path / "checkpoint")
    unique = sum(parameter.numel() * 4 for parameter in model.parameters())
    cli("export", tmp_path / "checkpoint", "--to", format, "--dynamic", "--out", tmp_path / "out")
    written = sum(os.path.getsize(tmp_path / "out" / f"model{suffix}") for suffix in suffixes)
    assert written <= 1.05 * unique


@pytest.mark.slow
def test_weights_above_two_gigabytes(cli, tmp_path):
    """pytorch#147259, #126269: an empty or unreadable file. One tensor of 2.3 GB, here all zeros but its last row."""
    if shutil.disk_usage(tmp_path).free < 12e9:
        pytest.skip("needs 12 GB of free disk")
    config = transformers.GPT2Config(
        vocab_size=9_000_000, n_embd=64, n_layer=1, n_head=2, n_positions=16, tie_word_embeddings=True
    )
    with torch.device("meta"):
        model = transformers.GPT2Model(config)
    state = {name: torch.zeros(tensor.shape) for name, tensor in model.state_dict().items()}
    state["wte.weight"][-1] = torch.arange(64.0)
    state["ln_f.weight"].fill_(1.0)
    (tmp_path / "checkpoint").mkdir()
    config.architectures = ["GPT2Model"]
    config.save_pretrained(tmp_path / "checkpoint")
    from safetensors.torch import save_file

    save_file(state, tmp_path / "checkpoint" / "model.safetensors", metadata={"format": "pt"})
    for name in state:
        state[name] = None
    cli("export", tmp_path / "checkpoint", "--to", "onnx", "--dynamic", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "model.onnx.data").stat().st_size > 2**31
    assert (tmp_path / "out" / "model.onnx").stat().st_size < 1e6
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    ids = np.array([[0, 8_999_999]])
    outputs = session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    # The layer adds nothing, so that the norm of each row comes out.
    expected = torch.stack([torch.zeros(64), F.layer_norm(torch.arange(64.0), (64,))])
    np.testing.assert_allclose(outputs[0][0], expected, rtol=0, atol=1e-4)
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "checkpoint")
