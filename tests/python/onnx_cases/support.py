"""What a case is, and what makes inputs: `f(b, 4)` is the same for the same sizes."""

from typing import Callable, NamedTuple

import torch


class Case(NamedTuple):
    name: str
    function: Callable
    inputs: Callable
    is_static: bool = False
    tolerance: float | None = None
    first_opset: int = 18


CASES: list[Case] = []


def case(name, function, inputs, **options):
    CASES.append(Case(name, function, inputs, **options))


def generator(*sizes):
    return torch.Generator().manual_seed(sum(sizes) + len(sizes))


def f(*sizes, dtype=torch.float32):
    """Normally distributed numbers."""
    return torch.randn(sizes, generator=generator(*sizes)).to(dtype)


def pairs(b):
    """Two that broadcast."""
    return f(b, 4), f(1, 4)


def positive(*sizes, dtype=torch.float32):
    return f(*sizes).abs().to(dtype) + 0.1


def unit(*sizes):
    """Numbers inside (-1, 1)."""
    return torch.rand(sizes, generator=generator(*sizes)) * 1.9 - 0.95


def ints(*sizes, low=-9, high=10, dtype=torch.int64):
    return torch.randint(low, high, sizes, generator=generator(*sizes), dtype=dtype)


def nonzero_ints(*sizes, dtype=torch.int64):
    drawn = ints(*sizes, low=1, high=6, dtype=dtype)
    return torch.where(ints(*sizes) > 3, -drawn, drawn).to(dtype)


def bools(*sizes):
    return f(*sizes) > 0


SPECIAL = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, -2.5, 1e-8, 88.0, -30.0])


def special(b):
    return (SPECIAL.repeat(b, 1),)
