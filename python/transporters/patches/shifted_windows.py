"""Swin's attention in shifted windows, for images whose size is a symbol.

Why: a layer leaves the shift out when a single window covers the image's shorter side, and pads and crops only images
that windows don't divide: branches that fit the sample only. Here the shift is an expression (what the layer shifts by,
or for such an image as many places as it has, which moves none of them and leaves its mask empty), and what is to be
padded or cropped may be nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def _set_shift_and_window_size(original):
    @functools.wraps(original)
    def set_shift_and_window_size(self, input_resolution):
        height, width = input_resolution
        if not isinstance(height * width, torch.SymInt):
            return original(self, input_resolution)
        shorter = torch.sym_min(height, width)
        # The position bias has the size of a whole window.
        torch._check(
            shorter >= self.window_size, lambda: f"a feature map is smaller than a window of {self.window_size}"
        )
        if self.shift_size:
            is_one_window = 1 - torch.sym_min(shorter - self.window_size, 1)
            self.shift_size = torch.sym_max(self.shift_size, is_one_window * height * width)

    return set_shift_and_window_size


def _maybe_pad(original):
    @functools.wraps(original)
    def maybe_pad(self, features, height, width):
        if not isinstance(height * width, torch.SymInt):
            return original(self, features, height, width)
        if hasattr(self, "window_size"):
            multiples = self.window_size, self.window_size
        else:
            multiples = getattr(self, "patch_size", (2, 2))
        below, right = (
            (size + multiple - 1) // multiple * multiple - size for size, multiple in zip((height, width), multiples)
        )
        of_channels = () if hasattr(self, "patch_size") else (0, 0)  # which come last but for pixels
        features = torch.nn.functional.pad(features, (*of_channels, 0, right, 0, below))
        # A layer crops what it gets back when it thinks that it padded it, which is right for no padding too.
        return (features, (0, 0, 0, 1, 0, 1)) if hasattr(self, "window_size") else features

    return maybe_pad


_METHODS = {"set_shift_and_window_size": _set_shift_and_window_size, "maybe_pad": _maybe_pad}


def _is_swin(cls: type) -> bool:
    methods = vars(cls)
    known = {"set_shift_and_window_size", "get_attn_mask"} & methods.keys()
    return bool(known) or cls.__name__.endswith(("PatchEmbeddings", "PatchMerging"))


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules()}
    return [
        (cls, name, factory)
        for cls in classes
        if _is_swin(cls)
        for name, factory in _METHODS.items()
        if name in vars(cls)
    ]
