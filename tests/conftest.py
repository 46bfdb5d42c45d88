"""Fixtures of the Python tests: where the build is, the command line, and tiny checkpoints with random weights."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# A worker for each core: threads of several processes that wait for each other make small models ten times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("TRANSPORTERS_BUILD", ROOT / "build"))

# `import transporters` takes the package of the build. First in the path: the repository's folder `transporters` is
# C++.
sys.path.insert(0, str(BUILD / "python"))

TINY = dict(
    vocab_size=99,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
)
ENCODER_DECODER = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=40,
    init_std=0.3,  # so that the tokens differ
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
)
# model_type: (config fields besides TINY, class of the head).
TINY_MODELS = {
    "bart": (ENCODER_DECODER, "BartForConditionalGeneration"),
    "bert": (dict(), "BertModel"),
    "llama": (dict(num_key_value_heads=2), "LlamaForCausalLM"),
    "mistral": (dict(num_key_value_heads=2, sliding_window=4), "MistralForCausalLM"),
    "qwen2": (dict(num_key_value_heads=2), "Qwen2ForCausalLM"),
    "qwen3": (dict(num_key_value_heads=2, head_dim=8, tie_word_embeddings=True), "Qwen3ForCausalLM"),
    "gemma3_text": (
        dict(num_key_value_heads=2, head_dim=8, sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
        "Gemma3ForCausalLM",
    ),
    "gpt2": (dict(), "GPT2LMHeadModel"),
    "mixtral": (dict(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2), "MixtralForCausalLM"),
    "nllb-moe": (
        dict(ENCODER_DECODER, num_experts=4, encoder_sparse_step=2, decoder_sparse_step=1),
        "NllbMoeForConditionalGeneration",
    ),
    "qwen3_moe": (
        dict(
            num_key_value_heads=2,
            head_dim=8,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=24,
            mlp_only_layers=[0],
        ),
        "Qwen3MoeForCausalLM",
    ),
    "roberta": (dict(pad_token_id=1), "RobertaModel"),
    "t5": (
        dict(d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, decoder_start_token_id=0, pad_token_id=0),
        "T5ForConditionalGeneration",
    ),
    "vit": (dict(image_size=24, patch_size=8), "ViTModel"),
    "whisper": (
        dict(
            ENCODER_DECODER,
            num_mel_bins=8,
            max_source_positions=20,
            max_target_positions=64,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        ),
        "WhisperForConditionalGeneration",
    ),
}


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """The CMake build folder: TRANSPORTERS_BUILD, or `build`."""
    assert (BUILD / "CMakeCache.txt").exists(), f"no build in {BUILD}: run 'make build'"
    return BUILD


@pytest.fixture(scope="session")
def cli(build_dir):
    """Runs the command line: cli("export", folder, "--to", "onnx") returns the completed process.

    Fails the test when the exit code is not `code`."""

    def run(*arguments, code=0, env=None):
        result = subprocess.run(
            [build_dir / "transporters", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **(env or {})},
        )
        assert result.returncode == code, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    return run


@pytest.fixture(scope="session")
def eager_forward(build_dir, tmp_path_factory):
    """eager_forward(folder, [inputs, ...], dtype=..., attention=...) runs them all in one process.

    Returns a list of (outputs, metadata); with `error=True` the text of the failure."""

    from safetensors.torch import load_file, safe_open, save_file

    def run(folder, inputs, error=False, **options):
        work = tmp_path_factory.mktemp("eager")
        paths = []
        for i, (tensors, metadata) in enumerate(inputs):
            save_file({k: v.contiguous() for k, v in tensors.items()}, work / f"in{i}", metadata)
            paths += [work / f"in{i}", work / f"out{i}"]
        flags = [f for k, v in options.items() for f in (f"--{k}", v)]
        result = subprocess.run(
            [build_dir / "tests" / "eager_forward", *flags, folder, *paths], capture_output=True, text=True
        )
        if error:
            assert result.returncode == 1, result.stderr
            return result.stderr
        assert result.returncode == 0, result.stderr
        outputs = []
        for path in paths[1::2]:
            with safe_open(path, "pt") as file:
                outputs.append((load_file(path), file.metadata()))
        return outputs

    return run


def error_line(result):
    """The one line that a failing command prints on stderr."""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: [")
    return lines[0]


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory):
    """Makes a checkpoint folder with seeded random weights: tiny_checkpoint("llama", dtype="bfloat16", rope_theta=5e5).

    `model_class` picks another head, `max_shard_size` splits the weights."""
    made = {}

    def make(model_type, model_class=None, dtype="float32", max_shard_size=None, **config_fields) -> Path:
        import torch
        import transformers

        key = repr((model_type, model_class, dtype, max_shard_size, sorted(config_fields.items())))
        if key not in made:
            extra, default_class = TINY_MODELS[model_type]
            config = transformers.AutoConfig.for_model(model_type, **{**TINY, **extra, **config_fields})
            torch.manual_seed(0)
            model = getattr(transformers, model_class or default_class)(config).eval().to(getattr(torch, dtype))
            folder = tmp_path_factory.mktemp(model_type)
            model.save_pretrained(folder, **({"max_shard_size": max_shard_size} if max_shard_size else {}))
            made[key] = folder
        return made[key]

    return make


@pytest.fixture(scope="session")
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
