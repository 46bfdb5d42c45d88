"""Folders that the command line writes, loaded by transformers' own ExportedModel, against eager transformers."""

import pytest
import torch
import transformers
from transformers.exporters.base import ExportedModel
from transformers.exporters.utils import get_leaf_tensors

CLASSES = {"bert": "BertModel", "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}


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


@pytest.mark.parametrize("sample", [(2, 5), (1, 1)])
@pytest.mark.parametrize("format", ["onnx", "dynamo"])
@pytest.mark.parametrize("model_type", CLASSES)
def test_an_exported_folder_runs_like_eager_at_every_size(cli, tiny_checkpoint, tmp_path, model_type, format, sample):
    checkpoint = tiny_checkpoint(model_type)
    batch, length = sample
    cli("export", checkpoint, "--to", format, "--dynamic", "--batch", batch, "--sequence", length, "--out", tmp_path)
    exported = ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    model = getattr(transformers, CLASSES[model_type]).from_pretrained(checkpoint).eval()
    for inputs in padded_batches(model.config.vocab_size):
        with torch.no_grad():
            expected = get_leaf_tensors(model(**inputs))
        actual = get_leaf_tensors(exported(**inputs))
        assert list(actual) == list(expected)
        for name in expected:
            assert actual[name].shape == expected[name].shape
            scale = expected[name].abs().max()
            assert (actual[name] - expected[name]).abs().max() <= 1e-4 * scale, (name, tuple(inputs["input_ids"].shape))
