"""The command line: exit codes, error lines, JSON, and that each command does what it says on tiny checkpoints."""

import json
import shutil
import zipfile
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import transformers
from conftest import ROOT
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


def test_verify_leaves_out_sizes_that_the_model_lacks(cli, tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint("bert", max_position_embeddings=8)
    cli("export", folder, "--to", "onnx", "--dynamic", "--out", tmp_path / "out")
    report = json.loads(cli("verify", tmp_path / "out", "--reference", folder, "--json").stdout)
    assert report["ok"] and report["skipped"] == 3


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


class Page(HTMLParser):
    """Reads a page: its text, what it refers to, and whether its tags are balanced."""

    VOID = {"meta", "input", "br", "link", "img", "hr"}

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.references, self.tags, self.cells = [], [], [], set(), []
        self.modules, self.path = set(), []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.references += [value for name, value in attributes if name in ("src", "href", "srcset", "action", "data")]
        if tag == "summary":
            self.modules.add(dict(attributes)["title"])
        if tag == "td":
            self.cells.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("model_type", ["bert", "qwen3"])
def test_inspect_writes_a_page(cli, exports, tmp_path, model_type, format):
    folder = exports(model_type, format)
    file = tmp_path / "page.html"
    report = json.loads(cli("inspect", folder, "--html", file, "--json").stdout)["components"]["model"]
    html = file.read_text(encoding="utf-8")
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.references == [] and "http:" not in html and "https:" not in html
    cells = page.cells
    for row in report["ops"]:
        assert (row["op"], f"{row['count']:,}") in zip(cells, cells[1:])
    for value in report["inputs"] + report["outputs"]:
        assert cells[cells.index(value["name"]) + 1] == value["type"]
    for row in report["constraints"]:
        assert cells[cells.index(row["size"]) + 1] == row["range"]
    assert {row["size"] for row in report["constraints"]} >= {"batch", "sequence"}
    layer = {"bert": "encoder.layer.1.attention.self.query", "qwen3": "model.layers.1.self_attn.q_proj"}[model_type]
    parts = layer.split(".")
    assert {".".join(parts[:i]) for i in range(len(parts) + 1)} <= page.modules
    assert any(cell.startswith(layer + ".weight") for cell in cells)
    assert cells.count("MatMul" if format == "onnx" else "aten::linear") > 10
    again = tmp_path / "again.html"
    cli("inspect", folder, "--html", again)
    assert again.read_bytes() == file.read_bytes()


def test_a_page_counts_tied_weights_once(cli, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    torch.export.save(torch.export.export(Net(), (torch.tensor([[1, 2]]),)), tmp_path / "net.pt2")
    cli("inspect", tmp_path / "net.pt2", "--html", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Tied weights, counted once" in page.text
    assert "1 tensor, 2.0 kB" in page.text
    names = {"embed.weight", "head.weight"}
    assert any({first, second} == names for first, second in zip(page.cells, page.cells[1:]))
    assert {"", "embed", "head"} & page.modules >= {"", "head"}


def test_a_page_escapes_what_a_file_says(cli, tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    hostile = "</summary><script>alert('1')</script><img src=\"http://evil/\">&amp;.\u202eb\x01"
    x = helper.make_tensor_value_info(hostile, TensorProto.FLOAT, ["<b>n</b>"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weight = numpy_helper.from_array(np.ones(1, np.float32), "w" + hostile)
    node = helper.make_node("Add", [hostile, "w" + hostile], ["y"], name=hostile + "/y")
    model = helper.make_model(helper.make_graph([node], "graph", [x], [y], [weight]), producer_name=hostile)
    onnx.save(model, tmp_path / "<i>.onnx")
    file = tmp_path / "page.html"
    cli("inspect", tmp_path / "<i>.onnx", "--html", file)
    html = file.read_text(encoding="utf-8")
    page = Page(html)
    shown = hostile.replace("\x01", "\ufffd")
    assert page.references == [] and "img" not in page.tags and "i" not in page.tags and "b" in page.tags
    assert html.count("<script>") == 1
    assert shown in page.cells and "w" + shown in page.cells
    assert shown in page.modules


def test_a_page_of_a_checkpoint_tells_its_weights(cli, tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint("bert")
    cli("inspect", folder, "--html", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert set(load_file(folder / "model.safetensors")) <= set(page.cells)
    assert "encoder.layer.0.output.dense" in page.modules


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


def test_verify_leaves_out_sizes_beyond_the_range(cli, tiny_checkpoint, tmp_path):
    axes = {"0": "batch", "1": {"name": "sequence", "min": 1, "max": 8}}
    shapes = json.dumps({"input_ids": axes, "attention_mask": axes})
    for format in ("onnx", "dynamo"):
        out = tmp_path / format
        cli("export", tiny_checkpoint("bert"), "--to", format, "--dynamic-shapes", shapes, "--out", out)
        report = json.loads(cli("verify", out, "--reference", tiny_checkpoint("bert"), "--json").stdout)
        assert report["ok"] and report["skipped"] == 3
        assert max(run["length"] for run in report["runs"]) == 5
