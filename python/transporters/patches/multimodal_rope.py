"""Positions of text, image and video tokens for rotary embeddings over time, height and width.

Why: `get_rope_index` walks through runs of `mm_token_type_ids.tolist()`, row by row, so a graph would hold the
sample's layout of text and images. The same positions follow from running sums over all tokens at once.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch


def _compress(values: torch.Tensor, rank: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Each row's valid values first; what is behind them is 0."""
    length = values.shape[1]
    target = torch.where(valid, rank, length)  # the column behind the last takes what is left out
    room = values.new_zeros(values.shape[0], length + 1)
    return room.scatter(1, target, torch.where(valid, values, 0))[:, :length]


def rope_index(
    input_ids: torch.Tensor,
    types: torch.Tensor,
    grids: dict[int, torch.Tensor],
    intervals: dict[int, torch.Tensor],
    mask: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(positions of shape (3, batch, sequence), largest position + 1 - number of tokens, per row).

    types: 0 for text, else a key of `grids`; every run of a type takes the next row of its grids (time, height, width,
        in tokens). Text counts on by one a token, a grid by the larger of its height and width.
    intervals: what a step in time counts, for each grid.
    mask: tokens that count; others get position 0.
    """
    valid = torch.ones_like(input_ids, dtype=torch.bool) if mask is None else mask.bool()
    rank = valid.cumsum(1) - 1
    types = _compress(types.to(torch.int64), rank, valid)
    counts = valid.sum(1, keepdim=True)
    present = torch.arange(types.shape[1], device=types.device) < counts
    first = torch.cat([torch.ones_like(present[:, :1]), types[:, 1:] != types[:, :-1]], dim=1) & present

    advance = ((types == 0) & present).to(torch.int64)
    grid_of, local, extents = {}, {}, {}
    for kind, grid in grids.items():
        here = (types == kind) & present
        runs = (first & here).flatten().cumsum(0).view(types.shape)
        grid_of[kind] = (runs - 1).clamp(min=0)
        sizes = grid.prod(1)
        seen = here.flatten().cumsum(0).view(types.shape) - 1
        local[kind] = seen - (sizes.cumsum(0) - sizes)[grid_of[kind]]
        extents[kind] = torch.maximum(grid[:, 1], grid[:, 2])[grid_of[kind]]
        advance = torch.where(first & here, extents[kind], advance)

    reached = advance.cumsum(1)
    time = height = width = reached - 1  # of text
    for kind, grid in grids.items():
        here = (types == kind) & present
        start = reached - extents[kind]
        _, rows, columns = grid.unbind(1)
        rows, columns = rows[grid_of[kind]], columns[grid_of[kind]]
        step = (local[kind] // (rows * columns) * intervals[kind][grid_of[kind]]).to(torch.int64)
        time = torch.where(here, start + step, time)
        height = torch.where(here, start + local[kind] // columns % rows, height)
        width = torch.where(here, start + local[kind] % columns, width)

    compressed = torch.where(present, torch.stack([time, height, width]), 0)
    deltas = compressed.amax(dim=(0, 2)).unsqueeze(1) + 1 - counts
    positions = compressed.gather(2, rank.clamp(min=0).expand(3, -1, -1))
    return torch.where(valid, positions, 0).to(input_ids.dtype), deltas


def _single_frames(self, grid: torch.Tensor) -> torch.Tensor:
    """Each frame of a video is a run of its own."""
    frames = torch.repeat_interleave(grid[:, 1:], grid[:, 0], dim=0)
    return torch.cat([torch.ones_like(frames[:, :1]), frames], dim=1)


def _clips(self, grid: torch.Tensor) -> torch.Tensor:
    return grid


def _merged_frames(self, grid: torch.Tensor) -> torch.Tensor:
    return torch.cat([grid[:, :1] // self.config.vision_config.temporal_merge_size, grid[:, 1:]], dim=1)


def _equal_steps(self, grid: torch.Tensor, arguments: dict[str, Any]) -> torch.Tensor:
    return torch.ones_like(grid[:, 0])


def _seconds(self, grid: torch.Tensor, arguments: dict[str, Any]) -> torch.Tensor:
    """From the seconds between two frames of each video."""
    rate = self.config.vision_config.tokens_per_second
    seconds = arguments.get("second_per_grid_ts")
    if seconds is None:
        return torch.ones_like(grid[:, 0]) * rate
    if isinstance(seconds, torch.Tensor):
        return rate * seconds
    return torch.tensor([rate * each for each in seconds])


def _from_runs(frames, steps):
    """The factory for models whose videos have the grids frames(model, video_grid_thw), with
    steps(model, grid, arguments) from frame to frame."""

    def factory(original):
        signature = inspect.signature(original)

        def get_rope_index(self, *args, **kwargs):
            arguments = signature.bind(self, *args, **kwargs).arguments
            merge = self.config.vision_config.spatial_merge_size
            grids, intervals = {}, {}
            for kind, name in ((1, "image_grid_thw"), (2, "video_grid_thw")):
                grid = arguments.get(name)
                if grid is None:
                    continue
                grid = frames(self, grid) if kind == 2 else grid
                times, heights, widths = grid.unbind(1)
                grids[kind] = torch.stack([times, heights // merge, widths // merge], dim=1)
                intervals[kind] = (steps if kind == 2 else _equal_steps)(self, grid, arguments)
            ids, types = arguments["input_ids"], arguments["mm_token_type_ids"]
            return rope_index(ids, types, grids, intervals, arguments.get("attention_mask"))

        return get_rope_index

    return factory


_FRAMES = _from_runs(_single_frames, _equal_steps)
_CLIPS = _from_runs(_clips, _equal_steps)
_MODELS = {
    "cohere_compass.modeling_cohere_compass.CohereCompassModel": _FRAMES,
    "cosmos3_edge.modeling_cosmos3_edge.Cosmos3EdgeModel": _FRAMES,
    "cosmos3_omni.modeling_cosmos3_omni.Cosmos3OmniModel": _FRAMES,
    "ernie4_5_vl_moe.modeling_ernie4_5_vl_moe.Ernie4_5_VLMoeModel": _from_runs(_merged_frames, _equal_steps),
    "glm46v.modeling_glm46v.Glm46VModel": _FRAMES,
    "glm4v.modeling_glm4v.Glm4vModel": _FRAMES,
    "glm4v_moe.modeling_glm4v_moe.Glm4vMoeModel": _FRAMES,
    "glm_ocr.modeling_glm_ocr.GlmOcrModel": _FRAMES,
    "paddleocr_vl.modeling_paddleocr_vl.PaddleOCRVLModel": _CLIPS,
    "qwen2_5_vl.modeling_qwen2_5_vl.Qwen2_5_VLModel": _from_runs(_clips, _seconds),
    "qwen2_vl.modeling_qwen2_vl.Qwen2VLModel": _CLIPS,
    "qwen3_5.modeling_qwen3_5.Qwen3_5Model": _FRAMES,
    "qwen3_5_moe.modeling_qwen3_5_moe.Qwen3_5MoeModel": _FRAMES,
    "qwen3_vl.modeling_qwen3_vl.Qwen3VLModel": _FRAMES,
    "qwen3_vl_moe.modeling_qwen3_vl_moe.Qwen3VLMoeModel": _FRAMES,
    "qwen4_exp.modeling_qwen4_exp.Qwen4ExpModel": _FRAMES,
}


def traces_rope_index(model: torch.nn.Module) -> bool:
    """Whether the positions that model.get_rope_index computes can be traced."""
    return any(cls in type(model).__mro__ for cls, _, _ in entries(model))


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    found = {}
    for cls in {base: None for module in model.modules() for base in type(module).__mro__}:
        factory = _MODELS.get(f"{cls.__module__}.{cls.__qualname__}".removeprefix("transformers.models."))
        if factory is not None and "get_rope_index" in vars(cls):
            found[cls] = factory
    return [(cls, "get_rope_index", factory) for cls, factory in found.items()]
