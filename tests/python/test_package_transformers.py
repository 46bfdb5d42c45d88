"""transformers models through the Python package: outputs and caches in and out, folders that transformers loads."""

import copy
import json

import pytest
import torch
import transformers
from torch.export import Dim
from transformers import DynamicCache
from transformers.exporters.base import ExportedModel
from transformers.modeling_outputs import CausalLMOutputWithPast
from transporters import DynamoExporter, OnnxConfig, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)


@pytest.fixture(scope="module")
def llama(tiny_checkpoint):
    return transformers.AutoModelForCausalLM.from_pretrained(tiny_checkpoint("llama")).eval()


def prompt(batch=2, length=5):
    ids = torch.randint(0, 99, (batch, length), generator=torch.Generator().manual_seed(batch * length))
    mask = torch.ones_like(ids)
    if batch > 1 and length > 2:
        mask[0, :2] = 0
    return {"input_ids": ids, "attention_mask": mask}


def decode_inputs(model, batch=2, past=4, new=1):
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(**prompt(batch, past), past_key_values=cache)
    ids = torch.randint(0, 99, (batch, new), generator=torch.Generator().manual_seed(past))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones(batch, past + new, dtype=torch.int64),
        "past_key_values": cache,
        "use_cache": True,
    }


def close(actual, expected):
    return actual.shape == expected.shape and torch.allclose(actual, expected, atol=1e-4)


def same_cache(actual, expected):
    return len(actual.layers) == len(expected.layers) and all(
        close(a.keys, b.keys) and close(a.values, b.values) for a, b in zip(actual.layers, expected.layers)
    )


@both
def test_a_model_output_comes_back(exporter, llama):
    exported = exporter().export(llama, {**prompt(), "use_cache": False}, {"dynamic": True})
    for batch, length in ((1, 1), (2, 5), (3, 9)):
        inputs = prompt(batch, length)
        with torch.no_grad():
            expected = llama(**inputs, use_cache=False)
        actual = exported(**inputs)
        assert type(actual) is CausalLMOutputWithPast and list(actual) == ["logits"]
        assert close(actual.logits, expected.logits) and close(actual["logits"], expected[0])


@both
def test_a_cache_comes_back(exporter, llama):
    exported = exporter().export(llama, {**prompt(), "use_cache": True}, {"dynamic": True})
    inputs = prompt(3, 7)
    with torch.no_grad():
        expected = llama(**inputs, use_cache=True)
    actual = exported(**inputs)
    assert isinstance(actual.past_key_values, DynamicCache)
    assert same_cache(actual.past_key_values, expected.past_key_values)
    assert actual.past_key_values.get_seq_length() == 7


@both
def test_a_cache_goes_in_and_comes_out_longer(exporter, llama):
    inputs = decode_inputs(llama)
    lengths = [layer.keys.shape for layer in inputs["past_key_values"].layers]
    exported = exporter().export(llama, dict(inputs), {"dynamic": True})
    assert [layer.keys.shape for layer in inputs["past_key_values"].layers] == lengths
    for batch, past in ((2, 4), (1, 9), (3, 2)):
        given = decode_inputs(llama, batch, past)
        with torch.no_grad():
            expected = llama(**copy.deepcopy(given))
        given.pop("use_cache")
        actual = exported(**given)
        assert close(actual.logits, expected.logits)
        assert same_cache(actual.past_key_values, expected.past_key_values)


@both
def test_decoding_step_by_step_equals_eager(exporter, llama):
    exported = exporter().export(llama, decode_inputs(llama), {"dynamic": True})
    inputs = prompt(2, 3)
    inputs["attention_mask"][:] = 1
    cache = DynamicCache(config=llama.config)
    with torch.no_grad():
        logits = llama(**inputs, past_key_values=cache).logits
        ids = inputs["input_ids"]
        for step in range(4):
            token = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, token], dim=1)
            outputs = exported(
                input_ids=token, attention_mask=torch.ones(2, 4 + step, dtype=torch.int64), past_key_values=cache
            )
            logits, cache = outputs.logits, outputs.past_key_values
            assert close(logits[:, -1], llama(input_ids=ids, use_cache=False).logits[:, -1])


@both
def test_named_axes_and_output_flags(exporter, llama):
    batch, sequence = Dim("batch", max=16), Dim("sequence", max=64)
    shapes = {name: {0: batch, 1: sequence} for name in ("input_ids", "attention_mask")}
    inputs = {**prompt(), "use_cache": False, "output_hidden_states": True}
    exported = exporter().export(llama, dict(inputs), {"dynamic_shapes": shapes})
    other = prompt(1, 8)
    with torch.no_grad():
        expected = llama(**other, use_cache=False, output_hidden_states=True)
    actual = exported(**other)
    assert list(actual) == list(expected) and len(actual.hidden_states) == 3
    assert all(close(a, b) for a, b in zip(actual.hidden_states, expected.hidden_states))
    if exporter is OnnxExporter:
        assert {value.name: value.shape for value in exported.session().get_inputs()} == {
            name: ["batch", "sequence"] for name in shapes
        }


@both
def test_transformers_loads_and_runs_the_folder(exporter, llama, tmp_path):
    inputs = prompt()
    exported = exporter().export(llama, {**inputs, "use_cache": True}, {"dynamic": True})
    exported.save_pretrained(tmp_path / "out")
    exported.save_pretrained(tmp_path / "out")
    loaded = ExportedModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    assert loaded.config.to_dict() == llama.config.to_dict() or loaded.config.model_type == "llama"
    for other in (inputs, prompt(3, 7)):
        with torch.no_grad():
            expected = llama(**other, use_cache=True)
        actual = loaded(**other)
        assert close(actual.logits, expected.logits)
        assert same_cache(actual.past_key_values, expected.past_key_values)
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())
    assert manifest["export_format"] == str(exporter.export_format)
    (component,) = manifest["components"].values()
    assert component["metadata"]["architecture"] == "LlamaForCausalLM"
    assert component["metadata"]["export_config"]["dynamic"] is True
    assert component["metadata"]["packages"]["transformers"] == transformers.__version__
    assert component["metadata"]["kwargs"]["input_ids"] == {"rank": 2, "shape": [2, 5], "dtype": "int64"}


@both
def test_transformers_runs_a_decode_step_of_the_folder(exporter, llama, tmp_path):
    exporter().export(llama, decode_inputs(llama), {"dynamic": True}).save_pretrained(tmp_path / "out")
    loaded = ExportedModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    given = decode_inputs(llama, 3, 6)
    with torch.no_grad():
        expected = llama(**copy.deepcopy(given))
    given.pop("use_cache")
    actual = loaded(**given)
    assert close(actual.logits, expected.logits) and same_cache(actual.past_key_values, expected.past_key_values)


def test_the_pt2_loads_in_torch(llama, tmp_path):
    DynamoExporter().export(llama, {**prompt(), "use_cache": False}, {"dynamic": True}).save(tmp_path / "llama.pt2")
    module = torch.export.load(tmp_path / "llama.pt2").module()
    inputs = prompt(3, 7)
    with torch.no_grad():
        assert close(module(**inputs).logits, llama(**inputs, use_cache=False).logits)


def test_tied_weights_are_stored_once(tiny_checkpoint, tmp_path):
    """huggingface/optimum#1326; and two distinct matrices of an untied model stay two (onnxruntime-genai#2306)."""
    fields = dict(vocab_size=4000, num_hidden_layers=1)
    for tied in (True, False):
        checkpoint = tiny_checkpoint("llama", tie_word_embeddings=tied, **fields)
        model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint).eval()
        assert tied == (model.lm_head.weight is model.model.embed_tokens.weight)
        unique = sum(parameter.numel() * 4 for parameter in model.parameters())
        inputs = {**prompt(), "use_cache": False}
        OnnxExporter().export(model, dict(inputs), OnnxConfig()).save(tmp_path / "m.onnx")
        DynamoExporter().export(model, dict(inputs)).save(tmp_path / "m.pt2")
        data = (tmp_path / "m.onnx.data").stat().st_size
        assert unique <= data + 20_000 and data <= 1.05 * unique
        # A .pt2 holds two names of one weight and its graph besides.
        assert (tmp_path / "m.pt2").stat().st_size <= 1.05 * unique + 200_000


def test_sample_inputs_can_be_given_to_the_export_afterwards(llama):
    """As with transformers' exporters, flags are taken out of the dict that was given."""
    inputs = {**prompt(), "use_cache": False}
    exported = OnnxExporter().export(llama, inputs)
    with torch.no_grad():
        assert close(exported(**inputs).logits, llama(**inputs, use_cache=False).logits)


@both
def test_a_model_that_is_given_labels_is_exported_with_its_loss(exporter, llama):
    def inputs(batch, length):
        given = prompt(batch, length)
        return {**given, "labels": given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)}

    exported = exporter().export(llama, {**inputs(2, 5), "use_cache": False}, {"dynamic": True})
    for given in (inputs(2, 7), inputs(3, 4)):
        with torch.no_grad():
            expected = llama(**given, use_cache=False)
        actual = exported(**given)
        assert close(actual.loss, expected.loss) and close(actual.logits, expected.logits)
