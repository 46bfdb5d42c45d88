"""Features of images that are padded to equally many for each sample.

Why: the Idefics family counts the numbers of an image with `torch.Size.numel()`, which answers with a plain number,
and collects the features of each sample in a list, which fixes the number of samples. Both places are replaced in the
function's own code; the rest of it stays as it is.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

import torch

from . import rewriting
from .pieces import Pieces


def flat_pieces(pieces):
    """[piece.reshape(-1, piece.shape[-1]) for piece in pieces]."""
    if type(pieces) is Pieces and pieces.dim == 0:
        return pieces.flattened()
    return [piece.reshape(-1, piece.shape[-1]) for piece in pieces]


class _Rewrite(ast.NodeTransformer):
    """`x.shape[...].numel()` as a product, and the list of flattened pieces as one call."""

    def visit_Call(self, node):
        self.generic_visit(node)
        function = node.func
        is_numel = isinstance(function, ast.Attribute) and function.attr == "numel" and not node.args
        if not (is_numel and isinstance(function.value, ast.Subscript)):
            return node
        sizes = function.value.value
        if not (isinstance(sizes, ast.Attribute) and sizes.attr == "shape"):
            return node
        return rewriting.call("math", "prod", function.value)

    def visit_ListComp(self, node):
        self.generic_visit(node)
        generator = node.generators[0]
        name = generator.target.id if isinstance(generator.target, ast.Name) else ""
        is_plain = len(node.generators) == 1 and not generator.ifs
        if not is_plain or ast.unparse(node.elt) != f"{name}.reshape(-1, {name}.shape[-1])":
            return node
        return rewriting.call(__name__, "flat_pieces", generator.iter)


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = []
    for cls in {type(module): None for module in model.modules()}:
        method = getattr(cls, "get_image_features", None)
        function = inspect.unwrap(method) if method is not None else None
        if not isinstance(function, types.FunctionType) or "numel" not in function.__code__.co_names:
            continue
        found += rewriting.entries(function, _Rewrite)
    return found
