"""torch functions that read a tensor's memory, or numbers for one, without an op: forms that a trace can see.

The engine sees every op that the dispatcher runs; what Python code reads past the dispatcher is replaced here while a
model is traced.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _C

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _tolist(original):
    def tolist(self):
        if not _C.is_traced(self):
            return original(self)
        if self.dim() == 0:
            return self.item()
        return [element.tolist() for element in self.unbind(0)]

    return tolist


def _item(original):
    def item(self):
        # A parameter is no traced tensor, but its number is one of the program's too.
        return _C.item(self) if _C.is_traced(self) or self.is_floating_point() else original(self)

    return item


def _check_tensor_all_with(original):
    """A check of all elements becomes a runtime assert of the program."""

    def check(error_type, condition, message=None):
        if not (isinstance(condition, torch.Tensor) and _C.is_traced(condition)):
            return original(error_type, condition, message)
        torch._check(condition.all().item(), message)

    return check


def _check_is_size(original):
    def check(number, message=None, *, max=None):
        if not isinstance(number, torch.SymInt):
            return original(number, message, max=max)
        torch._check(number >= 0, message)
        if max is not None:
            torch._check(number <= max, message)

    return check


def _statically_known_true(original):
    def known(condition):
        if isinstance(condition, torch.SymBool):
            return _C.statically_known_true(condition.node)
        return original(condition)

    return known


def _mod_index(original):
    """Indexing under torch.vmap: the autograd function that torch puts here is only for its backward."""

    def apply(tensor, indices):
        return torch.ops.aten.index(tensor, indices)

    return apply


def _numpy(original):
    def numpy(self, *args, **kwargs):
        if not _C.is_traced(self):
            return original(self, *args, **kwargs)
        raise RuntimeError(
            "the code converts a traced tensor to NumPy, which no graph can hold; use torch functions there"
        )

    return numpy


def _repr(original):
    """Code that prints a tensor, or puts it into a message, goes on: there are no values to show."""

    def __repr__(self, *args, **kwargs):
        if not _C.is_traced(self):
            return original(self, *args, **kwargs)
        return f"tensor(..., size={tuple(self.shape)}, dtype={self.dtype})"

    return __repr__


def _holds_traced(data: Any) -> bool:
    if isinstance(data, torch.Tensor):
        return _C.is_traced(data)
    if isinstance(data, (list, tuple)):
        return any(_holds_traced(item) for item in data)
    return isinstance(data, _SYMBOLS)


def _default_dtype(data: Any) -> torch.dtype:
    if isinstance(data, torch.Tensor):
        return data.dtype
    if isinstance(data, (bool, torch.SymBool)):
        return torch.bool
    if isinstance(data, (int, torch.SymInt)):
        return torch.int64
    if isinstance(data, (list, tuple)):
        dtypes = {_default_dtype(item) for item in data}
        return max(dtypes, key=lambda dtype: (dtype.is_floating_point, dtype != torch.bool, dtype.itemsize))
    return torch.get_default_dtype()


def _stack(data: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.detach().clone().to(dtype)
    if isinstance(data, (list, tuple)):
        return torch.stack([_stack(item, dtype) for item in data])
    return torch.full((), data, dtype=dtype)


def _tensor(original):
    """torch.tensor and as_tensor write numbers into memory: symbolic ones become ops."""

    def tensor(data, *args, dtype=None, **kwargs):
        if isinstance(data, torch.Tensor) or not _holds_traced(data):
            return original(data, *args, dtype=dtype, **kwargs)
        return _stack(data, dtype or _default_dtype(data))

    return tensor


def _div(original):
    """A size by a number: a tensor of it would be read back as a number that the trace knows nothing of."""

    def div(input, other, *args, rounding_mode=None, **kwargs):
        is_size = isinstance(input, torch.SymInt) and isinstance(other, (int, torch.SymInt))
        if is_size and rounding_mode in ("floor", "trunc") and not kwargs:
            return input // other  # sizes aren't negative
        return original(input, other, *args, rounding_mode=rounding_mode, **kwargs)

    return div


def _linspace(original):
    """Takes a plain number of steps only."""

    def linspace(start, end, steps, *, dtype=None, device=None, **kwargs):
        if not any(isinstance(number, _SYMBOLS) for number in (start, end, steps)):
            return original(start, end, steps, dtype=dtype, device=device, **kwargs)
        dtype = dtype or torch.get_default_dtype()
        computed = dtype if dtype.is_floating_point else torch.float64
        places = torch.arange(steps, dtype=computed, device=device)
        start, end = torch.sym_float(start), torch.sym_float(end)
        step = (end - start) / torch.sym_max(steps - 1, 1)
        # Counted from the nearer end, as torch does; a single step is the start.
        is_near_start = places < (steps + 1) // 2
        return torch.where(is_near_start, places * step + start, (places - (steps - 1)) * step + end).to(dtype)

    return linspace


def _full(original):
    """Takes a plain number only, which a real one of the data is not."""

    def full(size, fill_value, *args, dtype=None, device=None, **kwargs):
        if not isinstance(fill_value, torch.Tensor) or not _C.is_traced(fill_value):
            return original(size, fill_value, *args, dtype=dtype, device=device, **kwargs)
        if dtype is None:
            dtype = torch.get_default_dtype() if fill_value.is_floating_point() else fill_value.dtype
        return fill_value.to(dtype).expand(size).clone()

    return full


def _resized(x: torch.Tensor, dim: int, count: Any, factor: Any) -> torch.Tensor:
    """`count` elements on one axis, linear between the centres of those that are there, as bilinear upsampling is in
    each of its two."""
    length = x.shape[dim]
    places = (torch.arange(count, dtype=torch.float32, device=x.device) + 0.5) / factor - 0.5
    places = places.clamp(min=0)
    low = places.to(torch.int64).clamp(max=length - 1)
    high = (low + 1).clamp(max=length - 1)
    weight = (places - low).to(x.dtype).view([-1] + [1] * (x.dim() - 1 - dim))
    return x.index_select(dim, low) * (1 - weight) + x.index_select(dim, high) * weight


def _interpolate(original):
    """Takes plain factors only."""

    def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *args, **kwargs):
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * 2
        is_plain = not any(isinstance(factor, torch.SymFloat) for factor in factors)
        if is_plain or mode != "bilinear" or align_corners or args or kwargs:
            return original(input, size, scale_factor, mode, align_corners, *args, **kwargs)
        sizes = input.shape[2:]
        counts = [torch.sym_int(size * factor) for size, factor in zip(sizes, factors)]
        # Eager copies what stays as large, whatever the factors.
        is_copy = (torch.tensor(counts[0]) == sizes[0]) & (torch.tensor(counts[1]) == sizes[1])
        factors = [torch.where(is_copy, 1.0, torch.tensor(factor, dtype=torch.float32)) for factor in factors]
        return _resized(_resized(input, 2, counts[0], factors[0]), 3, counts[1], factors[1])

    return interpolate


def _scaled_dot_product_attention(original):
    """Takes a plain scale only."""

    def attention(query, key, value, *args, scale=None, **kwargs):
        if isinstance(scale, (torch.SymFloat, torch.Tensor)):
            query, scale = query * scale, 1.0
        return original(query, key, value, *args, scale=scale, **kwargs)

    return attention


def entries() -> list[tuple[Any, str, Any]]:
    from torch._dynamo import _trace_wrapped_higher_order_op
    from torch.fx.experimental import symbolic_shapes

    return [
        (torch.Tensor, "tolist", _tolist),
        (torch.Tensor, "item", _item),
        (torch.Tensor, "numpy", _numpy),
        (torch.Tensor, "__repr__", _repr),
        (torch, "_check_tensor_all_with", _check_tensor_all_with),
        (torch, "_check_is_size", _check_is_size),
        (symbolic_shapes, "statically_known_true", _statically_known_true),
        (_trace_wrapped_higher_order_op, "mod_index", _mod_index),
        (torch, "div", _div),
        (torch, "linspace", _linspace),
        (torch, "full", _full),
        (torch.nn.functional, "interpolate", _interpolate),
        (torch.nn.functional, "scaled_dot_product_attention", _scaled_dot_product_attention),
        (torch, "tensor", _tensor),
        (torch, "as_tensor", _tensor),
        # Distributions check the data that they are given, and raise; a program can't.
        (torch.distributions.Distribution, "_validate_args", lambda original: False),
    ]
