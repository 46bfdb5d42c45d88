"""Neighbouring patches of images, merged into one token.

Why: these models merge image by image in a loop over `grid_thw`, so a graph would hold the number of images and their
grids. Which patches go to which token follows from integer arithmetic on all of them at once.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from .vision_grids import block_places, spread


def _paddleocr_projector(original):
    """Blocks of each frame, joined along the features."""

    def forward(self, image_features, image_grid_thw):
        high, wide = self.merge_kernel_size
        if high != wide:
            return original(self, image_features, image_grid_thw)
        image, frame, row, column = block_places(image_grid_thw, high)
        _, heights, widths = image_grid_thw.unbind(1)
        sizes = image_grid_thw.prod(1)
        starts = sizes.cumsum(0) - sizes
        order = starts[image] + (frame * heights[image] + row) * widths[image] + column
        merged = self.pre_norm(image_features)[order].reshape(-1, high * wide * image_features.shape[-1])
        return self.linear_2(self.act(self.linear_1(merged)))

    return forward


def _video_llama_3_unshuffle(original):
    """Bilinear interpolation of a block to one token: the mean of the two middle rows and columns, which are one in
    blocks of an odd size."""

    def pixel_unshuffle(self, hidden_states, grid_thw, merge_sizes):
        area = merge_sizes * merge_sizes
        sizes = grid_thw.prod(1)
        image, block = spread(sizes // area)
        start = (sizes.cumsum(0) - sizes)[image] + block * area[image]
        merge = merge_sizes[image]
        middle = ((merge - 1) // 2, merge // 2)
        return sum(hidden_states[start + row * merge + column] for row in middle for column in middle) / 4

    return pixel_unshuffle


def _ernie_temporal_slices(original):
    """Pairs of frames of a video, an image with itself, joined along the features."""

    def _temporal_slicing(self, hidden_states, grid_thw):
        times, heights, widths = grid_thw.unbind(1)
        frames = heights * widths // self.spatial_merge_size**2
        pairs = torch.where(times > 1, times // 2, 1)
        sizes = times * frames
        image, place = spread(pairs * frames)
        frame = frames[image]
        first = (sizes.cumsum(0) - sizes)[image] + place // frame * 2 * frame + place % frame
        second = first + torch.where(times[image] > 1, frame, 0)
        return torch.cat([hidden_states[first], hidden_states[second]], dim=-1)

    return _temporal_slicing


_METHODS = {
    ("paddleocr_vl.modeling_paddleocr_vl", "PaddleOCRProjector", "forward"): _paddleocr_projector,
    ("video_llama_3.modeling_video_llama_3", "VideoLlama3VisionModel", "pixel_unshuffle"): _video_llama_3_unshuffle,
    (
        "ernie4_5_vl_moe.modeling_ernie4_5_vl_moe",
        "Ernie4_5_VLMoeVariableResolutionResamplerModel",
        "_temporal_slicing",
    ): _ernie_temporal_slices,
}


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = []
    for (module_name, cls, method), factory in _METHODS.items():
        owner = getattr(sys.modules.get(f"transformers.models.{module_name}"), cls, None)
        if owner is not None and hasattr(owner, method):
            found.append((owner, method, factory))
    return found
