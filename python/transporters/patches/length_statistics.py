"""Means and deviations over the lengths of samples.

Why: X-vector heads compute them in a Python loop over the samples of a batch, up to a length that comes from the data,
so a graph would hold the sample's lengths. Here they are sums over all places within the lengths.
"""

from __future__ import annotations

import ast
from typing import Any

import torch

from . import rewriting


def means(features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """[features[i, :length].mean(0) for i, length in enumerate(lengths)], stacked."""
    within, counts = _within(features, lengths)
    return torch.where(within, features, 0).sum(1) / counts


def deviations(features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """[features[i, :length].std(0) for i, length in enumerate(lengths)], stacked."""
    within, counts = _within(features, lengths)
    distances = features - means(features, lengths)[:, None]
    return (torch.where(within, distances * distances, 0).sum(1) / (counts - 1)).sqrt()


def _within(features, lengths):
    """(batch, length, 1) and (batch, 1). A negative length counts from the end, as in a slice."""
    length = features.shape[1]
    ends = torch.where(lengths < 0, lengths + length, lengths).clamp(0, length)
    places = torch.arange(length, device=features.device)
    return (places[None] < ends[:, None])[..., None], ends[:, None].to(features.dtype)


_FUNCTIONS = {"mean": "means", "std": "deviations"}


class _Rewrite(ast.NodeTransformer):
    """The loop that appends statistics to lists as their computation, and what stacks the lists as nothing."""

    def __init__(self):
        self.lists: set[str] = set()

    def visit_For(self, node):
        found = [self._statistic(statement) for statement in node.body]
        if not (ast.unparse(node.iter).startswith("enumerate(") and all(found)):
            return node
        lengths = node.iter.args[0]
        made = []
        for name, features, function in found:
            self.lists.add(name)
            value = rewriting.call(__name__, _FUNCTIONS[function], ast.Name(features, ast.Load()), lengths)
            made.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return made

    def visit_Call(self, node):
        self.generic_visit(node)
        is_stack = ast.unparse(node.func) == "torch.stack" and len(node.args) == 1 and not node.keywords
        return node.args[0] if is_stack and ast.unparse(node.args[0]) in self.lists else node

    @staticmethod
    def _statistic(statement) -> tuple[str, str, str] | None:
        """(list, features, function) of `list.append(features[i, :length].function(dim=0))`."""
        text = ast.unparse(statement)
        name, _, rest = text.partition(".append(")
        features, _, function = rest.partition("[i, :length].")
        function = function.removesuffix("(dim=0))")
        return (name, features, function) if function in _FUNCTIONS else None


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules()}
    return [entry for cls in classes if cls.__name__.endswith("ForXVector")
            for entry in rewriting.entries(cls.forward, _Rewrite)]  # fmt: skip
