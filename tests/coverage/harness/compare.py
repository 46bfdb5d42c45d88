"""Comparison of what a model and its export return, by names and values of every tensor."""

import dataclasses
from collections.abc import Mapping

import torch

RELATIVE = 1e-4  # of the largest finite value of the tensor
FLOOR = 1e-6  # absolute: below it float32 sums of other order differ

VALUES, SIZES, RANKS = "values", "sizes", "ranks"


class Mismatch(AssertionError):
    """An export's output isn't the model's; the message names the first wrong tensor."""


class Flat(dict):
    """Tensors of a nested value by dotted name, in order; its Python numbers (a cache's lengths, say) in `numbers`."""

    def __init__(self, tensors=(), numbers=()):
        super().__init__(tensors)
        self.numbers: dict[str, bool | int | float] = dict(numbers)


def flatten(value, name: str = "") -> Flat:
    """Tensors and numbers of a nested output. Caches and other plain objects give their public attributes."""
    flat = Flat()
    _collect(value, name, flat, set())
    return flat


def _collect(value, name, flat, above) -> None:
    if isinstance(value, torch.Tensor):
        flat[name or "output"] = value
    elif isinstance(value, (bool, int, float)):
        flat.numbers[name or "output"] = value
    elif value is not None and not isinstance(value, (complex, str, bytes, type)) and id(value) not in above:
        for key, part in _parts(value):
            _collect(part, f"{name}.{key}" if name else str(key), flat, above | {id(value)})


def _parts(value):
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", range(len(value)))
        return list(zip(fields, value, strict=True))
    if type(value).__module__.startswith("numpy"):
        return [("value", torch.as_tensor(value))]
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, torch.nn.Module) or type(value).__name__.endswith("Config"):
        return []
    return [(key, part) for key, part in getattr(value, "__dict__", {}).items() if not key.startswith("_")]


def align(expected: Flat, got: dict) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """Pairs of tensors: by name where all names agree, otherwise by order. Raises Mismatch when the counts differ.

    A graph may return a number of the model's as a tensor of that name, and private attributes of a cache."""
    numbers = getattr(expected, "numbers", {})
    extra = [name for name in got if name not in expected]
    as_tensors = [name for name in extra if name in numbers and got[name].numel() == 1]
    private = [name for name in extra if any(part.startswith("_") for part in name.split("."))]
    got = {name: tensor for name, tensor in got.items() if name not in (*as_tensors, *private)}
    if expected.keys() == got.keys():
        return [(name, expected[name], got[name]) for name in expected]
    if len(expected) != len(got):
        missing, extra = [n for n in expected if n not in got], [n for n in got if n not in expected]
        raise Mismatch(f"{len(got)} outputs instead of {len(expected)}; missing {missing[:4]}, extra {extra[:4]}")
    return [(name, tensor, other) for (name, tensor), other in zip(expected.items(), got.values(), strict=True)]


def _compare_numbers(expected: Flat, got: dict) -> None:
    """Numbers that both have, one side maybe as a tensor, are the same."""
    theirs = {name: tensor.item() for name, tensor in got.items() if name not in expected and tensor.numel() == 1}
    theirs.update(getattr(got, "numbers", {}))
    for name, number in getattr(expected, "numbers", {}).items():
        other = theirs.get(name, number)
        if other != number and not (other != other and number != number):
            raise Mismatch(f"{name}: the number {other} instead of {number}")


def compare(expected: Flat, got: dict, level: str = VALUES) -> float:
    """Compares two results of `flatten`; the largest difference as a share of its tensor's largest value.

    Below the level VALUES less is compared: SIZES and types (random models), or RANKS and types (models whose sizes are
    random). Raises Mismatch."""
    worst = 0.0
    for name, a, b in align(expected, got):
        a, b = a.detach(), b.detach()
        if a.dim() != b.dim() or level != RANKS and a.shape != b.shape:
            raise Mismatch(f"{name}: sizes {list(b.shape)} instead of {list(a.shape)}")
        if a.dtype != b.dtype:
            raise Mismatch(f"{name}: {b.dtype} instead of {a.dtype}")
        if level == VALUES and a.numel():
            worst = max(worst, _difference(name, a, b))
    if level == VALUES:
        _compare_numbers(expected, got)
    return worst


def _difference(name, a, b) -> float:
    if a.is_complex():
        a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
    if not a.is_floating_point():
        wrong = int((a != b).sum())
        if wrong:
            raise Mismatch(f"{name}: {wrong} of {a.numel()} {_short(a.dtype)} values differ, {_first(a, b, a != b)}")
        return 0.0
    odd = ~torch.isfinite(a)
    if bool((odd != ~torch.isfinite(b)).any()):
        raise Mismatch(f"{name}: NaN or infinity at other places, {_first(a, b, odd != ~torch.isfinite(b))}")
    if bool(odd.any()):
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        if bool((odd & ~same).any()):
            raise Mismatch(f"{name}: another kind of NaN or infinity, {_first(a, b, odd & ~same)}")
        a, b = a.masked_fill(odd, 0), b.masked_fill(odd, 0)
    a, b = a.double(), b.double()
    scale, distance = float(a.abs().max()), (a - b).abs()
    limit = max(RELATIVE * scale, FLOOR)
    largest = float(distance.max())
    if largest > limit:
        wrong = distance > limit
        raise Mismatch(
            f"{name}: {int(wrong.sum())} of {a.numel()} values differ, by up to {largest:.3g} where the largest value is "
            f"{scale:.3g}, {_first(a, b, wrong)}"
        )
    return largest / scale if scale > FLOOR else 0.0


def _first(a, b, wrong) -> str:
    place = wrong.nonzero()[0].tolist()
    return f"first at {place}: {b[tuple(place)].item():.6g} instead of {a[tuple(place)].item():.6g}"


def _short(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def repeatable(results: list[dict]) -> str:
    """The level at which the results of equal calls agree."""
    first = results[0]
    if all(equal(first, other) for other in results[1:]):
        return VALUES
    same = all(
        {n: t.shape for n, t in first.items()} == {n: t.shape for n, t in other.items()} for other in results[1:]
    )
    return SIZES if same else RANKS


def equal(expected: dict, got: dict) -> bool:
    """Whether two results of `flatten` are the same bit for bit, NaN equal to NaN."""
    return expected.keys() == got.keys() and all(
        a.shape == got[name].shape
        and a.dtype == got[name].dtype
        and bool(
            torch.equal(torch.nan_to_num(a), torch.nan_to_num(got[name])) if _numeric(a) else torch.equal(a, got[name])
        )
        for name, a in expected.items()
    )


def _numeric(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
