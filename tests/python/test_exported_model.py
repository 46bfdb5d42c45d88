"""Folders that the command line writes, loaded by transformers' own ExportedModel, against eager transformers."""

import pytest
import torch
import transformers
from conftest import TINY_MODELS
from transformers.exporters.base import ExportedModel
from transformers.exporters.utils import get_leaf_tensors

TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}


def padded_batches(vocab_size):
    """Inputs of batch 1 to 3 and length 1, 5, 11, without padding, and padded left and right."""
    torch.manual_seed(0)
    for batch in (1, 2, 3):
        for length in (1, 5, 11):
            for padding in ("none", "left", "right"):
                ids = torch.randint(3, vocab_size, (batch, length))
                mask = torch.ones_like(ids)
                if batch > 1 and length > 2:
                    mask[0, {"none": slice(0, 0), "left": slice(0, 2), "right": slice(-2, None)}[padding]] = 0
                yield {"input_ids": ids, "attention_mask": mask}


def image_batches(config, dtype):
    torch.manual_seed(0)
    for batch in (1, 2, 3, 5):
        yield {
            "pixel_values": torch.randn(batch, config.num_channels, config.image_size, config.image_size, dtype=dtype)
        }


def speech_batches(config):
    torch.manual_seed(0)
    for batch in (1, 2, 3):
        for length in (1, 5, 11):
            features = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)
            yield {
                "input_features": features,
                "decoder_input_ids": torch.randint(3, config.vocab_size, (batch, length)),
            }


def batches(model_type, config, dtype):
    if model_type == "vit":
        return image_batches(config, dtype)
    return speech_batches(config) if model_type == "whisper" else padded_batches(config.vocab_size)


def check(cli, checkpoint, model_type, out, format, *options):
    cli("export", checkpoint, "--to", format, "--dynamic", "--out", out, *options)
    exported = ExportedModel.from_pretrained(out, trust_remote_code=True)
    model = getattr(transformers, TINY_MODELS[model_type][1]).from_pretrained(checkpoint, dtype="auto").eval()
    config = model.config
    for inputs in batches(model_type, config, model.dtype):
        if config.is_encoder_decoder and "decoder_input_ids" not in inputs:
            inputs = {**inputs, "decoder_input_ids": inputs["input_ids"].flip(-1)}
        with torch.no_grad():
            expected = get_leaf_tensors(model(**inputs))
        actual = get_leaf_tensors(exported(**inputs))
        assert list(actual) == list(expected)
        for name, wanted in expected.items():
            got = actual[name]
            if ".layers." in name and got.shape != wanted.shape:
                # Exports keep all keys of a sliding layer, as transformers' own do; eager keeps the window.
                assert getattr(config, "sliding_window", None)
                got = got[:, :, -wanted.shape[2] :]
            assert got.shape == wanted.shape and got.dtype == wanted.dtype
            if not wanted.is_floating_point():
                assert got.equal(wanted), name
                continue
            difference = (got.float() - wanted.float()).abs().max()
            allowed = TOLERANCE[wanted.dtype] * wanted.float().abs().max()
            assert difference <= allowed, (name, {key: tuple(value.shape) for key, value in inputs.items()})


@pytest.mark.parametrize("sample", [(2, 5), (1, 1)])
@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("model_type", TINY_MODELS)
def test_an_exported_folder_runs_like_eager_at_every_size(cli, tiny_checkpoint, tmp_path, model_type, format, sample):
    batch, length = sample
    options = ["--batch", batch] if model_type == "vit" else ["--batch", batch, "--sequence", length]
    check(cli, tiny_checkpoint(model_type), model_type, tmp_path, format, *options)


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model_type", ["roberta", "llama", "gemma3_text", "gpt2", "vit"])
def test_half_precision_checkpoints(cli, tiny_checkpoint, tmp_path, model_type, dtype, format):
    check(cli, tiny_checkpoint(model_type, dtype=dtype), model_type, tmp_path, format)


@pytest.mark.parametrize("format", ["onnx", "dynamo"])
def test_sharded_checkpoints(cli, tiny_checkpoint, tmp_path, format):
    checkpoint = tiny_checkpoint("qwen3", max_shard_size="20KB")
    assert len(list(checkpoint.glob("model-*.safetensors"))) > 1
    check(cli, checkpoint, "qwen3", tmp_path, format)
