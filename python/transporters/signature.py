"""Between a caller's arguments and the leaves that a program takes and gives."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch.utils import _pytree

from . import _C, caches, masks, pytrees
from ._C import ExportError


class Signature:
    """Between a caller's arguments and the leaves of a component."""

    def __init__(self, metadata: dict[str, Any], program: _C.Program):
        self.in_spec = pytrees.loads(metadata["in_spec"])
        self.out_spec = pytrees.loads(metadata["out_spec"])
        self.kwarg_names = list(self.in_spec.children()[1].context)
        self.constants = json.loads(metadata["in_constants"])
        self.described = json.loads(metadata["kwargs"])
        self.inputs = [entry[1:] for entry in program.inputs if entry[0] == "user_input"]

    def flatten(self, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """(path, tensor or constant) of each leaf; a number that the program takes is a 0-dim tensor. Constant keyword
        arguments may be left out, and beside a cache a mask without padding. Raises ExportError for what does not
        fit."""
        fixed = {name: value for name, value in self.constants.items() if name in self.kwarg_names}
        values = {**fixed, **kwargs}
        if "attention_mask" in self.kwarg_names and "attention_mask" not in self.constants:
            values |= masks.fill(kwargs, self.described.get("attention_mask"))
        missing = [name for name in self.kwarg_names if name not in values]
        unknown = [name for name in values if name not in self.kwarg_names]
        if missing or unknown:
            given = ", ".join(kwargs) or "none"
            what = f"misses {', '.join(missing)}" if missing else f"does not take {', '.join(unknown)}"
            raise ExportError(
                f"[run] the program {what}; its inputs are {', '.join(self.kwarg_names)}, given are {given}"
            )
        values = caches.to_program({name: values[name] for name in self.kwarg_names})
        leaves, spec = _pytree.tree_flatten((args, values))
        if spec.num_leaves != self.in_spec.num_leaves:
            raise ExportError(f"[run] the inputs nest unlike those of the export{self._difference(spec)}")
        return [(entry[0], _checked(leaf, *entry)) for leaf, entry in zip(leaves, self.inputs)]

    def _difference(self, spec: _pytree.TreeSpec) -> str:
        """Leaves that only one side has."""
        given, known = (
            [path.removeprefix("1.") for path in pytrees.leaf_paths(pytrees.dumps(tree, "the inputs"))]
            for tree in (spec, self.in_spec)
        )
        sides = {
            "missing are": [path for path in known if path not in given],
            "not in it are": [path for path in given if path not in known],
        }
        parts = [f"{what} {', '.join(paths[:4])}{', ...' * (len(paths) > 4)}" for what, paths in sides.items() if paths]
        return f": {' and '.join(parts)}" if parts else f": {spec} and {self.in_spec}"

    def unflatten(self, outputs: list[Any], kwargs: dict[str, Any]) -> Any:
        """What the model returns, of the leaves; caches of `kwargs` may have been written to."""
        return caches.from_program(kwargs, _pytree.tree_unflatten(outputs, self.out_spec))


def _checked(leaf: Any, path: str, value: str | None, constant: Any, is_number: bool) -> Any:
    """The leaf of a call as the signature's entry takes it."""
    if is_number and isinstance(leaf, (bool, int, float)):
        return torch.tensor(leaf)
    if value is not None and not isinstance(leaf, torch.Tensor):
        expected = "number" if is_number else "tensor"
        raise ExportError(f"[run] '{path}': a {expected} is expected where a {type(leaf).__name__} is given")
    if value is None and (isinstance(leaf, torch.Tensor) or leaf != constant):
        raise ExportError(
            f"[run] '{path}' is {constant!r} in this export, given is {leaf!r}; export it with that value"
        )
    return leaf
