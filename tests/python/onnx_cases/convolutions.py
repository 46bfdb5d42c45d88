"""Convolution, pooling and normalisation: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import case, f, positive
from torch import nn

torch.manual_seed(0)  # of the modules below

# ── Convolution and pooling ──

case("conv1d", nn.Conv1d(3, 4, 3, stride=2, padding=1, dilation=2), lambda b: (f(b, 3, 12),))
case(
    "conv2d_groups",
    nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(1, 0), groups=2, bias=False),
    lambda b: (f(b, 4, 9, 8),),
)
case("conv2d_same", nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)), lambda b: (f(b, 3, 6 + b, 7),))
case("conv2d_valid", nn.Conv2d(3, 4, 3, padding="valid"), lambda b: (f(b, 3, 6, 7),))
case("conv1d_same", nn.Conv1d(3, 4, 4, padding="same"), lambda b: (f(b, 3, 9),))
case("conv2d_reflect", nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), lambda b: (f(b, 3, 6, 7),))
case("conv2d_unbatched", nn.Conv2d(3, 4, 3), lambda b: (f(3, 6 + b, 7),))
case("conv3d", nn.Conv3d(2, 3, 2, padding=1), lambda b: (f(b, 2, 3, 4, 5),))
case("conv_transpose1d", nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1), lambda b: (f(b, 3, 6),))
case("conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, dilation=2), lambda b: (f(b, 4, 5, 4),))
case(
    "conv_transpose3d",
    nn.ConvTranspose3d(2, 3, 2, stride=2, output_padding=1, dilation=2),
    lambda b: (f(b, 2, 2, 3, 2),),
)
case("max_pool1d", nn.MaxPool1d(3, 2, 1), lambda b: (f(b, 2, 9),))
case("max_pool2d", nn.MaxPool2d((3, 2), stride=2, padding=1), lambda b: (f(b, 2, 9, 8),))
case("max_pool2d_dilated", nn.MaxPool2d(2, stride=2, dilation=2), lambda b: (f(b, 2, 9, 8),))
case("max_pool2d_unbatched", nn.MaxPool2d(2), lambda b: (f(2, 6 + b, 8),))
case("max_pool3d", nn.MaxPool3d(2), lambda b: (f(b, 2, 4, 4, 4),))
for _size in (8, 9, 10, 11):
    case(
        f"max_pool2d_ceil_{_size}",
        nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
    case(
        f"avg_pool2d_ceil_{_size}",
        nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
    case(
        f"avg_pool2d_ceil_excluded_{_size}",
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda b, s=_size: (f(b, 2, s, s + 1),),
    )
case("max_pool2d_ceil_dynamic", nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), lambda b: (f(1, 2, 6 + b, 9),))
case(
    "avg_pool2d_ceil_dynamic",
    nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    lambda b: (f(1, 2, 6 + b, 9),),
)
case("max_pool2d_indices", nn.MaxPool2d(2, stride=2, return_indices=True), lambda b: (f(b, 3, 5, 6),))
case(
    "max_pool2d_indices_ceil",
    nn.MaxPool2d(3, stride=2, ceil_mode=True, return_indices=True),
    lambda b: (f(b, 3, 6, 8),),
)
case("avg_pool1d", nn.AvgPool1d(3, 2, 1), lambda b: (f(b, 2, 9),))
case("avg_pool2d", nn.AvgPool2d(3, 2, 1, count_include_pad=False), lambda b: (f(b, 2, 9, 8),))
case("avg_pool2d_divisor", nn.AvgPool2d(2, divisor_override=3), lambda b: (f(b, 2, 6, 8),))
case("avg_pool3d", nn.AvgPool3d(2, stride=1, padding=1), lambda b: (f(b, 2, 3, 4, 4),))
case("adaptive_avg_global", nn.AdaptiveAvgPool2d(1), lambda b: (f(b, 2, 4 + b, 5),))
case("adaptive_avg_even", nn.AdaptiveAvgPool2d((2, 5)), lambda b: (f(b, 2, 4, 10),))
case("adaptive_avg_uneven", nn.AdaptiveAvgPool2d((3, 4)), lambda b: (f(b, 2, 7, 10),))
case("adaptive_avg_dynamic", nn.AdaptiveAvgPool1d(3), lambda b: (f(1, 2, 6 + b),))
case("adaptive_avg_3d", nn.AdaptiveAvgPool3d((1, 2, 3)), lambda b: (f(b, 2, 3, 4, 5),))
case(
    "adaptive_max",
    lambda x: (F.adaptive_max_pool2d(x, 1), F.adaptive_max_pool2d(x, (2, 5)), F.adaptive_max_pool2d(x, (3, 4))),
    lambda b: (f(b, 2, 4, 10),),
)
case("adaptive_max_indices", nn.AdaptiveMaxPool1d(3, return_indices=True), lambda b: (f(b, 2, 9),))
case("lp_pool", nn.LPPool2d(2, 2), lambda b: (positive(b, 2, 4, 6),))


# ── Normalisation ──


def with_statistics(module, seed=0):
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.is_floating_point():
            drawn = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(seed + len(name))) + 0.5
            tensor.data.copy_(drawn)
    return module


OUTLIER = torch.cat([torch.tensor([800.0]), torch.linspace(-2, 2, 63)])
case("batch_norm1d", with_statistics(nn.BatchNorm1d(4)), lambda b: (f(b, 4),))
case("batch_norm2d", with_statistics(nn.BatchNorm2d(3)), lambda b: (f(b, 3, 4, 5),))
case("batch_norm_plain", with_statistics(nn.BatchNorm3d(3, affine=False)), lambda b: (f(b, 3, 2, 4, 5),))
case("batch_norm_of_batch", nn.BatchNorm2d(3, track_running_stats=False), lambda b: (f(b, 3, 4, 5),))
case("layer_norm", with_statistics(nn.LayerNorm(5)), lambda b: (f(b, 3, 5),))
case("layer_norm_2d", with_statistics(nn.LayerNorm((3, 5), bias=False)), lambda b: (f(b, 3, 5),))
case("layer_norm_plain", nn.LayerNorm(5, elementwise_affine=False, eps=1e-3), lambda b: (f(b, 5),))
case("layer_norm_half_outlier", nn.LayerNorm(64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("rms_norm", with_statistics(nn.RMSNorm(5, eps=1e-5)), lambda b: (f(b, 3, 5),))
case("rms_norm_plain", nn.RMSNorm((3, 5), elementwise_affine=False), lambda b: (f(b, 3, 5) * 1e-3,))
case("rms_norm_half_outlier", nn.RMSNorm(64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("rms_norm_half_small", nn.RMSNorm(8).half(), lambda b: ((f(b, 8) * 0.01).half(),))
case("group_norm", with_statistics(nn.GroupNorm(2, 6)), lambda b: (f(b, 6, 4, 3 + b),))
case("group_norm_flat", nn.GroupNorm(2, 6, affine=False), lambda b: (f(b, 6),))
case("group_norm_half", nn.GroupNorm(1, 64).half(), lambda b: (OUTLIER.half().repeat(b, 1),))
case("instance_norm", with_statistics(nn.InstanceNorm2d(3, affine=True)), lambda b: (f(b, 3, 4, 5),))
case("instance_norm_tracked", with_statistics(nn.InstanceNorm1d(3, track_running_stats=True)), lambda b: (f(b, 3, 5),))
case("local_response_norm", nn.LocalResponseNorm(3), lambda b: (positive(b, 5, 4, 4),))
case("weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), lambda b: (f(b, 4),))
case(
    "weight_norm_interface",
    lambda v, g: torch.ops.aten._weight_norm_interface(v, g, 0),
    lambda b: (f(b + 1, 3, 2), f(b + 1, 1, 1)),
)
case(
    "weight_norm_last_dim",
    lambda v, g: torch.ops.aten._weight_norm_interface(v, g, 2),
    lambda b: (f(b + 1, 3, 2), f(1, 1, 2)),
)
