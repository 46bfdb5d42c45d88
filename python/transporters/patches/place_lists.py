"""Lists of the places of a sequence whose length is a symbol.

Why: models write `list(range(length))`, which fixes the length. Here it is a list of as many places as the symbol says,
which can be sliced, joined with what comes before it, measured, and made a tensor. Lengths that are numbers keep their
lists.
"""

from __future__ import annotations

import ast
from typing import Any

import torch

from . import rewriting


class Places:
    """The numbers of `head`, then `count` numbers from `start` on, `step` apart."""

    def __init__(self, start, step, count, head=()):
        self.start, self.step, self.count, self.head = start, step, count, tuple(head)

    def size(self):
        """How many there are, as a number or a symbol."""
        return len(self.head) + self.count

    def __len__(self):
        return int(self.size())

    def __getitem__(self, index):
        if not isinstance(index, slice):
            if index < 0:
                return self.start + (self.count + index) * self.step
            return self.head[index] if index < len(self.head) else self.start + (index - len(self.head)) * self.step
        first, last, step = index.start or 0, index.stop or 0, index.step or 1
        if step == -1 and not self.head and (index.start, index.stop) == (None, None):
            return Places(self.start + (self.count - 1) * self.step, -self.step, self.count)
        if first < 0 or last > 0 or step < 1:
            raise NotImplementedError(f"places of a symbolic length can't be sliced by {index}")
        head = self.head[first::step]
        skipped = len(self.head[first:])
        # Of the rest the first that a stride lands on.
        begin = max(first - len(self.head), 0) + (-skipped % step)
        count = (self.count + last - begin + step - 1) // step
        return Places(self.start + begin * self.step, self.step * step, count, head)

    def __radd__(self, before: list):
        return Places(self.start, self.step, self.count, [*before, *self.head])

    def tensor(self, dtype=None, device=None) -> torch.Tensor:
        places = torch.arange(self.count, dtype=dtype, device=device) * self.step + self.start
        return torch.cat([torch.tensor(self.head, dtype=places.dtype, device=device), places]) if self.head else places


def counted(length):
    """list(range(length))."""
    return Places(0, 1, length) if isinstance(length, torch.SymInt) else list(range(length))


def measured(value):
    """len(value)."""
    return value.size() if isinstance(value, Places) else len(value)


def as_tensor(value, *args, **kwargs):
    """torch.tensor(value)."""
    return value.tensor(*args, **kwargs) if isinstance(value, Places) else torch.tensor(value, *args, **kwargs)


class _Rewrite(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name == "list" and isinstance(node.args[0], ast.Call) and ast.unparse(node.args[0].func) == "range":
            return rewriting.call(__name__, "counted", *node.args[0].args) if len(node.args[0].args) == 1 else node
        replacement = {"len": "measured", "torch.tensor": "as_tensor"}.get(name)
        if replacement is None:
            return node
        made = rewriting.call(__name__, replacement, *node.args)
        made.keywords = node.keywords
        return made


_METHODS = {
    "FunnelAttentionStructure": ("get_position_embeds", "stride_pool_pos", "relative_pos"),
    "CpmAntModel": ("_prepare_attention_mask",),
}


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules()}
    return [
        entry
        for cls in classes
        for name in _METHODS.get(cls.__name__, ())
        for entry in rewriting.entries(getattr(cls, name), _Rewrite)
    ]
