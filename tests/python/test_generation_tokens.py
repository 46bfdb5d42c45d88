"""Exported stages give the tokens of model.generate(): exported at other sizes than they run at, in both formats."""

import generation_loops as loops
import generation_models as models
import pytest
import torch
from transformers import GenerationConfig, StaticCache
from transporters import DynamoExporter, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)
NAMES = [*models.CONFIGS, "qwen2_vl", "llava"]
STATIC = ["llama", "qwen3", "gemma2", "gemma3", "gpt2", "mistral", "smollm3", "qwen3_moe", "mixtral"]
FIXED = dict(cache_implementation="static", max_cache_len=48)


def sample(name):
    return models.inputs(name, 3, 7, 2)


def prompt(name):
    return models.inputs(name, 2, 9, 3, seed=1)


@pytest.mark.parametrize("name", NAMES)
@both
def test_twenty_tokens(exporter, name):
    model = models.build(name)
    exported = exporter().export_for_generation(model, sample(name), {"dynamic": True})
    expected = loops.greedy(model, prompt(name))
    actual, calls = loops.driven(model, exported, prompt(name))
    assert torch.equal(actual, expected)
    assert calls.count("decode") == 19 and set(calls) == set(exported)
    assert len(set(expected[:, -20:].flatten().tolist())) > 2  # tokens that tell something


@pytest.mark.parametrize("name", ["llama", "t5", "mamba"])
@both
def test_a_prompt_without_padding_and_one_of_a_token(exporter, name):
    """generate() gives no mask then."""
    model = models.build(name)
    exported = exporter().export_for_generation(model, sample(name), {"dynamic": True})
    for batch, length in ((2, 9), (1, 1), (4, 1)):
        given = models.inputs(name, batch, length)
        assert torch.equal(loops.driven(model, exported, given)[0], loops.greedy(model, given))


@pytest.mark.parametrize("name", [*STATIC, "t5", "bart"])
@both
def test_static_caches(exporter, name):
    model = models.build(name)
    exported = exporter().export_for_generation(
        model, sample(name), {"dynamic": True}, generation_config=GenerationConfig(**FIXED)
    )
    for given in (prompt(name), models.inputs(name, 2, 2)):
        expected = loops.greedy(model, given, **FIXED)
        assert torch.equal(loops.driven(model, exported, given, **FIXED)[0], expected)


def empty_cache(model, batch, length=48):
    cache, config = StaticCache(config=model.config, max_cache_len=length), model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    cache.early_initialization(batch, heads, size, torch.float32, "cpu")
    return cache


def buffers(cache):
    return [
        tensor.data_ptr() for layer in cache.layers for tensor in (layer.keys, layer.values, layer.cumulative_length)
    ]


@pytest.mark.parametrize("name", STATIC)
@both
def test_one_decode_graph_for_prompts_chunks_and_tokens(exporter, name):
    model = models.build(name)
    exported = exporter().export_for_generation(
        model, sample(name), {"dynamic": True}, generation_config=GenerationConfig(**FIXED), multi_token_decode=True
    )
    for chunks in ((1,), (13,), (5, 8)):
        given = models.inputs(name, 2, sum(chunks), min(3, sum(chunks) - 1), seed=1)
        expected = loops.greedy(model, given)
        cache = empty_cache(model, 2)
        addresses = buffers(cache)
        steps = loops.Steps(model, exported["decode"], cache)
        for ids, mask in zip(given["input_ids"].split(chunks, 1), given["attention_mask"].split(chunks, 1)):
            logits = steps(ids, mask)
        tokens = given["input_ids"]
        for _ in range(20):
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
            logits = steps(tokens[:, -1:])
        assert torch.equal(tokens, expected)
        assert steps.cache is cache and buffers(cache) == addresses
        assert {int(layer.get_seq_length()) for layer in cache.layers} == {sum(chunks) + 20}

        # Four guessed tokens at once: as many answers.
        length = sum(chunks)
        steps = loops.Steps(model, exported["decode"], empty_cache(model, 2))
        steps(given["input_ids"], given["attention_mask"])
        answers = steps(expected[:, length : length + 4]).argmax(-1)
        assert torch.equal(answers, expected[:, length + 1 : length + 5])


@pytest.mark.parametrize("name", ["llama", "gemma3", "mamba2"])
@both
def test_dynamic_caches_with_several_tokens(exporter, name):
    """A chunk after the prompt, and single tokens, through one decode graph; the prompt through its own."""
    model = models.build(name)
    exported = exporter().export_for_generation(model, sample(name), {"dynamic": True}, multi_token_decode=True)
    given = prompt(name)
    expected = loops.greedy(model, given)
    assert torch.equal(loops.driven(model, exported, given)[0], expected)
    driver = loops.Driver(model, exported)
    with driver.in_place():
        loops.greedy(model, given, count=3)
        cache = driver.last.cache
    steps = loops.Steps(model, exported["decode"], cache)
    steps.mask = torch.cat([given["attention_mask"], torch.ones(2, 2, dtype=torch.int64)], dim=1)
    answers = steps(expected[:, 11:15]).argmax(-1)
    assert torch.equal(answers, expected[:, 12:16])
