"""A model of the zoo with its inputs and what eager makes of them."""

import copy

import torch

from harness import cases
from harness.compare import flatten, repeatable
from harness.stages import Failure, stage
from harness.variations import Variation, signature, vary


class Case:
    """A model with its inputs and what eager makes of them, at the traced sizes and at others."""

    baseline = "eager"  # the stage, and the mode of the record that says whether the case counts

    def __init__(self, name: str, dynamic: bool = True):
        """Builds and runs eager. Raises Failure when the case doesn't run, which excludes it."""
        self.name, self.dynamic = name, dynamic
        self.prepare()

    def prepare(self) -> None:
        with stage("build"):
            self.model, self.inputs = self.build()
        with stage(self.baseline):
            expected = self.eager(self.inputs)
            again = self.eager(self.inputs)
        if not expected:
            raise Failure(self.baseline, "no tensor among the outputs")
        others = self.vary(expected)
        # Once more after the other sizes: a model that keeps something from them can't be compared by value.
        self.level = repeatable([expected, again, self.eager(self.inputs)])
        self.sample = Variation("sample", self.inputs, expected)
        self.state = {name: tensor.detach().clone() for name, tensor in tensors_of(self.model).items()}
        self.same_sizes = [v for v in others if v.name == "values"]
        self.other_sizes = [v for v in others if v.name != "values"]

    def build(self) -> tuple[torch.nn.Module, dict]:
        return cases.zoo().build(self.name)

    def vary(self, outputs: dict) -> list[Variation]:
        return vary(cases.zoo(), self.name, self.model, self.inputs, self.eager, self.dynamic, outputs)

    def eager(self, inputs: dict) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            return flatten(self.model(**copy.deepcopy(inputs)))

    def variations(self, dynamic: bool) -> list[Variation]:
        """What an export is verified with: the traced inputs, others of the same sizes, and with dynamic other
        sizes."""
        return [self.sample, *self.same_sizes, *(self.other_sizes if dynamic else ())]

    def describe(self) -> dict:
        variations = [*self.same_sizes, *self.other_sizes]
        return {
            "group": cases.group(self.name),
            "families": cases.families(self.model),
            "compared": self.level,
            "inputs": signature(self.inputs),
            "variations": {v.name: signature(v.inputs) for v in variations if v.name != "values"},
        }


def tensors_of(model) -> dict[str, torch.Tensor]:
    """Parameters and all buffers, also those that no checkpoint holds."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
