"""Real numbers that a model reads from its data: programs compute with them as tensors without dims."""

import math

import pytest
import torch
from torch import nn
from transporters import DynamoExporter, OnnxExporter

EXPORTERS = {"dynamo": DynamoExporter, "onnx": OnnxExporter}
both = pytest.mark.parametrize("exporter", EXPORTERS.values(), ids=EXPORTERS)


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, x):
        return self.function(self, x)


def _factor(self, x):
    return x * x.sum().item()


def _sum_of_numbers(self, x):
    return x * (x.max().item() - 2 * x.min().item() + 1.5)


def _fill(self, x):
    return torch.full((x.shape[0], 2), x.max().item())


def _bound(self, x):
    return x.clamp(max=x.mean().item(), min=-x.abs().mean().item())


def _float(self, x):
    return x / float(x.abs().max())


def _larger(self, x):
    return x + max(x.mean().item(), 0.5)


def _half(self, x):
    return x.half() * x.abs().max().item()


def _list(self, x):
    return x + torch.tensor(x.mean(0).tolist())


def _size(self, x):
    return torch.ones(int(x.abs().max() * 10) + 1).sum() + x


def _parameter(self, x):
    return x * self.scale.item()


def _returned(self, x):
    return x + 1, x.sum().item()


@both
@pytest.mark.parametrize(
    "function",
    [_factor, _sum_of_numbers, _fill, _bound, _float, _larger, _half, _list, _size, _parameter, _returned],
    ids=lambda function: function.__name__.strip("_"),
)
def test_real_numbers_of_the_data(exporter, function):
    model = Model(function)
    program = exporter().export(
        model, (torch.linspace(-1, 2, 6).view(2, 3),), {"dynamic_shapes": ({0: torch.export.Dim.AUTO},)}
    )
    for seed, rows in enumerate((1, 2, 5)):
        x = torch.randn(rows, 3, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            expected = model(x)
        found = program(x)
        for one, other in zip(*((value if isinstance(value, tuple) else (value,)) for value in (found, expected))):
            torch.testing.assert_close(
                torch.as_tensor(one), torch.as_tensor(other), rtol=1e-3 if x.dtype != one.dtype else 1e-5, atol=1e-5
            )


class Interpolated(nn.Module):
    """HunYuan's and HY's position embeddings: a grid of the image's size."""

    def forward(self, grid, size):
        height, width = size.tolist()
        factors = ((int(height) + 0.1) / grid.shape[2], (int(width) + 0.1) / grid.shape[3])
        scaled = nn.functional.interpolate(grid, scale_factor=factors, mode="bilinear", align_corners=False)
        sized = nn.functional.interpolate(grid, size=(height, width), mode="bilinear", align_corners=False)
        return scaled, sized.permute(0, 2, 3, 1).reshape(1, -1, grid.shape[1])


@both
def test_grids_of_sizes_that_the_data_decides(exporter):
    grid = torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    program = exporter().export(Interpolated().eval(), (grid, torch.tensor([6, 5])))
    for size in ([6, 5], [2, 9], [4, 4], [3, 1], [1, 1]):
        expected = Interpolated()(grid, torch.tensor(size))
        for one, other in zip(program(grid, torch.tensor(size)), expected):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


class Unpadded(nn.Module):
    """LLaVA-OneVision's features: a slice at places of the data, whose length is a plain number in the code."""

    def forward(self, x, size):
        height, width = size.tolist()
        padding = (8 - int(round(height * (8 / width), 7))) // 2
        x = x + 0 * torch.rand_like(x)  # nothing knows what is sliced
        part = x[:, padding : 8 - padding]
        return part * math.sqrt(part.shape[1] / 2)


@both
def test_the_length_of_a_slice_at_places_of_the_data(exporter):
    x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    program = exporter().export(Unpadded().eval(), (x, torch.tensor([6, 8])))
    for size in ([6, 8], [3, 4]):
        torch.testing.assert_close(program(x, torch.tensor(size)), Unpadded()(x, torch.tensor(size)))
    with pytest.raises(Exception, match="expected|indices element out of data bounds"):
        program(x, torch.tensor([4, 8]))
