"""Checkpoints that are cut, lie or make no sense: one line that names the file and says what to do, and no output."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 133466304\n"
)


@pytest.fixture
def llama(tiny_checkpoint, tmp_path):
    """A copy of a tiny Llama that a test may damage."""
    return shutil.copytree(tiny_checkpoint("llama"), tmp_path / "llama")


@pytest.fixture
def shards(tiny_checkpoint, tmp_path):
    """A copy of a tiny Llama in several shards, and the path of the last one."""
    folder = shutil.copytree(tiny_checkpoint("llama", max_shard_size="50KB"), tmp_path / "shards")
    names = sorted(set(json.loads((folder / INDEX).read_text())["weight_map"].values()))
    assert len(names) >= 2
    return folder, folder / names[-1]


@pytest.fixture
def refused(cli, tmp_path):
    """refused(folder): the one line that export prints, with exit code 1 and no output."""

    def run(folder, *arguments, code=1, to="onnx"):
        out = tmp_path / "out"
        result = cli("export", folder, "--to", to, "--out", out, *arguments, code=code)
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("error: [")
        assert result.stdout == ""
        assert not out.exists()
        return lines[0]

    return run


def split(path):
    """Header and data of a safetensors file."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def join(path, header, data, length=None):
    text = json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)


def edit_config(folder, **fields):
    """Sets fields of config.json; a value of ... takes the field out."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


# ── Weights: files ──


def test_a_cut_shard_names_itself_and_both_sizes(shards, refused):
    folder, shard = shards
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-10])
    line = refused(folder)
    assert f"{shard}: truncated by 10 bytes: expected a file of {len(whole)} bytes, found {len(whole) - 10}" in line
    assert "fetch the file again" in line


def damage_empty(path):
    path.write_bytes(b"")


def damage_pointer(path):
    path.write_text(LFS_POINTER)


def damage_header_cut(path):
    path.write_bytes(path.read_bytes()[:100])


def damage_four_bytes(path):
    path.write_bytes(path.read_bytes()[:4])


def damage_huge_header(path):
    header, data = split(path)
    join(path, header, data, length=2**62)


def damage_long_header(path):
    header, data = split(path)
    join(path, header, data, length=90_000_000)


def damage_overlap(path):
    header, data = split(path)
    first, second = [name for name in header if name != "__metadata__"][:2]
    header[second]["data_offsets"] = [offset - 4 for offset in header[second]["data_offsets"]]
    join(path, header, data)


def damage_too_long(path):
    path.write_bytes(path.read_bytes() + b"\0" * 3)


def damage_beyond_end(path):
    header, data = split(path)
    name = next(name for name in header if name != "__metadata__")
    size = np.prod(header[name]["shape"]) * 4
    header[name]["data_offsets"] = [2**40, 2**40 + int(size)]
    join(path, header, data)


def damage_web_page(path):
    path.write_text("<!DOCTYPE html><html><body>Entry not found</body></html>")


def damage_pickle(path):
    path.write_bytes(b"PK\x03\x04" + bytes(200))


def damage_dtype(path):
    header, data = split(path)
    name = next(name for name in header if name != "__metadata__")
    header[name]["dtype"] = "Q4_K"
    join(path, header, data)


def damage_negative_shape(path):
    header, data = split(path)
    name = next(name for name in header if name != "__metadata__")
    header[name]["shape"][0] = -1
    join(path, header, data)


@pytest.mark.parametrize(
    "damage, expected",
    [
        (damage_empty, "the file is empty (0 bytes); the download or copy failed, fetch the file again"),
        (damage_pointer, "this is a Git LFS pointer (134 bytes of text) in place of the real file of 133466304 bytes"),
        (damage_header_cut, "truncated inside the header"),
        (damage_four_bytes, "expected at least 8 bytes, found 4"),
        (damage_huge_header, "the header claims 4611686018427387904 bytes, the format allows 100000000"),
        (damage_long_header, "truncated inside the header: it needs 90000008 bytes"),
        (damage_overlap, "overlaps"),
        (damage_too_long, "3 bytes too many"),
        (damage_beyond_end, "belong to no tensor"),
        (damage_web_page, "this is a web page, not safetensors; the download failed"),
        (damage_pickle, "this is a PyTorch pickle file, not safetensors; convert it"),
        (damage_dtype, 'unknown dtype "Q4_K"; known are'),
        (damage_negative_shape, "expected a size to be a whole number from 0 to 2^63-1, got -1"),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(shards, llama, refused, damage, expected):
    folder, shard = shards
    for place, file in ((folder, shard), (llama, llama / SINGLE)):
        damage(file)
        line = refused(place)
        assert f"[checkpoint] {file}: " in line
        assert expected in line


@pytest.mark.parametrize("command", ["export", "inspect"])
def test_a_missing_shard_is_named_with_a_tensor_of_it(cli, shards, tmp_path, command):
    folder, shard = shards
    shard.unlink()
    more = ["--to", "dynamo", "--out", tmp_path / "out"] if command == "export" else []
    result = cli(command, folder, *more, code=1)
    assert len(result.stderr.splitlines()) == 1
    assert f"{folder / INDEX}: shard '{shard.name}' is missing (it holds '" in result.stderr
    assert "download it into the same folder" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "index, expected",
    [
        ("", "is not valid JSON"),
        (LFS_POINTER, "is not valid JSON"),
        ("[]", "expected an object with a weight_map"),
        ('{"weight_map": {"lm_head.weight": 3}}', "the shard of 'lm_head.weight' to be a file name, got 3"),
        ('{"weight_map": {"lm_head.weight": "../x"}}', "must be a file beside the index, got '../x'"),
        ('{"weight_map": {}}', "the checkpoint has no tensors"),
    ],
)
def test_an_index_that_makes_no_sense(shards, refused, index, expected):
    folder, _ = shards
    (folder / INDEX).write_text(index)
    assert expected in refused(folder)


def test_a_checkpoint_without_tensors(llama, refused):
    join(llama / SINGLE, {"__metadata__": {"format": "pt"}}, b"")
    line = refused(llama)
    assert f"{llama / SINGLE}: the checkpoint has no tensors; download or save it again" in line


def test_pickled_weights_alone(llama, refused):
    (llama / SINGLE).rename(llama / "pytorch_model.bin")
    assert "only pickled weights are here; convert them to safetensors" in refused(llama)


# ── Weights: tensors ──


def edit_weights(folder, edit):
    tensors = load_file(folder / SINGLE)
    edit(tensors)
    save_file(tensors, folder / SINGLE, metadata={"format": "pt"})


def test_missing_unexpected_and_misshapen_tensors_are_all_named(llama, refused):
    def edit(tensors):
        tensors["model.layers.0.self_attn.q_proj.weigth"] = tensors.pop("model.layers.0.self_attn.q_proj.weight")
        tensors["model.norm.weight"] = np.ones(31, dtype=np.float32)

    edit_weights(llama, edit)
    line = refused(llama)
    name = "model.layers.0.self_attn.q_proj."
    assert "1 tensors are missing" in line and f"{name}weight; did you mean '{name}weigth'?" in line
    assert "1 tensors belong to no part of the model" in line
    assert "model.norm.weight" in line and "[32]" in line and "[31]" in line


def test_integers_in_place_of_weights(llama, refused):
    def edit(tensors):
        tensors["model.norm.weight"] = np.ones(32, dtype=np.int64)

    edit_weights(llama, edit)
    line = refused(llama)
    assert "model.norm.weight" in line and "int64" in line


def test_a_checkpoint_of_another_size_than_its_config(llama, refused):
    edit_config(llama, hidden_size=64)
    line = refused(llama)
    assert "model.embed_tokens.weight" in line and "[99, 64]" in line and "[99, 32]" in line


# ── config.json ──


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"model_type": "lama"}, "'model_type' is 'lama', which has no native model; did you mean 'llama'"),
        ({"model_type": "qwen4"}, "did you mean 'qwen2', 'qwen3'?"),
        ({"model_type": "mixture_of_nothing"}, "there are bart, bert, clip_vision_model, gemma3_text, gpt2, llama"),
        ({"model_type": ...}, "'model_type' is missing; expected a string"),
        ({"model_type": 3}, "'model_type' expected a string, got 3"),
        ({"architectures": ["LlamaForCausalML"]}, "did you mean 'LlamaForCausalLM'"),
        ({"architectures": "LlamaForCausalLM"}, "'architectures' expected a list of strings"),
        ({"hidden_size": 0}, "'hidden_size' expected a whole number from 1 to 2147483647, got 0"),
        ({"hidden_size": -32}, "'hidden_size' expected a whole number from 1 to 2147483647, got -32"),
        ({"hidden_size": "32"}, "'hidden_size' expected a whole number, got \"32\""),
        ({"hidden_size": 2**63}, "'hidden_size' expected a whole number, got 9223372036854775808"),
        ({"vocab_size": 2**31 - 1}, "model.embed_tokens.weight: expected [2147483647, 32], the checkpoint"),
        ({"num_attention_heads": 5}, "expected a divisor of num_attention_heads (5), got 2"),
        ({"num_key_value_heads": 3}, "'num_key_value_heads'"),
        ({"num_hidden_layers": 10**9}, "'num_hidden_layers' is 1000000000, but the checkpoint has 21 tensors in all"),
        ({"num_hidden_layers": 3}, "model.layers.2."),
        ({"vocab_size": 2**31}, "'vocab_size' expected a whole number from 1 to 2147483647, got 2147483648"),
        ({"head_dim": 7}, "'head_dim'"),
        ({"rms_norm_eps": "small"}, "'rms_norm_eps' expected a number, got \"small\""),
        ({"rms_norm_eps": -1e-6}, "'rms_norm_eps' expected a number of 0 or more, got -1e-06"),
        ({"intermediate_size": -48}, "'intermediate_size' expected a whole number from 1 to 2147483647, got -48"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 0}}, "'rope_theta' expected a number above 0"),
        ({"hidden_act": "siluu"}, "did you mean 'silu'"),
        ({"hidden_act": 3}, "'hidden_act' expected a string, got 3"),
        ({"tie_word_embeddings": "yes"}, "'tie_word_embeddings' expected true or false, got \"yes\""),
        ({"dtype": "float33"}, 'expected a type such as float32, float16 or bfloat16, got "float33"'),
        ({"dtype": "int8"}, "models run in float32, float16, bfloat16 or float64, not in int8"),
        ({"rope_parameters": {"rope_type": "yarm"}}, "names an unknown kind 'yarm'; did you mean 'yarn'?"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "'rope_parameters.factor'"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": -1}}, "'rope_theta' expected a number above 0"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised checkpoints can't be read; use the unquantised"),
    ],
    ids=lambda value: json.dumps(value, default=lambda _: "absent") if isinstance(value, dict) else "",
)
def test_a_config_that_makes_no_sense_names_the_field(llama, refused, fields, expected):
    edit_config(llama, **fields)
    assert expected in refused(llama)


@pytest.mark.parametrize(
    "model_type, key", [("bert", "layer_norm_eps"), ("gpt2", "layer_norm_epsilon"), ("vit", "layer_norm_eps")]
)
def test_a_negative_epsilon(tiny_checkpoint, refused, tmp_path, model_type, key):
    folder = shutil.copytree(tiny_checkpoint(model_type), tmp_path / model_type)
    edit_config(folder, **{key: -1.0})
    assert f"'{key}' expected a number of 0 or more, got -1" in refused(folder)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        (LFS_POINTER, "is not valid JSON"),
        ("[]", "expected a JSON object, got []"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_a_config_that_is_no_json_object(llama, refused, text, expected):
    (llama / "config.json").write_text(text)
    line = refused(llama)
    assert f"[checkpoint] {llama / 'config.json'}: " in line and expected in line


def test_folders_without_config_or_weights(llama, refused, tmp_path):
    (llama / SINGLE).unlink()
    assert f"expected {SINGLE} or {INDEX}, found neither" in refused(llama)
    (llama / "config.json").unlink()
    assert "no config.json here" in refused(llama)
    (tmp_path / "file").write_text("x")
    assert "expected a checkpoint folder or a .pt2 file" in refused(tmp_path / "file", code=2)


# ── Paths ──


@pytest.mark.parametrize("name", ["模型 ü/sp ace", 'it\'s "quoted"', "a#b", "ends.", "-dash", "new\nline"])
@pytest.mark.parametrize("format, program", [("onnx", "model.onnx"), ("dynamo", "model.pt2")])
def test_any_folder_name_will_do(cli, tiny_checkpoint, tmp_path, name, format, program):
    source = shutil.copytree(tiny_checkpoint("llama"), tmp_path / "in" / name)
    out = tmp_path / "out" / name
    cli("export", source, "--to", format, "--dynamic", "--out", out)
    assert (out / program).is_file()
    if format == "onnx":
        import onnx
        import onnxruntime

        for tensor in onnx.load(out / program, load_external_data=False).graph.initializer:
            for entry in tensor.external_data:
                assert entry.key != "location" or entry.value == "model.onnx.data"
        onnxruntime.InferenceSession(out / program)
    report = json.loads(cli("verify", out, "--reference", source, "--json").stdout)
    assert report["ok"]


def test_messages_keep_the_path_intact(tiny_checkpoint, refused, tmp_path):
    source = shutil.copytree(tiny_checkpoint("llama"), tmp_path / "模型 ü" / "sp ace's #1.")
    (source / SINGLE).write_bytes(b"")
    assert f"[checkpoint] {source / SINGLE}: the file is empty" in refused(source)


# ── Exports that were damaged ──


@pytest.fixture(scope="module")
def exports(cli, tiny_checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    for format in ("onnx", "dynamo"):
        cli("export", tiny_checkpoint("llama"), "--to", format, "--out", folder / format)
    return folder


@pytest.mark.parametrize(
    "format, file, damage, expected",
    [
        ("dynamo", "model.pt2", damage_empty, "the file is empty"),
        ("dynamo", "model.pt2", damage_pointer, "not a .pt2 file"),
        ("dynamo", "model.pt2", damage_header_cut, "the file ends before its directory of records"),
        ("onnx", "model.onnx", damage_empty, "not an ONNX model"),
        ("onnx", "model.onnx", damage_pointer, "not an ONNX model"),
        ("onnx", "model.onnx.data", damage_empty, "the file has 0"),
        ("onnx", "model.onnx.data", lambda path: path.unlink(), "No such file"),
        ("onnx", "export.json", damage_empty, "export.json is not JSON"),
        ("onnx", "export.json", lambda path: path.write_text("[" * 100_000), "export.json nests deeper than"),
        ("onnx", "export.json", lambda path: path.write_text("{}"), "'export_format' is missing"),
    ],
)
def test_damaged_exports_are_named(cli, exports, tmp_path, format, file, damage, expected):
    folder = shutil.copytree(exports / format, tmp_path / format)
    damage(folder / file)
    result = cli("inspect", folder, code=1)
    assert len(result.stderr.splitlines()) == 1
    assert expected in result.stderr and file in result.stderr


def test_a_cut_pt2_converts_to_nothing(exports, refused, tmp_path):
    whole = (exports / "dynamo" / "model.pt2").read_bytes()
    for size in (1, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.pt2").write_bytes(whole[:size])
        assert str(tmp_path / "cut.pt2") in refused(tmp_path / "cut.pt2")
