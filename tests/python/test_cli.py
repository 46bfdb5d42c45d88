"""The command line: exit codes, error lines, JSON, and what export writes."""

import json

import numpy as np
import pytest
import torch
from conftest import ROOT, error_line


# ── Usage ──


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], "A subcommand is required"),
        (["exprot"], "did you mean 'export'?"),
        (["frobnicate"], "commands are export"),
        (["generate", "DIR", "--ids", ""], "--ids: expected a text"),
        (["export", "nowhere", "--to", "onnx", "--out", "x"], "no file or folder 'nowhere'"),
        (["export", ".", "--to", "onxn", "--out", "x"], "did you mean 'onnx'?"),
        (["export", ".", "--to", "openvino", "--out", "x"], "'openvino' is not part of this build"),
        (["export", ".", "--to", "executorch", "--out", "x"], "'executorch' is not part of this build"),
        (["export", ".", "--to", "onnx", "--out", "x", "--backend", "xnnpack"], "--backend is not part of this build"),
        (["export", ".", "--to", "onnx", "--out", "x", "--static-cache", "0"], "--static-cache"),
        (["export", ".", "--to", "onnx"], "--out is required"),
        (["export", ".", "--to", "dynamo", "--out", "x", "--opset", "20"], "--opset goes with --to onnx"),
        (["export", ".", "--to", "onnx", "--out", "x", "--dtype", "int8"], "--dtype: expected float32"),
        (["export", ".", "--to", "onnx", "--out", "x", "--batch", "0"], "--batch"),
        (["export", ".", "--to", "onnx", "--out", "x", "--batch", "100000000000"], "--batch"),
        (["export", ".", "--to", "onnx", "--out", ""], "expected a folder"),
        (["export", ".", "--to", "onnx", "--out", "../" + ROOT.name], "is the checkpoint itself"),
        (["verify", ".", "--reference", ".", "--tolerance", "-1"], "--tolerance"),
        (["verify", ".", "--reference", ".", "--tolerance", "nan"], "--tolerance"),
        (["export", ".", "--to", "onnx", "--out", "x", "--dynamic-shapes", "no-such.json"], "expected JSON or a file"),
        (["export", ".", "--to", "foo", "--out", "x"], "unknown export format 'foo'; formats are 'dynamo', 'onnx'"),
        (["export", ".", "--to", "openvin", "--out", "x"], "formats are 'dynamo', 'onnx'"),
        (["export", ".", "--to", "onnx", "--out", "x", "--dynamic-shapes", ""], "--dynamic-shapes: expected a text"),
        (["export", ".", "--to", "onnx", "--out", "x", "--config", ""], "--config: expected a text"),
        (["inspect", ".", "--html", ""], "--html: expected a text"),
        (["inspect", ".", "--html", "no-such-folder/page.html"], "--html: there is no folder 'no-such-folder'"),
        (["run", ".", "--input", "x", "--output", "no-such-folder/y"], "--output: there is no folder"),
        (["verify", ".", "--attention", "spda"], "--attention: unknown attention implementation 'spda'"),
        (["list", "opps"], "did you mean 'ops'?"),
        (["inspect", "nowhere"], "no file or folder 'nowhere'"),
    ],
)
def test_wrong_usage_is_exit_code_2(cli, arguments, expected):
    assert expected in error_line(cli(*arguments, code=2))
    assert not (ROOT / "no-such-folder").exists()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--opset", "17"], "--opset: expected 18 to 24, got 17"),
        (["--opset", "99"], "--opset: expected 18 to 24, got 99"),
        (["--attention", "flash"], "--attention: attention implementation 'flash' needs kernels"),
        (["--config", '{"dynamics": true}'], "--config: OnnxConfig: unknown field 'dynamics'; did you mean 'dynamic'"),
        (["--config", '{"export_format": "dynamo"}'], "not 'onnx'"),
        (["--config", "{"], "--config: OnnxConfig is not JSON"),
        (["--dynamic-shapes", "{"], "--dynamic-shapes: the description is not JSON"),
        (["--dynamic-shapes", "[]"], "--dynamic-shapes: names no axis"),
        (["--dynamic-shapes", '{"input_ids": {}}'], "--dynamic-shapes: names no axis"),
        (["--dynamic-shapes", '{"input_ids": {"0": 3}}'], "--dynamic-shapes: axis 0 of 'input_ids'"),
    ],
)
def test_options_that_no_checkpoint_allows_are_exit_code_2(cli, tiny_checkpoint, tmp_path, arguments, expected):
    out = tmp_path / "out"
    result = cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--out", out, *arguments, code=2)
    assert expected in error_line(result)
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--dynamic-shapes", '{"inputs_id": {"0": "batch"}}'], "input_ids"),
        (
            ["--architecture", "LlamaForCausalML"],
            "--architecture names 'LlamaForCausalML', which is no native model of the type 'llama'; did you mean "
            "'LlamaForCausalLM'?",
        ),
    ],
)
def test_refused_exports_are_exit_code_1_and_leave_nothing(cli, tiny_checkpoint, tmp_path, arguments, expected):
    out = tmp_path / "out"
    result = cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--out", out, *arguments, code=1)
    assert expected in error_line(result)
    assert not out.exists()


def test_errors_in_json(cli):
    result = cli("export", "nowhere", "--to", "onnx", "--out", "x", "--json", code=2)
    error = json.loads(result.stdout)["error"]
    assert error["stage"] == "usage"
    assert "nowhere" in error["message"]
    assert result.stderr == ""


def test_help_and_version(cli):
    assert "export" in cli("--help").stdout
    assert "--dynamic-shapes" in cli("export", "--help").stdout
    assert cli("--version").stdout.startswith("transporters ")


# ── export ──


@pytest.mark.parametrize("format, program", [("onnx", "model.onnx"), ("dynamo", "model.pt2")])
def test_export_tells_what_it_wrote(cli, tiny_checkpoint, tmp_path, format, program):
    out = tmp_path / "sp ace ü"
    result = cli("export", tiny_checkpoint("bert"), "--to", format, "--dynamic", "--out", out, "--json")
    report = json.loads(result.stdout)
    assert report["architecture"] == "BertModel"
    assert report["files"][program] == (out / program).stat().st_size
    assert set(report["seconds"]) == {"load", "export", "write"}
    assert {"export.json", "config.json", program} <= {file.name for file in out.iterdir()}
    assert result.stderr == ""


def test_the_same_export_gives_the_same_bytes(cli, tiny_checkpoint, tmp_path):
    for format in ("onnx", "dynamo"):
        folders = [tmp_path / f"{format}{i}" for i in range(2)]
        for folder in folders:
            cli("export", tiny_checkpoint("qwen3"), "--to", format, "--dynamic", "--out", folder)
        for file in folders[0].iterdir():
            assert file.read_bytes() == (folders[1] / file.name).read_bytes(), file.name


def test_named_dims_and_their_ranges_reach_the_file(cli, tiny_checkpoint, tmp_path):
    import onnx

    axes = {"0": {"name": "rows", "min": 1, "max": 8}, "1": "tokens"}
    shapes = json.dumps({"input_ids": axes, "attention_mask": axes})
    out = tmp_path / "out"
    cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--dynamic-shapes", shapes, "--out", out)
    graph = onnx.load(out / "model.onnx", load_external_data=False).graph
    names = {value.name: [dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in graph.input}
    assert names == {"input_ids": ["rows", "tokens"], "attention_mask": ["rows", "tokens"]}
    manifest = json.loads((out / "export.json").read_text())
    config = manifest["components"]["model"]["metadata"]["export_config"]
    assert config["dynamic_shapes"]["input_ids"]["0"] == {"name": "rows", "min": 1, "max": 8}


def test_a_pt2_converts_to_onnx(cli, exports, tmp_path):
    out = tmp_path / "out"
    cli("export", exports("llama", "dynamo") / "model.pt2", "--to", "onnx", "--out", out)
    ids = np.array([[4, 5, 6]], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    import onnxruntime

    logits = []
    for folder in (out, exports("llama", "onnx")):
        session = onnxruntime.InferenceSession(folder / "model.onnx")
        logits.append(session.run(["logits"], inputs)[0])
    np.testing.assert_allclose(logits[0], logits[1], rtol=0, atol=1e-5)


def test_a_pt2_takes_no_sizes(cli, exports, tmp_path):
    result = cli(
        "export", exports("llama", "dynamo") / "model.pt2", "--to", "onnx", "--dynamic", "--out", tmp_path / "o", code=2
    )
    assert "a .pt2 has its sizes" in error_line(result)


def test_a_pt2_in_training_mode(cli, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x) * 2

    torch.export.save(torch.export.export(Net().train(), (torch.ones(2, 3),)), tmp_path / "net.pt2")
    line = error_line(cli("export", tmp_path / "net.pt2", "--to", "onnx", "--out", tmp_path / "onnx", code=1))
    assert "op 'aten::dropout' at drop: " in line and "call eval() before torch.export" in line
    assert not (tmp_path / "onnx").exists()
    result = cli("export", tmp_path / "net.pt2", "--to", "dynamo", "--out", tmp_path / "dynamo")
    assert "warning: " in result.stderr and "call eval() before torch.export" in result.stderr
    torch.export.save(torch.export.export(Net().eval(), (torch.ones(2, 3),)), tmp_path / "net.pt2")
    assert cli("export", tmp_path / "net.pt2", "--to", "dynamo", "--out", tmp_path / "dynamo").stderr == ""


def test_images_have_no_sequence(cli, tiny_checkpoint, tmp_path):
    arguments = ["export", tiny_checkpoint("vit"), "--to", "onnx", "--out", tmp_path / "out"]
    line = error_line(cli(*arguments, "--sequence", "5", code=2))
    assert "--sequence: ViTModel takes no tokens, its input is pixel_values" in line
    assert not (tmp_path / "out").exists()
    notes = cli(*arguments, "--dynamic").stderr.splitlines()
    assert any("was fixed to 3 by the code at embeddings" in note for note in notes), notes


def test_axes_that_the_code_ties_are_all_named(cli, tiny_checkpoint, tmp_path):
    """What to write when a mask has the ids' size, but no Dim or another one."""
    arguments = ["export", tiny_checkpoint("bert"), "--to", "onnx", "--out", tmp_path / "out", "--dynamic-shapes"]
    remedy = """--dynamic-shapes '{"input_ids": {"1": "sequence"}, "attention_mask": {"1": "sequence"}}'"""
    for mask in ({}, {"attention_mask": {"1": {"name": "keys", "max": 7}}}):
        line = error_line(cli(*arguments, json.dumps({"input_ids": {"1": "sequence"}, **mask}), code=1))
        assert "Dim 'sequence' (input_ids dim 1, " in line and "attention_mask dim 1" in line
        assert remedy in line
    written = remedy.removeprefix("--dynamic-shapes '").removesuffix("'")
    cli(*arguments, written)


def test_a_name_alone_means_the_dim_described_elsewhere(cli, tiny_checkpoint, tmp_path):
    described = {"0": "batch", "1": {"name": "sequence", "min": 2, "max": 9}}
    bare = {"0": "batch", "1": "sequence"}
    for shapes in ({"input_ids": described, "attention_mask": bare}, {"input_ids": bare, "attention_mask": described}):
        arguments = ["--to", "dynamo", "--dynamic-shapes", json.dumps(shapes), "--out", tmp_path / "out"]
        cli("export", tiny_checkpoint("bert"), *arguments)
        report = json.loads(cli("inspect", tmp_path / "out", "--json").stdout)["components"]["model"]
        assert {row["size"]: row["range"] for row in report["constraints"]}["sequence"] == "2 to 9"


@pytest.mark.parametrize(
    "model_type, key, longest",
    [("bert", "max_position_embeddings", 64), ("gpt2", "n_positions", 64), ("roberta", "max_position_embeddings", 62)],
)
@pytest.mark.parametrize("dynamic", [[], ["--dynamic"]])
def test_samples_longer_than_the_position_table(cli, tiny_checkpoint, tmp_path, model_type, key, longest, dynamic):
    folder = tiny_checkpoint(model_type, **({"n_positions": 64} if model_type == "gpt2" else {}))
    arguments = ["export", folder, "--to", "onnx", *dynamic, "--out", tmp_path / "out"]
    line = error_line(cli(*arguments, "--sequence", longest + 1, code=1))
    assert f"config.json: 'input_ids' has {longest + 1} tokens, but '{key}' is 64" in line
    assert f"at most {longest};" in line
    assert not (tmp_path / "out").exists()
    cli(*arguments, "--sequence", longest)
    cli("verify", tmp_path / "out", "--reference", folder)


def test_another_format_takes_the_place_of_an_export(cli, tiny_checkpoint, tmp_path):
    """Files that the earlier export.json names go, others stay; a .pt2 converted in its own folder stays as well."""
    (tmp_path / "notes.onnx").write_text("mine")
    arguments = [tiny_checkpoint("llama"), "--out", tmp_path, "--to"]
    cli("export", *arguments, "onnx")
    assert {"model.onnx", "model.onnx.data"} <= {file.name for file in tmp_path.iterdir()}
    files = set(json.loads(cli("export", *arguments, "dynamo", "--json").stdout)["files"])
    assert files | {"notes.onnx"} == {file.name for file in tmp_path.iterdir()}
    assert "model.pt2" in files
    cli("export", tmp_path / "model.pt2", "--to", "onnx", "--out", tmp_path)
    assert {"model.pt2", "model.onnx"} <= {file.name for file in tmp_path.iterdir()}
    cli("verify", tmp_path, "--reference", tiny_checkpoint("llama"))
