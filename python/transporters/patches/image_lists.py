"""Features of images that are padded to equally many for each sample.

Why: the Idefics family counts the numbers of an image with `torch.Size.numel()`, which answers with a plain number, and
collects the features of each sample in a list, which fixes the number of samples. Both places are replaced in the
function's own code; the rest of it stays as it is.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any

import torch

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
        return _call("math", "prod", function.value)

    def visit_ListComp(self, node):
        self.generic_visit(node)
        generator = node.generators[0]
        name = generator.target.id if isinstance(generator.target, ast.Name) else ""
        if ast.unparse(node.elt) != f"{name}.reshape(-1, {name}.shape[-1])" or generator.ifs or len(node.generators) > 1:
            return node
        return _call(__name__, "flat_pieces", generator.iter)


def _call(module: str, name: str, argument: ast.expr) -> ast.expr:
    """module.name(argument), whatever names the function's own module has."""
    call = ast.parse(f"__import__({module!r}, fromlist=['']).{name}()", mode="eval").body
    call.args = [argument]
    return call


@functools.lru_cache(maxsize=None)
def _rewritten(code: types.CodeType) -> types.CodeType | None:
    """The code of a function with the replacements, None when it has nothing to replace."""
    source = textwrap.dedent("".join(inspect.getsourcelines(code)[0]))
    tree = ast.parse(source)
    function = tree.body[0]
    function.decorator_list, function.returns = [], None
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    before = ast.dump(tree)
    tree = _Rewrite().visit(tree)
    if ast.dump(tree) == before:
        return None
    ast.increment_lineno(ast.fix_missing_locations(tree), code.co_firstlineno - 1)
    module = compile(tree, code.co_filename, "exec", dont_inherit=True)
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = []
    for cls in {type(module): None for module in model.modules()}:
        method = getattr(cls, "get_image_features", None)
        function = inspect.unwrap(method) if method is not None else None
        if not isinstance(function, types.FunctionType) or "numel" not in function.__code__.co_names:
            continue
        code = None if function.__closure__ else _rewritten(function.__code__)
        if code is not None:
            found.append((function, "__code__", lambda _, code=code: code))
    return found
