"""`transporters verify` and `transporters run` on exports of tiny checkpoints."""

import json
import shutil
import zipfile

import numpy as np
import pytest
import torch
import transformers
from conftest import error_line
from safetensors.numpy import load_file, save_file


@pytest.mark.parametrize("model_type", ["bert", "llama", "qwen3"])
@pytest.mark.parametrize("format", ["onnx", "dynamo"])
def test_verify_finds_exports_equal_to_eager(cli, exports, tiny_checkpoint, model_type, format):
    result = cli("verify", exports(model_type, format), "--reference", tiny_checkpoint(model_type), "--json")
    report = json.loads(result.stdout)
    assert report["ok"]
    assert {(run["batch"], run["length"]) for run in report["runs"]} >= {(1, 1), (2, 5), (3, 11)}
    assert max(run["relative"] for run in report["runs"]) <= 1e-4


def test_verify_compares_a_pt2_with_its_own_weights(cli, exports):
    assert "Equal to eager" in cli("verify", exports("llama", "dynamo")).stdout
    result = cli("verify", exports("llama", "onnx"), code=2)
    assert "give --reference CHECKPOINT" in error_line(result)


def test_verify_compares_a_converted_pt2_with_its_source(cli, exports, tmp_path):
    source = exports("llama", "dynamo") / "model.pt2"
    arguments = ["verify", tmp_path / "out", "--reference", source, "--bisect", "--json"]
    for format in ("onnx", "dynamo"):
        cli("export", source, "--to", format, "--out", tmp_path / "out")
        report = json.loads(cli(*arguments).stdout)
        assert report["ok"] and report["divergence"]["first"] is None
        assert {(run["batch"], run["length"]) for run in report["runs"]} >= {(1, 1), (2, 5), (3, 11)}
        assert report["divergence"]["compared"] > 25
    assert "goes with the eager model" in error_line(cli(*arguments[:4], "--attention", "eager", code=2))
    cli("export", source, "--to", "onnx", "--out", tmp_path / "out")
    corrupt(tmp_path / "out", "model.layers.1.mlp.down_proj.weight", lambda array: array * 1.5)
    first = json.loads(cli(*arguments, code=3).stdout)["divergence"]["first"]
    assert first["module"] == "model.layers.1.mlp.down_proj"


def test_verify_compares_with_a_pt2_of_torchs_own(cli, tmp_path):
    """Modules that no checkpoint describes: images, sizes that are sums of others, an input that is a number."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv1d(3, 4, 3, padding=1)

        def forward(self, x, ids):
            return self.conv(x).relu().sum(1), torch.nn.functional.one_hot(ids, 7) * 2

    torch.manual_seed(0)
    batch, width = torch.export.Dim("batch"), torch.export.Dim("width", min=2, max=40)
    inputs = (torch.rand(2, 3, 6), torch.tensor([1, 6, 0, 2]))
    program = torch.export.export(Net().eval(), inputs, dynamic_shapes=({0: batch, 2: width}, None))
    torch.export.save(program, tmp_path / "net.pt2")
    cli("export", tmp_path / "net.pt2", "--to", "onnx", "--out", tmp_path / "out")
    report = json.loads(cli("verify", tmp_path / "out", "--reference", tmp_path / "net.pt2", "--json").stdout)
    assert report["ok"] and {(run["batch"], run["length"]) for run in report["runs"]} >= {(1, 5), (2, 11), (3, 5)}


def test_verify_with_a_checkpoint_of_another_type(cli, exports, tiny_checkpoint):
    line = error_line(cli("verify", exports("llama", "onnx"), "--reference", tiny_checkpoint("bert"), code=1))
    assert "the export names 'LlamaForCausalLM', which is no native model of the type 'bert'" in line


def test_verify_finds_other_weights_different(cli, exports, tiny_checkpoint):
    other = tiny_checkpoint("llama", rope_theta=77.0)
    result = cli("verify", exports("llama", "onnx"), "--reference", other, code=3)
    assert "DIFFERS" in result.stdout


def corrupt(folder, weight, change):
    """Rewrites one weight of an export in place; `change` maps its old array to a new one."""
    if (folder / "model.onnx").exists():
        import onnx
        from onnx import numpy_helper

        model = onnx.load(folder / "model.onnx")
        for tensor in model.graph.initializer:
            if tensor.name in (weight, weight + ".transposed"):
                array = change(numpy_helper.to_array(tensor)).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
                break
        else:
            raise KeyError(weight)
        (folder / "model.onnx.data").unlink()
        onnx.save(model, folder / "model.onnx")
        return
    path = folder / "model.pt2"
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    config = next(name for name in records if name.endswith("model_weights_config.json"))
    record = config.rsplit("/", 1)[0] + "/" + json.loads(records[config])["config"][weight]["path_name"]
    array = np.frombuffer(records[record], dtype=np.float32)
    records[record] = change(array).astype(np.float32).tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize(
    "model_type, module",
    [
        ("llama", "model.layers.1.self_attn.v_proj"),
        ("llama", "model.layers.0.mlp.down_proj"),
        ("bert", "encoder.layer.1.intermediate.dense"),
        ("bert", "embeddings.LayerNorm"),
    ],
)
def test_verify_names_the_module_of_a_corrupted_weight(
    cli, exports, tiny_checkpoint, tmp_path, model_type, module, format
):
    folder = tmp_path / "corrupted"
    shutil.copytree(exports(model_type, format), folder)
    # Not all by one factor, which the norm behind it would take out again.
    corrupt(folder, module + ".weight", lambda array: array * np.linspace(0.5, 2, array.size).reshape(array.shape))
    reference = tiny_checkpoint(model_type)
    report = json.loads(cli("verify", folder, "--reference", reference, "--json", code=3).stdout)
    divergence = report["divergence"]
    first = divergence["first"]
    assert first["module"] == module
    assert first["relative"] > 1e-2
    assert first["sizes"] == first["expected_sizes"]
    assert first["aten_op"].startswith("aten::")
    assert first["op"] == first["aten_op"] if format == "dynamo" else "::" not in first["op"]
    assert [weight["name"] for weight in divergence["weights"]] == [module + ".weight"]
    inputs = {row["name"]: row for row in first["inputs"]}
    assert inputs.pop(module + ".weight")["relative"] > 0.1
    assert inputs and all(row["relative"] <= 1e-4 for row in inputs.values() if row["compared"])
    text = cli("verify", folder, "--reference", reference, code=3).stdout
    assert f"in {module}\n" in text and "Weights that differ" in text


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("model_type", ["bert", "llama", "qwen3"])
def test_a_sound_export_has_no_divergence(cli, exports, tiny_checkpoint, model_type, format):
    arguments = ["verify", exports(model_type, format), "--reference", tiny_checkpoint(model_type), "--bisect"]
    divergence = json.loads(cli(*arguments, "--json").stdout)["divergence"]
    assert divergence["first"] is None and divergence["weights"] == []
    assert divergence["compared"] == divergence["values"] > 40
    assert "No difference" in cli(*arguments).stdout


@pytest.mark.parametrize("format, file", [("onnx", "model.onnx"), ("dynamo", "model.pt2")])
def test_verify_compares_a_file_without_its_manifest(cli, exports, tiny_checkpoint, format, file):
    path = exports("llama", format) / file
    report = json.loads(cli("verify", path, "--reference", tiny_checkpoint("llama"), "--bisect", "--json").stdout)
    assert report["ok"] and report["divergence"]["first"] is None
    assert report["divergence"]["compared"] > 40


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
def test_verify_bisects_a_graph_with_other_ops(cli, tiny_checkpoint, tmp_path, format):
    """Attention written out where the reference has one op: rows that attend to nothing differ, from there on."""
    folder = tmp_path / "eager"
    cli("export", tiny_checkpoint("llama"), "--to", format, "--dynamic", "--attention", "eager", "--out", folder)
    arguments = ["verify", folder, "--reference", tiny_checkpoint("llama"), "--bisect", "--json"]
    result = cli(*arguments, "--attention", "sdpa", code=3)
    assert "the eager model computes attention as 'sdpa', the export as 'eager'; try --attention eager" in result.stderr
    divergence = json.loads(result.stdout)["divergence"]
    assert divergence["first"]["module"] == "model.layers.0.self_attn"
    assert divergence["first"]["inputs"][0]["name"].startswith("scaled_dot_product_attention")
    assert divergence["compared"] > 25
    # As the manifest says, and for a file without one as the graph shows.
    manifest = json.loads((folder / "export.json").read_text())
    assert manifest["components"]["model"]["metadata"]["attention"] == "eager"
    arguments[1] = folder / {"onnx": "model.onnx", "dynamo": "model.pt2"}[format]
    cli(*arguments)
    arguments[1] = folder
    divergence = json.loads(cli(*arguments).stdout)["divergence"]
    assert divergence["first"] is None
    assert divergence["compared"] == divergence["values"]


def test_verify_leaves_out_sizes_that_a_static_export_lacks(cli, tiny_checkpoint, tmp_path):
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("bert"), "--to", "onnx", "--batch", "4", "--sequence", "7", "--out", out)
    report = json.loads(cli("verify", out, "--reference", tiny_checkpoint("bert"), "--json").stdout)
    assert [(run["batch"], run["length"]) for run in report["runs"]] == [(4, 7)]
    assert report["skipped"] == 9


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
def test_run_reads_and_writes_safetensors(cli, exports, tiny_checkpoint, tmp_path, format):
    ids = np.array([[4, 5, 6, 7], [8, 9, 10, 11]], dtype=np.int64)
    mask = np.array([[0, 1, 1, 1], [1, 1, 1, 1]], dtype=np.int64)
    save_file({"input_ids": ids, "attention_mask": mask}, tmp_path / "x.safetensors")
    cli("run", exports("llama", format), "--input", tmp_path / "x.safetensors", "--output", tmp_path / "y.safetensors")
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_checkpoint("llama"))
    with torch.no_grad():
        expected = model(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    actual = load_file(tmp_path / "y.safetensors")["logits"]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_run_names_missing_inputs(cli, exports, tmp_path):
    save_file({"input_ids": np.zeros((1, 2), dtype=np.int64)}, tmp_path / "x.safetensors")
    for format in ("onnx", "dynamo"):
        result = cli(
            "run", exports("llama", format), "--input", tmp_path / "x.safetensors", "--output", tmp_path / "y", code=1
        )
        assert "attention_mask" in error_line(result)
    assert not (tmp_path / "y").exists()


def test_run_without_onnxruntime_says_so(cli, exports, tmp_path):
    save_file({"input_ids": np.zeros((1, 2), dtype=np.int64)}, tmp_path / "x.safetensors")
    result = cli(
        "run",
        exports("llama", "onnx"),
        "--input",
        tmp_path / "x.safetensors",
        "--output",
        tmp_path / "y",
        code=1,
        env={"TRANSPORTERS_ONNXRUNTIME": "/nonexistent/libonnxruntime.so"},
    )
    assert "set TRANSPORTERS_ONNXRUNTIME" in error_line(result)


def test_verify_leaves_out_sizes_beyond_the_range(cli, tiny_checkpoint, tmp_path):
    axes = {"0": "batch", "1": {"name": "sequence", "min": 1, "max": 8}}
    shapes = json.dumps({"input_ids": axes, "attention_mask": axes})
    for format in ("onnx", "dynamo"):
        out = tmp_path / format
        cli("export", tiny_checkpoint("bert"), "--to", format, "--dynamic-shapes", shapes, "--out", out)
        report = json.loads(cli("verify", out, "--reference", tiny_checkpoint("bert"), "--json").stdout)
        assert report["ok"] and report["skipped"] == 3
        assert max(run["length"] for run in report["runs"]) == 5


def test_an_export_folder_moves(cli, exports, tiny_checkpoint, tmp_path):
    """Nothing in the folder refers to where it was made."""
    moved = tmp_path / "moved"
    shutil.copytree(exports("qwen3", "onnx"), moved)
    cli("verify", moved, "--reference", tiny_checkpoint("qwen3"))


def test_verify_leaves_out_sizes_that_the_model_lacks(cli, tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint("bert", max_position_embeddings=8)
    cli("export", folder, "--to", "onnx", "--dynamic", "--out", tmp_path / "out")
    report = json.loads(cli("verify", tmp_path / "out", "--reference", folder, "--json").stdout)
    assert report["ok"] and report["skipped"] == 3
