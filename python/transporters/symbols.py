"""Methods that torch.SymInt and its kind ask of a node and that torch's class for C++ nodes lacks.

Sizes of traced tensors are symbolic numbers over nodes of the engine. torch.SymInt computes through methods of the
node; ``torch._C._SymNode``, which stands for nodes made in C++, has only some of them.
"""

from __future__ import annotations

import functools

import torch

from . import _C

_Node = torch._C._SymNode


def _trunc(node):
    """To an integer, towards zero."""
    if node.is_int():
        return node
    zero = node.wrap_float(0.0)
    return _C.sym_ite(node.ge(zero), node.floor(), node.ceil())


def _round(node, ndigits=None):
    """To the nearest, halves to the even one, as Python's round."""
    if node.is_int():
        return node
    if ndigits is not None:
        scale = node.wrap_float(float(10**ndigits))
        return _round(node.mul(scale)).sym_float().truediv(scale)
    half = node.add(node.wrap_float(0.5)).floor()
    is_tie = half.sym_float().sub(node).eq(node.wrap_float(0.5))
    is_odd = half.mod(half.wrap_int(2)).eq(half.wrap_int(1))
    return _C.sym_ite(is_tie.sym_and(is_odd), half.sub(half.wrap_int(1)), half)


def _shift(node, count, left):
    bits = _C.maybe_as_int(count)
    if bits is None:
        raise RuntimeError("a size is shifted by a symbolic number of bits; shift by a constant")
    factor = node.wrap_int(1 << bits)
    return node.mul(factor) if left else node.floordiv(factor)


def _is_integer(node):
    return node.wrap_bool(True) if node.is_int() else node.eq(node.floor().sym_float())


_METHODS = {
    "abs": lambda node: node.sym_max(node.neg()),
    "and_": lambda node, other: node.sym_and(other),
    "or_": lambda node, other: node.sym_or(other),
    "bitwise_and": lambda node, other: node.sym_and(other),
    "bitwise_or": lambda node, other: node.sym_or(other),
    "bitwise_xor": lambda node, other: node.ne(other),
    "trunc": _trunc,
    "round": _round,
    "is_integer": _is_integer,
    "lshift": functools.partial(_shift, left=True),
    "rshift": functools.partial(_shift, left=False),
    "sym_int": _trunc,
    "sym_ite": _C.sym_ite,
    "sqrt": lambda node: node.sym_float().pow(node.wrap_float(0.5)),
    "sym_sqrt": lambda node: node.sym_float().pow(node.wrap_float(0.5)),
    "sym_sum": lambda node, nodes: functools.reduce(lambda a, b: a.add(b), nodes),
    "str": repr,
    "maybe_as_int": _C.maybe_as_int,
    "maybe_as_float": lambda node: None,
    "maybe_as_bool": _C.maybe_as_bool,
    "statically_known_true": lambda node, file="", line=0: _C.statically_known_true(node),
}


def install() -> None:
    """Adds what is missing, once; what torch has stays."""
    for name, method in _METHODS.items():
        if not hasattr(_Node, name):
            # A plain function: partial objects would not bind to the node.
            setattr(_Node, name, _as_method(method))


def _as_method(method):
    def call(self, *args, **kwargs):
        return method(self, *args, **kwargs)

    return call
