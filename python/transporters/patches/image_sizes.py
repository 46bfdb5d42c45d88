"""Sizes of images that features are cut to.

Why: torch reads a tensor that bounds a slice as a plain number, so a graph would hold the sizes of the sample (Pixtral,
and the models that see with it). What item() gives stays symbolic.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch

from .. import _C


def _cuts_by_sizes(forward: Any) -> bool:
    code = getattr(inspect.unwrap(forward), "__code__", None)
    return code is not None and {"image_sizes", "patch_embeds_list"} <= set(code.co_varnames)


def _with_numbers(original):
    @functools.wraps(original)
    def forward(self, pixel_values, image_sizes=None, **kwargs):
        if isinstance(image_sizes, torch.Tensor) and _C.is_traced(image_sizes):
            image_sizes = image_sizes.tolist()
        return original(self, pixel_values, image_sizes, **kwargs)

    return forward


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    classes = {type(module): None for module in model.modules()}
    return [(cls, "forward", _with_numbers) for cls in classes if _cuts_by_sizes(cls.forward)]
