"""Generation as it went wrong for people: each test names the reports it is built from."""

import copy

import generation_loops as loops
import generation_models as models
import pytest
import torch
import transformers
from transformers import DynamicCache, GenerationConfig, StaticCache
from transporters import DynamoExporter, ExportError, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)


def static(length):
    return GenerationConfig(cache_implementation="static", max_cache_len=length)


def empty_cache(model, batch, length):
    cache = StaticCache(config=model.config, max_cache_len=length)
    cache.early_initialization(batch, 2, 8, torch.float32, "cpu")
    return cache


def close(actual, expected):
    return actual.shape == expected.shape and torch.allclose(actual, expected, atol=1e-4)


def whole(model, ids, mask):
    """Logits without a cache."""
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits


@pytest.mark.parametrize("name", ["gemma2", "gemma3"])
@both
def test_a_static_window_moves_on_at_the_right_token(exporter, name):
    """huggingface/transformers#37574, #35681: window 4, a prompt of 3 with padding, past the window token by token."""
    model = models.build(name)
    exported = exporter().export_for_generation(
        model, models.inputs(name, 2, 3, 1), {"dynamic": True}, generation_config=static(16), multi_token_decode=True
    )
    ids = models.inputs(name, 2, 11, 1, seed=3)["input_ids"]
    mask = (ids != 0).long()
    steps = loops.Steps(model, exported["decode"], empty_cache(model, 2, 16))
    logits = [steps(ids[:, :3], mask[:, :3])[:, -1]]
    logits += [steps(ids[:, at : at + 1], mask[:, at : at + 1])[:, -1] for at in range(3, 11)]
    assert close(torch.stack(logits, 1), whole(model, ids, mask)[:, 2:])


@pytest.mark.parametrize("stage", ["prefill", "decode"])
@both
def test_layers_with_a_window_past_it(exporter, stage):
    """labscommunity/cascadia#151, microsoft/onnxruntime-genai#2277: alike for short prompts, another mask past the
    window."""
    model = models.build("gemma3")
    exported = exporter().export_for_generation(model, models.inputs("gemma3", 2, 3, 1), {"dynamic": True})
    given = models.inputs("gemma3", 2, 12, seed=1)
    inputs = {**given, "position_ids": torch.arange(12).expand(2, 12), "cache": DynamicCache(config=model.config)}
    expected = whole(model, given["input_ids"], given["attention_mask"])
    first = {name: value if name == "cache" else value[:, :11] for name, value in inputs.items()}
    if stage == "prefill":
        assert close(loops.runnable(exported["prefill"])(**inputs).logits, expected)
        return
    # The cache is eager's, which keeps what is in the window only.
    with torch.no_grad():
        model(**first)
    assert inputs["cache"].layers[0].keys.shape[2] == 3
    last = {**inputs, "input_ids": given["input_ids"][:, 11:], "position_ids": torch.full((2, 1), 11)}
    outputs = loops.runnable(exported["decode"])(**last)
    assert close(outputs.logits[:, 0], expected[:, 11])
    assert outputs.cache.get_seq_length() == 12


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@both
def test_positions_go_on_where_the_tokens_are(exporter, padding):
    """huggingface/transformers#48161, huggingface/optimum-intel#1761: layers without rope, and padding on either
    side."""
    model = models.build("smollm3")
    exported = exporter().export_for_generation(model, models.inputs("smollm3", 3, 7, 2), {"dynamic": True})
    ids = models.inputs("smollm3", 2, 5, seed=2)["input_ids"]
    mask = torch.ones_like(ids)
    if padding != "none":
        mask[0, :2] = 0
        mask = mask if padding == "left" else mask.flip(1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    outputs = loops.runnable(exported["prefill"])(
        input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache
    )
    decode = loops.runnable(exported["decode"])
    last = mask.cumsum(1).argmax(1)
    for _ in range(6):
        token = outputs.logits[torch.arange(2), last].argmax(-1)[:, None]
        ids, mask = torch.cat([ids, token], 1), torch.cat([mask, torch.ones(2, 1, dtype=torch.int64)], 1)
        position = mask.sum(1, keepdim=True) - 1
        outputs = decode(input_ids=token, attention_mask=mask, position_ids=position, cache=outputs.cache)
        last = torch.zeros(2, dtype=torch.int64)
        assert close(outputs.logits[:, 0], whole(model, ids, mask)[:, -1])


@both
def test_an_encoder_with_padding(exporter):
    """huggingface/optimum-executorch#230: masks of the encoder and in the decoder; relative positions of real
    lengths."""
    model = models.build("t5")
    exported = exporter().export_for_generation(model, models.inputs("t5", 2, 6, 1), {"dynamic": True})
    ids = torch.randint(5, 90, (2, 9), generator=torch.Generator().manual_seed(4))
    mask = torch.ones_like(ids)
    mask[0, 5:] = 0
    padded, _ = loops.driven(model, exported, {"input_ids": ids, "attention_mask": mask}, count=4)
    assert torch.equal(padded, loops.greedy(model, {"input_ids": ids, "attention_mask": mask}, count=4))
    alone = {"input_ids": ids[:1, :5], "attention_mask": mask[:1, :5]}
    assert torch.equal(padded[:1], loops.driven(model, exported, alone, count=4)[0])
    encoder = loops.runnable(exported["encoder"])
    states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    assert close(states[:1, :5], encoder(**alone).last_hidden_state)


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
@pytest.mark.parametrize("length", [5, 2])
@both
def test_states_of_a_recurrence(exporter, name, length):
    """huggingface/transformers#36403, pytorch/pytorch#146835: also a prompt that is shorter than the convolution."""
    model = models.build(name)
    exported = exporter().export_for_generation(model, models.inputs(name, 2, 7, 2), {"dynamic": True})
    given = models.inputs(name, 3, length, seed=5)
    with torch.no_grad():
        expected = model(**given, use_cache=True)
        actual = loops.runnable(exported["prefill"])(**given, cache=DynamicCache(config=model.config))
        for _ in range(5):
            assert close(actual.logits[:, -1], expected.logits[:, -1])
            for one, other in zip(actual.cache.layers, expected.cache.layers):
                assert close(one.conv_states[0], other.conv_states[0])
                assert close(one.recurrent_states[0], other.recurrent_states[0])
            token = expected.logits[:, -1:].argmax(-1)
            expected = model(input_ids=token, cache=expected.cache, use_cache=True)
            actual = loops.runnable(exported["decode"])(input_ids=token, cache=actual.cache)
    if exporter is OnnxExporter:
        session = exported["decode"].session()
        states = {f"cache.layers.{layer}.{kind}_states.0" for layer in (0, 1) for kind in ("conv", "recurrent")}
        assert {f"input.{state}" for state in states} <= {value.name for value in session.get_inputs()}
        assert {f"output.{state}" for state in states} <= {value.name for value in session.get_outputs()}


@pytest.mark.parametrize("name", ["whisper", "t5", "bart"])
def test_a_decode_step_reads_the_encoders_keys_and_leaves_them_alone(name):
    """huggingface/optimum-executorch#187, huggingface/optimum#869, #872, microsoft/onnxruntime#23549."""
    model = models.build(name)
    exported = OnnxExporter().export_for_generation(model, models.inputs(name, 3, 7, 2), {"dynamic": True})
    given = models.inputs(name, 2, 9, 3, seed=1)
    assert torch.equal(loops.driven(model, exported, given, count=5)[0], loops.greedy(model, given, count=5))
    session = exported["decode"].session()
    cross = [value.name for value in session.get_inputs() if "cross_attention_cache" in value.name]
    assert len(cross) == 4 and not any("cross" in value.name for value in session.get_outputs())
    weights = {value.name for value in exported["decode"].model_proto.graph.initializer}
    attention = {"whisper": "encoder_attn", "bart": "encoder_attn", "t5": "EncDecAttention"}[name]
    of_cross = [weight for weight in weights if attention in weight and "layer_norm" not in weight]
    of_keys = [weight for weight in of_cross if any(part in weight for part in ("k_proj", "v_proj", ".k.", ".v."))]
    assert of_cross and not of_keys


@both
def test_a_cache_that_is_full_takes_no_more(exporter):
    """huggingface/transformers#32503: 8 places, a prompt of 6; nothing beyond the buffer is written."""
    model = models.build("llama")
    exported = exporter().export_for_generation(
        model, models.inputs("llama", 2, 5), {"dynamic": True}, generation_config=static(8), multi_token_decode=True
    )
    given = models.inputs("llama", 2, 6)
    expected = loops.greedy(model, given, count=3)
    cache = empty_cache(model, 2, 8)
    steps = loops.Steps(model, exported["decode"], cache)
    logits, tokens = steps(given["input_ids"]), given["input_ids"]
    for _ in range(2):
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
        logits = steps(tokens[:, -1:])
    assert torch.equal(torch.cat([tokens, logits[:, -1:].argmax(-1)], 1), expected)
    before = copy.deepcopy(cache)
    full = {
        "input_ids": tokens[:, -1:],
        "attention_mask": torch.ones(2, 1, 1, 8, dtype=torch.bool),
        "position_ids": torch.full((2, 1), 8),
        "cache": cache,
    }
    with pytest.raises(ExportError, match="'cache' has 8 tokens and room for 8: 1 more do not fit.*max_cache_len"):
        loops.runnable(exported["decode"])(**full)
    for one, other in zip(cache.layers, before.layers):
        assert torch.equal(one.keys, other.keys) and torch.equal(one.cumulative_length, other.cumulative_length)


@both
def test_chunks_of_any_length_fill_a_static_cache(exporter):
    """pytorch/executorch#12476, huggingface/optimum-executorch#73: 5 tokens, 3, then single ones."""
    model = models.build("llama")
    exported = exporter().export_for_generation(
        model, models.inputs("llama", 2, 6, 1), {"dynamic": True}, generation_config=static(16), multi_token_decode=True
    )
    given = models.inputs("llama", 2, 10, seed=1)
    expected = whole(model, given["input_ids"], given["attention_mask"])
    steps = loops.Steps(model, exported["decode"], empty_cache(model, 2, 16))
    assert close(torch.cat([steps(ids) for ids in given["input_ids"].split([5, 3, 1, 1], 1)], 1), expected)


@pytest.mark.parametrize("model_type", ["llama", "marian"])
def test_stages_share_one_copy_of_the_weights(model_type, tmp_path):
    """pytorch/executorch#12804, kcosta42/Marian-ONNX-Converter#2, sophgo/LLM-TPU#120."""
    if model_type == "llama":
        model = models.build("llama", vocab_size=2000, tie_word_embeddings=True)
    else:
        torch.manual_seed(0)
        sizes = dict(models.ENCODER_DECODER, vocab_size=2000, decoder_vocab_size=2000, max_position_embeddings=64)
        config = transformers.MarianConfig(**{**sizes, "tie_word_embeddings": True})
        model = transformers.MarianMTModel(config).eval()
    unique = {parameter.data_ptr(): parameter.numel() * 4 for parameter in model.parameters()}
    exported = OnnxExporter().export_for_generation(model, models.inputs("llama", 2, 7, 2), {"dynamic": True})
    exported.save_pretrained(tmp_path / "out")
    data = [file.stat().st_size for file in (tmp_path / "out").iterdir() if ".data" in file.name]
    assert sum(data) <= 1.1 * sum(unique.values())
