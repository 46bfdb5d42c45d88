"""What the coverage run takes for equal, and what for different."""

import coverage_setup  # noqa: F401  the path of harness
import pytest
import torch
from harness import compare, ties


def test_equal_outputs_have_no_difference():
    one = {"a": torch.tensor([1.0, float("nan"), float("inf")]), "b": torch.tensor([1, 2]), "c": torch.tensor([True])}
    assert compare.compare(one, {name: tensor.clone() for name, tensor in one.items()}) == 0


def test_rounding_is_no_difference_but_a_wrong_value_is():
    right = torch.linspace(-10, 10, 50)
    assert 0 < compare.compare({"a": right}, {"a": right + 5e-4}) < 1e-4
    wrong = right.clone()
    wrong[7] += 0.01
    with pytest.raises(compare.Mismatch, match=r"logits: 1 of 50 values differ.*first at \[7\]"):
        compare.compare({"logits": right}, {"logits": wrong})
    compare.compare({"logits": right}, {"logits": wrong}, compare.SIZES)


def test_tiny_tensors_have_an_absolute_floor():
    compare.compare({"a": torch.zeros(3)}, {"a": torch.full((3,), 5e-7)})
    with pytest.raises(compare.Mismatch):
        compare.compare({"a": torch.zeros(3)}, {"a": torch.full((3,), 5e-6)})


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "right, got, message",
    [
        (torch.tensor([1.0, 2]), torch.tensor([1.0, NAN]), "NaN or infinity at other places"),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2]), "NaN or infinity at other places"),
        (torch.tensor([1.0, INF]), torch.tensor([1.0, -INF]), "another kind"),
        (torch.tensor([1.0, INF]), torch.tensor([1.0, NAN]), "another kind"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "1 of 2 int64 values differ"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 bool values differ"),
        (torch.ones(2), torch.ones(2, 1), r"sizes \[2, 1\] instead of \[2\]"),
        (torch.ones(2), torch.ones(2).double(), "torch.float64 instead of torch.float32"),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 2j]), "1 of 2 values differ"),
    ],
)
def test_differences(right, got, message):
    with pytest.raises(compare.Mismatch, match=message):
        compare.compare({"x": right}, {"x": got})


def test_other_names_are_matched_by_order_and_a_missing_output_is_named():
    right = {"logits": torch.ones(1), "cache.0": torch.zeros(1)}
    compare.compare(right, {"output_0": torch.ones(1), "output_1": torch.zeros(1)})
    with pytest.raises(compare.Mismatch, match=r"1 outputs instead of 2; missing \['cache.0'\]"):
        compare.compare(right, {"logits": torch.ones(1)})


def test_numbers_are_compared_also_as_tensors():
    def cache(length):
        return {"cache": {"keys": torch.ones(2), "length": length}}

    right = compare.flatten(cache(5))
    compare.compare(right, compare.flatten(cache(5)))
    # A graph has no numbers, and may name what a cache keeps for itself.
    compare.compare(right, {"cache.keys": torch.ones(2)})
    compare.compare(
        right, {"cache.keys": torch.ones(2), "cache.length": torch.tensor(5), "cache._window": torch.ones(1)}
    )
    with pytest.raises(compare.Mismatch, match="cache.length: the number 6 instead of 5"):
        compare.compare(right, compare.flatten(cache(6)))
    with pytest.raises(compare.Mismatch, match="cache.length: the number 6 instead of 5"):
        compare.compare(right, {"cache.keys": torch.ones(2), "cache.length": torch.tensor(6)})
    with pytest.raises(compare.Mismatch, match=r"extra \['cache.other'\]"):
        compare.compare(right, {"cache.keys": torch.ones(2), "cache.other": torch.ones(2)})


def test_what_repeats_of_a_model_that_is_random():
    one, two, three = {"x": torch.ones(2, 3)}, {"x": torch.zeros(2, 3)}, {"x": torch.ones(2, 4)}
    assert compare.repeatable([one, {"x": torch.ones(2, 3)}]) == compare.VALUES
    assert compare.repeatable([one, two]) == compare.SIZES
    assert compare.repeatable([one, three]) == compare.RANKS
    compare.compare(one, three, compare.RANKS)
    for wrong in (torch.ones(2), torch.ones(2, 4).int()):
        with pytest.raises(compare.Mismatch):
            compare.compare(one, {"x": wrong}, compare.RANKS)


def test_outputs_and_caches_are_flattened_by_name():
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache
    from transformers.modeling_outputs import Seq2SeqModelOutput

    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    cache.self_attention_cache.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    output = Seq2SeqModelOutput(last_hidden_state=torch.ones(1), cache=cache, decoder_attentions=(torch.ones(2),))
    flat = compare.flatten(output)
    assert list(flat) == [
        "last_hidden_state",
        "cache.self_attention_cache.layers.0.keys",
        "cache.self_attention_cache.layers.0.values",
        "decoder_attentions.0",
    ]
    assert flat.numbers["cache.self_attention_cache.layers.0.is_initialized"] is True
    assert list(compare.flatten({"a": [torch.ones(1), (None, 3, torch.ones(1))]})) == ["a.0", "a.1.2"]
    assert list(compare.flatten(torch.ones(1))) == ["output"]


def test_the_first_of_equal_scores_is_taken_as_onnx_does():
    scores = torch.tensor([[0.0, 2, 0, 0, 2, 1]]).repeat(2, 1)
    original = torch.topk, torch.Tensor.topk
    with ties.first_of_equals():
        assert scores.topk(4).indices.tolist() == [[1, 4, 5, 0]] * 2
        values, indices = torch.topk(scores, 3, dim=0 - 1, largest=False)
        assert (values.tolist(), indices.tolist()) == ([[0, 0, 0]] * 2, [[0, 2, 3]] * 2)
        assert torch.topk(torch.tensor(3.0), 1).values == 3
    assert (torch.topk, torch.Tensor.topk) == original
