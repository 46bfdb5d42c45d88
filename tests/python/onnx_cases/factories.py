"""Factories, padding and interpolation: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import case, f

# ── Factories ──

case(
    "arange",
    lambda x: (
        torch.arange(x.shape[0]),
        torch.arange(1, x.shape[0] * 2, 2),
        torch.arange(0, 1, 0.3),
        torch.arange(x.shape[0], dtype=torch.float32),
        torch.arange(5, 0, -2),
    ),
    lambda b: (f(b, 2),),
)
case("arange_reals", lambda x: torch.arange(0.5, x.shape[0] + 0.5, 0.7), lambda b: (f(b, 2),), is_static=True)
case(
    "full",
    lambda x: (
        torch.full((x.shape[0], 2), 3.5),
        torch.zeros(x.shape[0]),
        x.new_ones(3, x.shape[0]),
        torch.ones_like(x, dtype=torch.int32),
        x.new_full((2,), 7),
        torch.full_like(x, 2),
    ),
    lambda b: (f(b, 2),),
)
case("full_bools", lambda x: (torch.full((x.shape[0],), True), torch.zeros(3, dtype=torch.bool)), lambda b: (f(b, 2),))
case("scalar_tensor", lambda x: x * torch.scalar_tensor(2.5) + torch.tensor(3), lambda b: (f(b, 2),))
case(
    "linspace",
    lambda x: (
        torch.linspace(0, 1, x.shape[0]),
        torch.linspace(-3, 7, 5),
        torch.linspace(2, 3, 1),
        torch.logspace(0, 2, 4),
    ),
    lambda b: (f(b, 2),),
    is_static=True,
)
case("eye", lambda x: (torch.eye(x.shape[0]), torch.eye(3, 5, dtype=torch.int64)), lambda b: (f(b, 2),))
case(
    "windows",
    lambda x: x * torch.cat((torch.hann_window(4), torch.hamming_window(3, periodic=False))),
    lambda b: (f(b, 7),),
)
case("item", lambda x, k: x * k.item() + k.item(), lambda b: (f(b, 3), torch.tensor(2)))
case("item_as_size", lambda x, k: x.new_zeros(k.item()) + 1, lambda b: (f(b, 3), torch.tensor(4)))

# ── Padding and interpolation ──

for _mode in ("constant", "reflect", "replicate", "circular"):
    case(f"pad_{_mode}", lambda x, m=_mode: F.pad(x, (2, 1, 1, 0), mode=m), lambda b: (f(b, 2, 3, 4),))
case(
    "pad_value",
    lambda x: (F.pad(x, (1, 0), value=2.5), F.pad(x, (-1, 2)), F.pad(x > 0, (1, 1), value=True)),
    lambda b: (f(b, 4),),
)
case("pad_dynamic", lambda x: F.pad(x, (0, x.shape[0], 1, 0)), lambda b: (f(b, 4),))
for _mode in ("nearest", "nearest-exact", "linear"):
    case(
        f"interpolate1d_{_mode}",
        lambda x, m=_mode: (F.interpolate(x, 9, mode=m), F.interpolate(x, scale_factor=1.7, mode=m)),
        lambda b: (f(b, 2, 5),),
    )
for _mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
    case(
        f"interpolate2d_{_mode}",
        lambda x, m=_mode: (
            F.interpolate(x, (7, 3), mode=m),
            F.interpolate(x, scale_factor=2, mode=m),
            F.interpolate(x, scale_factor=(0.6, 1.7), mode=m),
        ),
        lambda b: (f(b, 2, 5, 6),),
    )
for _mode in ("bilinear", "bicubic"):
    case(
        f"interpolate_corners_{_mode}",
        lambda x, m=_mode: F.interpolate(x, (9, 4), mode=m, align_corners=True),
        lambda b: (f(b, 2, 5, 6),),
    )
    case(
        f"interpolate_antialias_{_mode}",
        lambda x, m=_mode: F.interpolate(x, (3, 4), mode=m, antialias=True),
        lambda b: (f(b, 2, 8, 9),),
    )
case(
    "interpolate3d",
    lambda x: (F.interpolate(x, scale_factor=2, mode="trilinear"), F.interpolate(x, (4, 5, 6))),
    lambda b: (f(b, 2, 2, 3, 4),),
)
case(
    "interpolate_dynamic",
    lambda x: F.interpolate(x, (x.shape[2] * 2, 5), mode="bilinear"),
    lambda b: (f(1, 2, 3 + b, 4),),
)
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        case(
            f"grid_sample_{_mode}_{_padding}",
            lambda x, g, m=_mode, p=_padding: F.grid_sample(x, g, m, p, align_corners=m == "bilinear"),
            lambda b: (f(b, 2, 5, 6), f(b, 3, 4, 2) * 0.7),
        )
case(
    "affine_grid",
    lambda t: (
        F.affine_grid(t, (t.shape[0], 1, 4, 5), align_corners=True),
        F.affine_grid(t, (t.shape[0], 1, 4, 5), align_corners=False),
    ),
    lambda b: (f(b, 2, 3),),
)
