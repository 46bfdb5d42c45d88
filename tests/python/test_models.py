"""Native models run eagerly, compared with transformers at several sizes, paddings, types and head classes."""

import itertools
import subprocess

import pytest
import torch
import transformers
from safetensors.torch import load_file, safe_open, save_file

TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}
SIZES = list(itertools.product((1, 2, 3), (1, 5, 11)))
PAD = 0


def padded_inputs(batch, length, side, vocab=99):
    """Ids and mask where row i has i padding tokens on one side, none when they would fill the row."""
    generator = torch.Generator().manual_seed(batch * 100 + length)
    ids = torch.randint(3, vocab, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(batch):
        count = row if row < length else 0
        padding = slice(0, count) if side == "left" else slice(length - count, length)
        ids[row, padding] = PAD
        mask[row, padding] = 0
    return {"input_ids": ids, "attention_mask": mask}


def leaves(output):
    """Tensors of a transformers output by leaf path, as an export names them."""
    result = {}
    for name, value in output.items():
        if isinstance(value, torch.Tensor):
            result[name] = value
        elif isinstance(value, transformers.DynamicCache):
            for i, layer in enumerate(value.layers):
                result[f"{name}.layers.{i}.keys"] = layer.keys
                result[f"{name}.layers.{i}.values"] = layer.values
    return result


@pytest.fixture(scope="session")
def eager_forward(build_dir, tmp_path_factory):
    """eager_forward(folder, [inputs, ...], dtype=..., attention=...) runs them all in one process.

    Returns a list of (outputs, metadata); with `error=True` the text of the failure."""

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


def compare(model, folder, eager_forward, calls, dtype="float32", **options):
    """Runs `calls` (dicts of inputs) in both and compares every leaf, its type, and the parameters' names."""
    results = eager_forward(folder, [(call, None) for call in calls], **options)
    for call, (found, metadata) in zip(calls, results, strict=True):
        with torch.no_grad():
            expected = leaves(model(**call))
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name].dtype == value.dtype, name
            torch.testing.assert_close(
                found[name].float(), value.float(), atol=TOLERANCE[dtype], rtol=0, msg=lambda m, n=name: f"{n}: {m}"
            )
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert results[0][1]["parameters"].split() == names
    return results


def load(folder, dtype="float32", attention="sdpa", model_class=None):
    cls = getattr(transformers, model_class or transformers.AutoConfig.from_pretrained(folder).architectures[0])
    return cls.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation=attention).eval()


def all_sizes():
    calls = [padded_inputs(b, n, side) for (b, n), side in itertools.product(SIZES, ("left", "right"))]
    return calls + [{"input_ids": call["input_ids"]} for call in calls[::6]]


BERT_CLASSES = [
    "BertModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
]


@pytest.mark.parametrize("model_class", BERT_CLASSES)
def test_bert(tiny_checkpoint, eager_forward, model_class):
    folder = tiny_checkpoint("bert", model_class)
    calls = all_sizes()
    ids = calls[-1]["input_ids"]
    calls.append({"input_ids": ids, "token_type_ids": (ids % 2), "position_ids": torch.arange(ids.shape[1])[None] + 3})
    compare(load(folder), folder, eager_forward, calls)
