"""Places of patches in images of different grids.

Why: transformers.vision_utils computes them in a loop over `grid_thw.tolist()`, so a graph would hold the number of
images and, by way of it, their grids. The same places follow from integer arithmetic on all patches at once.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.nn.functional as F


def module_names(model: torch.nn.Module) -> list[str]:
    """Python modules that define the classes of a model's modules."""
    return list(dict.fromkeys(type(module).__module__ for module in model.modules()))


def spread(counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For groups of these sizes laid out one after the other: (group of each element, its place in the group)."""
    group = torch.repeat_interleave(counts)
    starts = counts.cumsum(0) - counts
    return group, torch.arange(group.shape[0], device=counts.device) - starts[group]


def block_places(grid_thw: torch.Tensor, merge: int | torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(image, frame, row, column) of every patch, in the order of blocks of merge x merge patches.

    merge: of all images, or one for each."""
    times, heights, widths = grid_thw.unbind(1)
    image, place = spread(times * heights * widths)
    merge = merge if isinstance(merge, int) else merge[image]
    width = widths[image]
    patches = heights[image] * width
    block, inner = place % patches // (merge * merge), place % (merge * merge)
    row = block // (width // merge) * merge + inner // merge
    column = block % (width // merge) * merge + inner % merge
    return image, place // patches, row, column


def _position_ids(original):
    def get_vision_position_ids(grid_thw, spatial_merge_size, include_temporal=False, kwargs=None):
        if kwargs is not None and kwargs.get("position_ids") is not None:
            return original(grid_thw, spatial_merge_size, include_temporal=include_temporal, kwargs=kwargs)
        _, frame, row, column = block_places(grid_thw, spatial_merge_size)
        return torch.stack([frame, row, column] if include_temporal else [row, column], dim=-1)

    return get_vision_position_ids


def _window_index(original):
    def get_vision_window_index(grid_thw, spatial_merge_size, window_size, patch_size, kwargs=None):
        given = kwargs or {}
        if given.get("window_index") is not None and given.get("cu_window_seqlens") is not None:
            return original(grid_thw, spatial_merge_size, window_size, patch_size, kwargs=kwargs)
        for name in ("window_index", "cu_window_seqlens"):
            given.pop(name, None)
        side = window_size // spatial_merge_size // patch_size
        times = grid_thw[:, 0]
        heights, widths = grid_thw[:, 1] // spatial_merge_size, grid_thw[:, 2] // spatial_merge_size

        # The place of each token in the windowed order, back to its row and column: bands of windows are as high as the
        # last one allows, and so are their widths.
        image, place = spread(times * heights * widths)
        height, width = heights[image], widths[image]
        frame, in_frame = place // (height * width), place % (height * width)
        band = in_frame // (side * width)
        band_height = (height - band * side).clamp(max=side)
        in_band = in_frame - band * side * width
        window = in_band // (band_height * side)
        window_width = (width - window * side).clamp(max=side)
        in_window = in_band - window * side * band_height
        row = band * side + in_window // window_width
        column = window * side + in_window % window_width
        starts = (times * heights * widths).cumsum(0) - times * heights * widths
        window_index = starts[image] + (frame * height + row) * width + column

        high, wide = (heights + side - 1) // side, (widths + side - 1) // side
        image, place = spread(times * high * wide)
        place = place % (high * wide)[image]
        rows = (heights[image] - place // wide[image] * side).clamp(max=side)
        columns = (widths[image] - place % wide[image] * side).clamp(max=side)
        lengths = rows * columns * spatial_merge_size**2
        return window_index, F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)

    return get_vision_window_index


def _nearest_position_ids(original):
    def get_vision_nearest_position_ids(target_sizes, num_patches_per_side, kwargs=None):
        if kwargs is not None and kwargs.get("position_ids") is not None:
            return original(target_sizes, num_patches_per_side, kwargs=kwargs)
        heights, widths = target_sizes.unbind(1)
        image, place = spread(heights * widths)
        step = 1 / num_patches_per_side
        boundaries = torch.arange(step, 1.0, step, device=target_sizes.device)
        row = (place // widths[image]) / heights[image]
        column = (place % widths[image]) / widths[image]
        row, column = ((places[:, None] >= boundaries).sum(-1) for places in (row, column))
        return row * num_patches_per_side + column

    return get_vision_nearest_position_ids


def _frame_index(original):
    """0 for images, the number of its frame from 1 for each patch of a video."""

    def get_vision_frame_index(grid_thw, kwargs=None):
        if kwargs is not None and kwargs.get("frame_index") is not None:
            return original(grid_thw, kwargs=kwargs)
        times, heights, widths = grid_thw.unbind(1)
        image, place = spread(times * heights * widths)
        return place // (heights * widths)[image] + (times > 1)[image]

    return get_vision_frame_index


_FUNCTIONS = {
    "get_vision_position_ids": _position_ids,
    "get_vision_window_index": _window_index,
    "get_vision_nearest_position_ids": _nearest_position_ids,
}


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    library = vars(sys.modules["transformers.vision_utils"]) if "transformers.vision_utils" in sys.modules else {}
    modules = [sys.modules[name] for name in module_names(model) if name in sys.modules]
    found = [
        (module, name, factory)
        for name, factory in _FUNCTIONS.items()
        for module in modules
        if name in library and vars(module).get(name) is library[name]
    ]
    kimi = sys.modules.get("transformers.models.kimi_k25.modeling_kimi_k25")
    return found + ([(kimi, "get_vision_frame_index", _frame_index)] if kimi in modules and kimi else [])
