"""Convolutions of audio codecs, which pad to whole frames.

Why: EnCodec and its relatives keep kernel size and stride in tensors and compute the padding with them, so a graph
would read sizes from data. They follow from the convolution's own numbers. Audio that is encoded whole is a single
chunk, which a loop over chunks would make one of the sample's length.
"""

from __future__ import annotations

import ast
from typing import Any

import torch

from . import rewriting


def _stride(self):
    return self.conv.stride[0]


def _kernel_size(self):
    return (self.conv.kernel_size[0] - 1) * self.conv.dilation[0] + 1


def _padding_total(self):
    return _kernel_size(self) - _stride(self)


def _extra_padding(original):
    def _get_extra_padding_for_conv1d(self, hidden_states):
        length, stride = hidden_states.shape[-1], _stride(self)
        return (length + stride - 1) // stride * stride - length

    return _get_extra_padding_for_conv1d


_PROPERTIES = {
    "stride": _stride,
    "kernel_size": _kernel_size,
    "padding_total": _padding_total,
    "padding_right": lambda self: _padding_total(self) // 2,
    "padding_left": lambda self: _padding_total(self) - _padding_total(self) // 2,
}


def offsets(length, stride):
    """range(0, length, stride)."""
    return [0] if isinstance(length, torch.SymInt) and length is stride else range(0, length, stride)


class _Rewrite(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        if ast.unparse(node) != "range(0, input_length, stride)":
            return node
        return rewriting.call(__name__, "offsets", *node.args[1:])


def _has_sizes_in_tensors(module: torch.nn.Module) -> bool:
    return (
        hasattr(type(module), "_get_extra_padding_for_conv1d") and {"stride", "padding_total"} <= module._buffers.keys()
    )


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules() if _has_sizes_in_tensors(module)}
    found: list[tuple[Any, str, Any]] = []
    for cls in classes:
        found.append((cls, "_get_extra_padding_for_conv1d", _extra_padding))
        found += [(cls, name, lambda _, read=read: property(read)) for name, read in _PROPERTIES.items()]
    for cls in {type(module): None for module in model.modules()}:
        if cls.__name__ == "EncodecModel":
            found += rewriting.entries(cls.encode, _Rewrite)
    return found
