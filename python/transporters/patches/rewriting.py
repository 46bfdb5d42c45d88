"""Places in a function's own code that are replaced while a model is traced; the rest of it stays as it is."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any


def call(module: str, name: str, *arguments: ast.expr) -> ast.expr:
    """module.name(*arguments), whatever names the function's own module has."""
    made = ast.parse(f"__import__({module!r}, fromlist=['']).{name}()", mode="eval").body
    made.args = list(arguments)
    return made


@functools.lru_cache(maxsize=None)
def _rewritten(code: types.CodeType, transformer: type[ast.NodeTransformer]) -> types.CodeType | None:
    """The code of a function with the replacements, None when it has nothing to replace."""
    source = textwrap.dedent("".join(inspect.getsourcelines(code)[0]))
    tree = ast.parse(source)
    function = tree.body[0]
    function.decorator_list, function.returns = [], None
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    before = ast.dump(tree)
    tree = transformer().visit(tree)
    if ast.dump(tree) == before:
        return None
    ast.increment_lineno(ast.fix_missing_locations(tree), code.co_firstlineno - 1)
    module = compile(tree, code.co_filename, "exec", dont_inherit=True)
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def entries(function: Any, transformer: type[ast.NodeTransformer]) -> list[tuple[Any, str, Any]]:
    """The patch of a function's code, none where there is nothing to replace."""
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType) or function.__closure__:
        return []
    code = _rewritten(function.__code__, transformer)
    return [] if code is None else [(function, "__code__", lambda _: code)]
