"""Small inputs that went wrong for users of other exporters, each named by a public report, through the Python
package."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transporters import DynamoExporter, ExportError, OnnxConfig, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
opsets = pytest.mark.parametrize("opset", [18, 20, 23])


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def close(got, expected, tolerance=1e-4):
    got, expected = got.float(), expected.float()
    assert got.shape == expected.shape
    assert (got - expected).abs().max() <= tolerance * max(1.0, expected.abs().max().item())


def seeded(make):
    torch.manual_seed(0)
    return make().eval()


def tiny(config_class, model_class, **fields):
    sizes = {
        "vocab_size": 99,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    return seeded(lambda: model_class(config_class(**{**sizes, **fields})))


@both
def test_a_transformer_encoder_takes_other_sizes(exporter):
    """pytorch#122321, #110347: sizes of the sample were frozen inside multi-head attention."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu")
    model = seeded(lambda: nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    exported = exporter().export(
        model,
        (torch.randn(7, 2, 32),),
        {"dynamic_shapes": {"src": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}},
    )
    for sizes in [(7, 2, 32), (11, 3, 32), (1, 1, 32)]:
        x = torch.randn(sizes)
        close(exported(x), model(x))


@pytest.mark.parametrize("sample", [(1, 1), (1, 5), (2, 5)], ids=str)
@both
def test_a_sample_of_size_one_freezes_nothing(exporter, sample):
    """optimum#2219, weaver-core#29: axes marked dynamic became 1."""
    model = tiny(transformers.Qwen3Config, transformers.Qwen3ForCausalLM, num_key_value_heads=2, head_dim=8)

    def inputs(batch, length):
        return {
            "input_ids": torch.randint(0, 99, (batch, length)),
            "attention_mask": torch.ones(batch, length, dtype=torch.long),
        }

    exported = exporter().export(model, {**inputs(*sample), "use_cache": False}, {"dynamic": True})
    for sizes in [(2, 7), (1, 4), (3, 1)]:
        given = inputs(*sizes)
        close(exported(**given).logits, model(**given).logits)


@both
def test_one_dynamic_dim_of_three(exporter):
    """pytorch#126607."""
    model = Function(lambda x: torch.softmax(x.view(x.size(1), -1), 0))
    exported = exporter().export(model, (torch.randn(6, 4, 2),), {"dynamic_shapes": ({0: torch.export.Dim("n")},)})
    x = torch.randn(8, 4, 2)
    close(exported(x), model(x))


@both
def test_lists_and_numbers_among_the_inputs(exporter):
    """pytorch#166001, #140748, #143124: inputs and their dynamic axes were paired wrongly."""

    class Net(nn.Module):
        def forward(self, xs, y, z, k: float):
            return xs[0] + 2 * xs[1] + 3 * xs[2] + y * k, z * 2

    def inputs(rows, others):
        return {
            "xs": [torch.randn(rows, 3) for _ in range(3)],
            "y": torch.randn(rows, 3),
            "z": torch.randn(others),
            "k": 0.5,
        }

    n, m = torch.export.Dim("n"), torch.export.Dim("m")
    axes = {"xs": [{0: n}] * 3, "y": {0: n}, "z": {0: m}, "k": None}
    exported = exporter().export(Net(), inputs(4, 5), {"dynamic_shapes": axes})
    given = inputs(2, 7)
    for got, expected in zip(exported(**given), Net()(**given)):
        close(got, expected)
    with pytest.raises(ExportError, match="xs"):
        exporter().export(Net(), inputs(4, 5), {"dynamic_shapes": {**axes, "xs": [{0: n}] * 2}})


@both
def test_dynamic_rope_grows_and_returns(exporter):
    """vllm#41236: the base of dynamic NTK scaling depends on the current length."""
    model = tiny(
        transformers.LlamaConfig,
        transformers.LlamaForCausalLM,
        num_key_value_heads=2,
        max_position_embeddings=8,
        rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
    )
    inputs = {length: {"input_ids": torch.randint(0, 99, (1, length))} for length in (6, 16)}
    expected = {length: model(**given, use_cache=False).logits for length, given in inputs.items()}
    fresh = model(**inputs[6], use_cache=False).logits
    exported = exporter().export(model, {**inputs[6], "use_cache": False}, {"dynamic": True})
    close(exported(**inputs[6]).logits, fresh)
    close(exported(**inputs[16]).logits, expected[16])
    close(exported(**inputs[6]).logits, fresh)


@opsets
def test_a_row_that_may_attend_to_nothing_is_zero(opset):
    """onnxscript#2479, pytorch#103749: NaN in ONNX."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 8, 16)
    mask = torch.ones(2, 1, 8, 8, dtype=torch.bool)
    mask[1, :, 2] = False
    model = Function(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m))
    exported = OnnxExporter().export(model, (x, x, x, mask), OnnxConfig(opset_version=opset))
    got = exported(x, x, x, mask)
    close(got, model(x, x, x, mask))
    assert (got[1, :, 2] == 0).all()


@pytest.mark.parametrize("queries", [1, 2])
@opsets
def test_the_causal_mask_is_aligned_to_the_top_left(opset, queries):
    """onnx#8054, onnxruntime#29020."""
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, queries, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    model = Function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    exported = OnnxExporter().export(model, (query, key, value), OnnxConfig(opset_version=opset))
    got = exported(query, key, value)
    close(got, model(query, key, value))
    close(got[:, :, 0], value[:, :, 0])


@both
def test_the_order_of_channels_of_pixel_unshuffle(exporter):
    """pytorch#186080."""
    x = torch.arange(1.0, 9).reshape(1, 2, 2, 2)
    model = nn.Sequential(nn.PixelUnshuffle(2))
    assert exporter().export(model, (x,))(x).flatten().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    back = nn.Sequential(nn.PixelShuffle(2))
    y = torch.arange(16.0).reshape(1, 8, 1, 2)
    assert torch.equal(exporter().export(back, (y,))(y), back(y))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
@both
def test_floor_division_of_negative_numbers(exporter, dtype):
    """pytorch#191014, #78442, #60179."""
    a = torch.tensor([-7, -5, -1, 0, 3, 7, -8], dtype=dtype)
    b = torch.tensor([2, 3, 2, 5, -2, -3, 4], dtype=dtype)
    model = Function(lambda a, b: (a // b, a % b) if a.is_floating_point() else (a // b, a % b, a >> 1))
    for got, expected in zip(exporter().export(model, (a, b))(a, b), model(a, b), strict=True):
        assert torch.equal(got, expected)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
        self.shortcut, self.other = nn.Conv2d(3, 8, 1, stride=2, bias=False), nn.BatchNorm2d(8)
        for norm in (self.norm, self.other):
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)
            nn.init.uniform_(norm.weight, 0.5, 2)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)) + self.other(self.shortcut(x)))


@both
def test_batch_norm_in_evaluation_and_in_training(exporter):
    """pytorch#166797, #169178, #168224: fused biases of a wrong shape, no accuracy left."""
    model = seeded(Residual)
    exported = exporter().export(
        model, (torch.randn(2, 3, 8, 8),), {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    )
    x = torch.randn(5, 3, 8, 8)
    close(exported(x), model(x))
    with pytest.raises(ExportError, match="train"):
        exporter().export(seeded(Residual).train(), (x,))


def test_names_of_a_trivial_model_and_of_an_output_like_an_inner_node():
    """pytorch#173076, #158094."""

    class Identity(nn.Module):
        def forward(self, image):
            return {"picture": image}

    exported = OnnxExporter().export(Identity(), (torch.ones(2),))
    session = exported.session()
    assert ([v.name for v in session.get_inputs()], [v.name for v in session.get_outputs()]) == (["image"], ["picture"])

    class Flip(nn.Module):
        def forward(self, x):
            return {"softmax": torch.flip(torch.softmax(x, -1), [0])}

    x = torch.randn(3, 4)
    exported = OnnxExporter().export(Flip(), (x,))
    assert [value.name for value in exported.session().get_outputs()] == ["softmax"]
    close(exported(x)["softmax"], Flip()(x)["softmax"])


def test_bfloat16_models_run():
    """pytorch#143643, optimum#1720: types did not match, or the runtime lacked ops."""
    model = tiny(transformers.RobertaConfig, transformers.RobertaForSequenceClassification).to(torch.bfloat16)
    inputs = {"input_ids": torch.randint(5, 99, (2, 7)), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
    exported = OnnxExporter().export(model, inputs, {"dynamic": True})
    other = {name: value[:1].repeat(3, 1)[:, :4] for name, value in inputs.items()}
    for given in (inputs, other):
        logits = exported(**given).logits
        assert logits.dtype == torch.bfloat16
        close(logits, model(**given).logits, 5e-2)
    linear = seeded(lambda: nn.Sequential(nn.Linear(4, 3))).to(torch.bfloat16)
    x = torch.randn(2, 4, dtype=torch.bfloat16)
    close(OnnxExporter().export(linear, (x,))(x), linear(x), 2e-2)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
def test_an_outlier_does_not_overflow_half_precision_statistics(norm, tmp_path):
    """onnxruntime#31626, #15752."""
    model = nn.Sequential(norm(64)).half()
    torch.manual_seed(0)
    x = torch.randn(2, 64).half()
    x[0, 5] = 800
    OnnxExporter().export(model, (x,)).save(tmp_path / "norm.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(tmp_path / "norm.onnx", options)
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    close(torch.from_numpy(got), model(x), 1e-2)


def test_weights_above_the_limit_of_a_file_go_beside_it(tmp_path):
    """pytorch#147259, #126269, with a lower limit; saving again does not append (onnx#6655)."""
    model = nn.Sequential(nn.Embedding(2000, 256), nn.Linear(256, 4))
    ids = torch.randint(0, 2000, (2, 3))
    exported = OnnxExporter().export(model, (ids,), OnnxConfig(external_data_threshold=1024))
    sizes = []
    for _ in range(2):
        exported.save(tmp_path / "net.onnx")
        sizes.append((tmp_path / "net.onnx.data").stat().st_size)
    assert sizes[0] == sizes[1] <= 1.05 * sum(p.nbytes for p in model.parameters())
    onnx.checker.check_model(str(tmp_path / "net.onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (got,) = session.run(None, {session.get_inputs()[0].name: ids.numpy()})
    np.testing.assert_allclose(got, model(ids).detach().numpy(), atol=1e-5)


@both
def test_names_of_folders_with_other_letters(exporter, tmp_path):
    """onnxruntime#27724, sherpa-onnx#2473."""
    folder = tmp_path / "模型 ü" / "sp ace" / "it's #1."
    folder.mkdir(parents=True)
    suffix = "pt2" if exporter is DynamoExporter else "onnx"
    model = nn.Sequential(nn.Linear(64, 64))
    x = torch.randn(2, 64)
    exporter().export(model, (x,)).save(folder / f"net.{suffix}")
    if exporter is DynamoExporter:
        got = torch.export.load(str(folder / "net.pt2")).module()(x)
    else:
        session = onnxruntime.InferenceSession(str(folder / "net.onnx"))
        got = torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])
    close(got, model(x))


@both
def test_a_parameter_without_data_is_named(exporter, tmp_path):
    """executorch#7099: the export died late."""
    model = tiny(transformers.LlamaConfig, transformers.LlamaForCausalLM, num_key_value_heads=2)
    layer = model.model.layers[1].mlp
    layer.up_proj.weight = nn.Parameter(layer.up_proj.weight.to("meta"))
    with pytest.raises(ExportError, match=r"layers\.1\.mlp\.up_proj\.weight"):
        exporter().export(model, {"input_ids": torch.ones(1, 3, dtype=torch.long), "use_cache": False}).save(
            tmp_path / "x"
        )
    assert not list(tmp_path.iterdir())


@both
def test_a_buffer_that_forward_changes(exporter):
    """pytorch#114406, #112256, #114967: 5, then 5 again."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor([4.0]))
            self.register_buffer("cache", torch.zeros(2, 2))

        def forward(self, x):
            self.count.add_(1)
            self.cache[0, 1] = x.sum()
            return x + self.count, self.cache + 0

    model = Counter()
    exported = exporter().export(model, (torch.zeros(1),))
    assert model.count.item() == 4
    for step in (5, 6):
        value, cache = exported(torch.full((1,), float(step)))
        assert value.item() == 2 * step
        assert cache.tolist() == [[0, step], [0, 0]]
    assert model.count.item() == 4


@both
def test_mask2former_of_a_static_image(exporter):
    """pytorch#147096, transformers#34390: an opaque guard on u0."""
    swin = transformers.SwinConfig(
        image_size=64,
        patch_size=2,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 2],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = transformers.Mask2FormerConfig(
        backbone_config=swin,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=32,
        encoder_layers=2,
        decoder_layers=2,
        num_attention_heads=2,
        dim_feedforward=32,
        num_queries=5,
        num_labels=3,
    )
    model = seeded(lambda: transformers.Mask2FormerForUniversalSegmentation(config))
    inputs = {"pixel_values": torch.randn(1, 3, 64, 64)}
    exported = exporter().export(model, inputs)
    other = {"pixel_values": torch.randn(1, 3, 64, 64)}
    got, expected = exported(**other), model(**other)
    close(got.class_queries_logits, expected.class_queries_logits, 1e-3)
    close(got.masks_queries_logits, expected.masks_queries_logits, 1e-3)


def test_a_model_that_half_precision_breaks_is_told(tmp_path):
    """transformers#47050: CANINE makes a float32 mask; where eager fails, the export says where."""
    config = transformers.CanineConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        num_hash_buckets=128,
        local_transformer_stride=16,
        max_position_embeddings=256,
    )
    model = seeded(lambda: transformers.CanineModel(config)).half()
    inputs = {"input_ids": torch.randint(5, 99, (1, 128))}
    try:
        expected = model(**inputs).last_hidden_state
    except RuntimeError:
        with pytest.raises(ExportError, match=r"canine"):
            OnnxExporter().export(model, inputs).save(tmp_path / "x.onnx")
        assert not list(tmp_path.iterdir())
    else:
        close(OnnxExporter().export(model, inputs)(**inputs).last_hidden_state, expected, 2e-2)
