"""Native encoder-decoders run eagerly, compared with transformers, and one trace of them at other sizes."""

import itertools
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_models import SIZES, close, compare, load, padded_inputs

FRAMES = 40


def features(batch, seed=0):
    return torch.randn(batch, 8, FRAMES, generator=torch.Generator().manual_seed(seed + batch))


def call_of(model_type, batch, length, side="right"):
    """Prompt and tokens of the decoder, which have another length."""
    ids = padded_inputs(batch, 14 - length, side)
    tokens = {"decoder_input_ids": ids["input_ids"].clamp(min=3)}
    if model_type == "whisper":
        return {"input_features": features(batch, length)} | tokens
    return padded_inputs(batch, length, side) | tokens


def all_calls(model_type):
    calls = [call_of(model_type, b, n, side) for (b, n), side in itertools.product(SIZES, ("left", "right"))]
    bare = [{name: value for name, value in call.items() if name != "attention_mask"} for call in calls[::6]]
    masked = []
    for call in calls[::4]:
        batch, length = call["decoder_input_ids"].shape
        mask = padded_inputs(batch, length, "left")["attention_mask"]
        masked.append(call | {"decoder_attention_mask": mask})
    return calls + bare + masked


CASES = {
    "bart": {
        "tied": dict(),
        "untied": dict(tie_word_embeddings=False, scale_embedding=True, activation_function="relu"),
        "sizes": dict(encoder_layers=1, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=8),
    },
    "whisper": {
        "tied": dict(),
        "untied": dict(tie_word_embeddings=False, activation_function="gelu_new"),
        "sizes": dict(encoder_layers=1, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=8),
    },
    "nllb-moe": {
        "tied": dict(),
        "dense": dict(encoder_sparse_step=0, decoder_sparse_step=0, tie_word_embeddings=False, scale_embedding=False),
        "capacity": dict(moe_eval_capacity_token_fraction=0.3, moe_token_dropout=0.0, router_bias=True),
        "fixed-capacity": dict(moe_eval_capacity_token_fraction=-1.0, expert_capacity=3),
        "priority": dict(moe_eval_capacity_token_fraction=0.25, batch_prioritized_routing=True),
        "normalized-first": dict(
            normalize_router_prob_before_dropping=True,
            router_ignore_padding_tokens=True,
            moe_eval_capacity_token_fraction=0.4,
        ),
        "half-router": dict(router_dtype="bfloat16"),
    },
}
EVERY = [(m, name, fields) for m, cases in CASES.items() for name, fields in cases.items()]
# nllb-moe has no other in transformers.
ATTENTION = [("bart", "sdpa"), ("bart", "eager"), ("whisper", "sdpa"), ("whisper", "eager"), ("nllb-moe", "eager")]


@pytest.mark.parametrize("model_type,fields", [(m, f) for m, _, f in EVERY], ids=[f"{m}-{n}" for m, n, _ in EVERY])
def test_every_size_and_padding(tiny_checkpoint, eager_forward, model_type, fields):
    attention = "eager" if model_type == "nllb-moe" else "sdpa"
    folder = tiny_checkpoint(model_type, **fields)
    compare(
        load(folder, attention=attention), folder, eager_forward, all_calls(model_type), flags={"attention": attention}
    )


@pytest.mark.parametrize("model_type", ["bart", "whisper"])
def test_eager_attention(tiny_checkpoint, eager_forward, model_type):
    folder = tiny_checkpoint(model_type)
    compare(load(folder, attention="eager"), folder, eager_forward, all_calls(model_type), flags={"attention": "eager"})


def test_experts_with_masks_of_sdpa(tiny_checkpoint, eager_forward):
    """The default of the command line; transformers has only eager attention for this model."""
    folder = tiny_checkpoint("nllb-moe")
    # Rows that see nothing are zeros in one and means in the other.
    calls = [call for call in all_calls("nllb-moe") if "decoder_attention_mask" not in call]
    compare(load(folder, attention="eager"), folder, eager_forward, calls)


BART_HEADS = {
    "base": ("BartModel", dict()),
    "classifier": ("BartForSequenceClassification", dict()),
    "five-classes": ("BartForSequenceClassification", dict(num_labels=5)),
    "answers": ("BartForQuestionAnswering", dict()),
}


@pytest.mark.parametrize("model_class,fields", BART_HEADS.values(), ids=BART_HEADS)
def test_bart_heads(tiny_checkpoint, eager_forward, model_class, fields):
    """Without tokens of its own the decoder has those of the prompt; classes are told from the last end of a
    sequence."""
    folder = tiny_checkpoint("bart", model_class, **fields)
    calls = [
        padded_inputs(batch, length, side) for (batch, length), side in itertools.product(SIZES, ("left", "right"))
    ]
    for call in calls:
        ids, mask = call["input_ids"], call["attention_mask"]
        for row in range(len(ids)):
            ids[row, mask[row].nonzero()[-1]] = 2
    compare(load(folder), folder, eager_forward, calls)


@pytest.mark.parametrize("model_type,model_class", [("whisper", "WhisperModel"), ("nllb-moe", "NllbMoeModel")])
def test_base_models(tiny_checkpoint, eager_forward, model_type, model_class):
    for checkpoint in (tiny_checkpoint(model_type, model_class), tiny_checkpoint(model_type)):
        model = load(checkpoint, attention="eager", model_class=model_class)
        flags = {"attention": "eager", "class": model_class}
        compare(model, checkpoint, eager_forward, all_calls(model_type)[::5], flags=flags)


@pytest.mark.parametrize("model_type", ["bart", "nllb-moe"])
def test_embeddings_as_inputs(tiny_checkpoint, eager_forward, model_type):
    folder = tiny_checkpoint(model_type)
    model = load(folder, attention="eager")
    call = call_of(model_type, 2, 5)
    words = model.get_input_embeddings()
    embeds = {"inputs_embeds": words(call["input_ids"]).detach(), "attention_mask": call["attention_mask"]}
    decoder_embeds = words(call["decoder_input_ids"]).detach()
    calls = [
        embeds | {"decoder_input_ids": call["decoder_input_ids"]},
        {"input_ids": call["input_ids"], "decoder_inputs_embeds": decoder_embeds},
        embeds | {"decoder_inputs_embeds": decoder_embeds},
    ]
    compare(model, folder, eager_forward, calls, flags={"attention": "eager"})


def test_whisper_positions_as_inputs(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("whisper")
    call = call_of("whisper", 2, 5)
    count = call["decoder_input_ids"].shape[1]
    calls = [call | {"decoder_position_ids": torch.arange(count).expand(2, -1) + 3}]
    compare(load(folder), folder, eager_forward, calls)


def test_whisper_takes_one_length_of_speech(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("whisper")
    call = call_of("whisper", 2, 5)
    for size, text in (
        ((2, 8, 30), "expected frames 40, got 30; pad or cut"),
        ((2, 9, 40), "expected mel bins 8, got 9"),
    ):
        given = call | {"input_features": torch.zeros(size)}
        assert text in eager_forward(folder, [(given, None)], error=True)


@pytest.mark.parametrize("model_type,name", [("bart", "max_position_embeddings"), ("whisper", "max_target_positions")])
def test_positions_end(tiny_checkpoint, eager_forward, model_type, name):
    folder = tiny_checkpoint(model_type)
    call = call_of(model_type, 1, 5) | {"decoder_input_ids": torch.full((1, 65), 5)}
    message = eager_forward(folder, [(call, None)], error=True)
    assert f"'decoder_input_ids' has 65 tokens, but '{name}' is 64" in message


def test_sinusoidal_positions_have_no_end(tiny_checkpoint, eager_forward):
    folder = tiny_checkpoint("nllb-moe", max_position_embeddings=8)
    calls = [padded_inputs(2, 30, "left") | {"decoder_input_ids": torch.full((2, 25), 5)}]
    compare(load(folder, attention="eager"), folder, eager_forward, calls)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model_type,attention", ATTENTION)
def test_half_types(tiny_checkpoint, eager_forward, model_type, attention, dtype):
    """Stored in the type; and float32 weights converted on loading."""
    calls = [call_of(model_type, 2, 5)]
    if model_type == "whisper":
        calls[0]["input_features"] = calls[0]["input_features"].to(getattr(torch, dtype))
    for options in (dict(dtype=dtype), dict()):
        folder = tiny_checkpoint(model_type, init_std=0.02, **options)
        flags = {"attention": attention} | ({} if options else {"dtype": dtype})
        compare(load(folder, dtype, attention), folder, eager_forward, calls, dtype, flags)


@pytest.mark.parametrize("fields", [dict(), dict(feed_forward_proj="gated-gelu")], ids=["relu", "gated"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_t5_in_half_types(tiny_checkpoint, eager_forward, dtype, fields):
    """The last projection of a feed-forward part is float32 in models of float16, as are the sums after it."""
    for options in (dict(dtype=dtype), dict()):
        folder = tiny_checkpoint("t5", **options, **fields)
        model = load(folder, dtype)
        assert model.decoder.block[0].layer[2].DenseReluDense.wo.weight.dtype == (
            torch.float32 if dtype == "float16" else torch.bfloat16
        )
        calls = [call_of("t5", batch, length) for batch, length in ((1, 1), (2, 5), (3, 11))]
        compare(model, folder, eager_forward, calls, dtype, {} if options else {"dtype": dtype})


@pytest.mark.parametrize("model_type", ["bart", "whisper"])
def test_a_float16_encoder_that_overflows(tiny_checkpoint, eager_forward, model_type):
    """transformers keeps what leaves an encoder's layer a little below the largest number."""
    folder = tiny_checkpoint(model_type, dtype="float16", init_std=0.02)
    path = folder.with_name(folder.name + "-large")
    if not path.exists():
        shutil.copytree(folder, path)
        tensors = load_file(path / "model.safetensors")
        name = (
            "model.encoder.layers.0.final_layer_norm.weight"
            if model_type == "bart"
            else "model.encoder.layers.0.fc2.bias"
        )
        tensors[name] = torch.full_like(tensors[name], 60000.0)
        save_file(tensors, path / "model.safetensors", {"format": "pt"})
    call = call_of(model_type, 2, 5)
    if model_type == "whisper":
        call["input_features"] = call["input_features"].half()
    results = eager_forward(path, [(call, None)])
    with torch.no_grad():
        expected = load(path, "float16")(**call)
    found = results[0][0]["encoder_last_hidden_state"]
    assert torch.equal(found.isnan(), expected.encoder_last_hidden_state.isnan())
    close(found.nan_to_num(), expected.encoder_last_hidden_state.nan_to_num(), "float16")


def test_a_bias_of_the_logits(tiny_checkpoint, eager_forward, tmp_path):
    source = tiny_checkpoint("bart")
    for name, bias in (("some", torch.linspace(-3, 3, 99)[None]), ("none", None)):
        folder = tmp_path / name
        shutil.copytree(source, folder)
        tensors = load_file(folder / "model.safetensors")
        assert tensors.pop("final_logits_bias").shape == (1, 99)
        if bias is not None:
            tensors["final_logits_bias"] = bias
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        compare(load(folder), folder, eager_forward, [call_of("bart", 2, 5)])


@pytest.mark.parametrize("policy", ["sampling", "random"])
def test_experts_chosen_at_random_are_refused(tiny_checkpoint, eager_forward, policy):
    folder = tiny_checkpoint("nllb-moe", second_expert_policy=policy)
    message = eager_forward(folder, [(call_of("nllb-moe", 1, 5), None)], error=True)
    assert "second_expert_policy" in message and "can't be exported" in message


def test_output_is_that_of_transformers(tiny_checkpoint, eager_forward):
    names = {"bart": "Seq2SeqLMOutput", "whisper": "Seq2SeqLMOutput", "nllb-moe": "Seq2SeqMoEOutput"}
    for model_type, name in names.items():
        ((_, metadata),) = eager_forward(tiny_checkpoint(model_type), [(call_of(model_type, 1, 5), None)])
        spec = json.loads(metadata["spec"])[1]
        assert spec["type"] == f"transformers.modeling_outputs.{name}"
        assert spec["context"] == '["logits", "cache", "encoder_last_hidden_state"]'
        ((found, _),) = eager_forward(
            tiny_checkpoint(model_type), [(call_of(model_type, 1, 5), {"use_cache": "false"})]
        )
        assert set(found) == {"logits", "encoder_last_hidden_state"}


TRACED = {
    "bart": ("bart", dict()),
    "bart-classifier": ("bart", dict(model_class="BartForSequenceClassification")),
    "whisper": ("whisper", dict()),
    "nllb-moe": ("nllb-moe", dict()),
    "nllb-moe-capacity": ("nllb-moe", dict(moe_eval_capacity_token_fraction=0.3)),
    "t5": ("t5", dict()),
}


@pytest.mark.parametrize("format", ["dynamo", "onnx"])
@pytest.mark.parametrize("name", TRACED)
def test_one_trace_serves_every_size(cli, tiny_checkpoint, tmp_path, name, format):
    """The exported program, traced at one size, equals the eager model at others."""
    model_type, fields = TRACED[name]
    folder = tiny_checkpoint(model_type, **fields)
    cli("export", folder, "--to", format, "--dynamic", "--out", tmp_path / "out")
    result = json.loads(cli("verify", tmp_path / "out", "--reference", folder, "--json").stdout)
    assert result["ok"], result
    assert result["skipped"] == 0
    assert {1, 3} <= {run["batch"] for run in result["runs"]}
    assert model_type == "whisper" or len({run["length"] for run in result["runs"]}) > 2
