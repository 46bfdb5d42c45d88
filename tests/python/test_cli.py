"""The command line: exit codes, error lines, JSON, and that each command does what it says on tiny checkpoints."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file


@pytest.fixture(scope="module")
def exports(cli, tiny_checkpoint, tmp_path_factory):
    """exports("llama", "onnx"): an export folder of the tiny checkpoint, every axis dynamic."""
    made = {}

    def make(model_type, format):
        if (model_type, format) not in made:
            out = tmp_path_factory.mktemp(f"{model_type}-{format}")
            cli("export", tiny_checkpoint(model_type), "--to", format, "--dynamic", "--out", out)
            made[model_type, format] = out
        return made[model_type, format]

    return make


def error_line(result):
    """The one line that a failing command prints on stderr."""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: [")
    return lines[0]


# ── Usage ──


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], "A subcommand is required"),
        (["exprot"], "did you mean 'export'?"),
        (["frobnicate"], "commands are export"),
        (["generate", "DIR", "--ids", "1,2"], "not part of this build"),
        (["export", "nowhere", "--to", "onnx", "--out", "x"], "no file or folder 'nowhere'"),
        (["export", ".", "--to", "onxn", "--out", "x"], "did you mean 'onnx'?"),
        (["export", ".", "--to", "openvino", "--out", "x"], "'openvino' is not part of this build"),
        (["export", ".", "--to", "executorch", "--out", "x"], "'executorch' is not part of this build"),
        (["export", ".", "--to", "onnx", "--out", "x", "--generation"], "--generation is not part of this build"),
        (["export", ".", "--to", "onnx", "--out", "x", "--static-cache", "8"], "--static-cache is not part"),
        (["export", ".", "--to", "onnx"], "--out is required"),
        (["export", ".", "--to", "dynamo", "--out", "x", "--opset", "20"], "--opset goes with --to onnx"),
        (["export", ".", "--to", "onnx", "--out", "x", "--dtype", "int8"], "--dtype: expected float32"),
        (["export", ".", "--to", "onnx", "--out", "x", "--batch", "0"], "--batch"),
        (["export", ".", "--to", "onnx", "--out", "x", "--dynamic-shapes", "no-such.json"], "expected JSON or a file"),
        (["list", "opps"], "did you mean 'ops'?"),
        (["inspect", "nowhere"], "no file or folder 'nowhere'"),
    ],
)
def test_wrong_usage_is_exit_code_2(cli, arguments, expected):
    assert expected in error_line(cli(*arguments, code=2))


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--opset", "17"], "expected 18 to 23, got 17"),
        (["--config", '{"dynamics": true}'], "did you mean 'dynamic'"),
        (["--config", '{"export_format": "dynamo"}'], "not 'onnx'"),
        (["--dynamic-shapes", '{"input_ids": {"0": 3}}'], "axis 0 of 'input_ids'"),
        (["--dynamic-shapes", '{"inputs_id": {"0": "batch"}}'], "input_ids"),
        (["--architecture", "LlamaForCausalML"], "LlamaForCausalLM"),
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


# ── verify, run ──


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


def test_verify_finds_other_weights_different(cli, exports, tiny_checkpoint):
    other = tiny_checkpoint("llama", rope_theta=77.0)
    result = cli("verify", exports("llama", "onnx"), "--reference", other, code=3)
    assert "DIFFERS" in result.stdout


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


# ── inspect, list ──


@pytest.mark.parametrize("format, op", [("onnx", "MatMul"), ("dynamo", "aten::linear")])
def test_inspect_tells_of_exports(cli, exports, format, op):
    report = json.loads(cli("inspect", exports("llama", format), "--json").stdout)
    model = report["components"]["model"]
    assert model["architecture"] == "LlamaForCausalLM"
    assert [value["name"] for value in model["inputs"]] == ["input_ids", "attention_mask"]
    assert "batch" in model["inputs"][0]["type"]
    assert op in {row["op"] for row in model["ops"]}
    assert sum(row["count"] for row in model["ops"]) == model["nodes"]
    assert sum(row["bytes"] for row in model["weights"]["by_module"]) == model["weights"]["bytes"]
    text = cli("inspect", exports("llama", format)).stdout
    assert op in text and "by_module" in text


def test_inspect_tells_of_checkpoints(cli, tiny_checkpoint):
    folder = tiny_checkpoint("qwen3")
    report = json.loads(cli("inspect", folder, "--json").stdout)
    assert report["model_type"] == "qwen3"
    tensors = load_file(folder / "model.safetensors")
    assert report["weights"]["tensors"] == len(tensors)
    assert report["weights"]["bytes"] == sum(tensor.nbytes for tensor in tensors.values())
    assert report["weights"]["by_dtype"][0]["dtype"] == "float32"
    same = json.loads(cli("inspect", folder / "model.safetensors", "--json").stdout)
    assert same["weights"] == report["weights"]


def test_inspect_refuses_what_it_does_not_know(cli, tmp_path):
    (tmp_path / "x.txt").write_text("no model")
    assert "expected a .pt2, .onnx or .safetensors" in error_line(cli("inspect", tmp_path / "x.txt", code=1))
    assert "neither export.json nor config.json" in error_line(cli("inspect", tmp_path, code=1))


def test_inspect_reads_torchs_own_pt2(cli, tmp_path):
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x) + 1

    program = torch.export.export(Net(), (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    torch.export.save(program, tmp_path / "net.pt2")
    report = json.loads(cli("inspect", tmp_path / "net.pt2", "--json").stdout)
    assert {row["op"] for row in report["ops"]} >= {"aten::relu"}
    assert report["weights"]["tensors"] == 0


def test_list_tells_what_is_there(cli):
    report = json.loads(cli("list", "--json").stdout)
    assert {"bert", "llama", "qwen3"} <= set(report["architectures"])
    assert "Qwen3ForCausalLM" in report["architectures"]["qwen3"]
    assert report["targets"] == ["dynamo", "onnx"]
    assert "aten::softmax.int" in report["ops"] or "aten::softmax" in report["ops"]
    assert set(report["patches"]) == set(report["fixes"]) == {"dynamo", "onnx"}
    assert "Qwen3ForCausalLM" in cli("list", "architectures").stdout


def test_an_export_folder_moves(cli, exports, tiny_checkpoint, tmp_path):
    """Nothing in the folder refers to where it was made."""
    moved = tmp_path / "moved"
    shutil.copytree(exports("qwen3", "onnx"), moved)
    cli("verify", moved, "--reference", tiny_checkpoint("qwen3"))
