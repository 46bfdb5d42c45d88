"""Choices among elements that are equal: eager with ONNX's, and tokens of equal scores.

torch.topk takes any of equal elements at its cut (https://docs.pytorch.org/docs/stable/generated/torch.topk.html),
ONNX's TopK the first. Scores of tiny models are equal often: zeros behind a relu, say.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harness.compare import Mismatch, compare


def _topk(self, k, dim=-1, largest=True, sorted=True, *, out=None):
    ordered = torch.sort(self, dim=dim, descending=largest, stable=True)
    kept = [part.narrow(dim, 0, int(k)) if self.dim() else part for part in ordered]
    return torch.return_types.topk(kept)


@contextmanager
def first_of_equals() -> Iterator[None]:
    """torch.topk takes the first of equal elements, in the order of the tensor."""
    function, method = torch.topk, torch.Tensor.topk
    torch.topk = lambda input, *args, **kwargs: _topk(input, *args, **kwargs)
    torch.Tensor.topk = _topk
    try:
        yield
    finally:
        torch.topk, torch.Tensor.topk = function, method


class kept_choices:
    """A logits processor that keeps the scores from which each token is chosen."""

    def __init__(self):
        self.scores: list[torch.Tensor] = []

    def __call__(self, input_ids, scores):
        self.scores.append(scores.detach().clone())
        return scores


class forced_choices:
    """A logits processor for a second run: the tokens are those of the scores that another run kept, so that every step
    has the same past. Raises Mismatch for scores that aren't the same but for rounding; `others` counts the tokens that
    would be others, whose scores are the largest but for that."""

    def __init__(self, scores: list[torch.Tensor]):
        self.scores, self.steps, self.others = scores, 0, 0

    def __call__(self, input_ids, scores):
        if self.steps == len(self.scores):
            raise Mismatch(f"token {self.steps}: one more than the model makes")
        expected = self.scores[self.steps]
        compare({f"scores {self.steps}": expected}, {f"scores {self.steps}": scores})
        self.others += int((scores.argmax(-1) != expected.argmax(-1)).sum())
        self.steps += 1
        return expected
