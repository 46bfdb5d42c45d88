"""Views, slices, joins and repeats: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import case, f, ints, positive
from torch import nn

torch.manual_seed(0)  # of the modules below

# ── Views ──

case(
    "reshape",
    lambda x: (x.reshape(-1), x.reshape(x.shape[0], -1), x.view(2, -1, 2), x.flatten(1), x.unflatten(1, (2, 3))),
    lambda b: (f(b, 6, 4),),
)
case(
    "reshape_two_dynamic",
    lambda x: (
        x.reshape(x.shape[0], x.shape[1], 2, 2),
        x.reshape(x.shape[0] * x.shape[1], 4),
        x.transpose(0, 1).reshape(x.shape[1], -1),
    ),
    lambda b: (f(b, b + 2, 4),),
)
case("reshape_to_scalar", lambda x: x.sum().reshape(1, 1, 1), lambda b: (f(b, 2),))
case("reshape_empty", lambda x: (x[:, :0].reshape(x.shape[0], 0, 2), x[:, :0].flatten(1)), lambda b: (f(b, 4, 2),))
case(
    "permute",
    lambda x: (
        x.permute(2, 0, 1),
        x.transpose(1, 2),
        x.movedim(0, -1),
        x.movedim((0, 1), (2, 0)),
        x.swapaxes(0, 1),
        x.mT,
    ),
    lambda b: (f(b, 3, 4),),
)
case("t", lambda x: (x.t(), x.T, x[0].t()), lambda b: (f(b, 3),))
case(
    "unsqueeze_squeeze",
    lambda x: (
        x.unsqueeze(0),
        x.unsqueeze(-1),
        x.squeeze(),
        x.squeeze(1),
        x.squeeze(0),
        x.squeeze((1, 3)),
        x[:, None, :, None],
    ),
    lambda b: (f(b + 1, 1, 3, 1),),
)
case(
    "expand",
    lambda x: (
        x.expand(2, -1, 5),
        x[:, :, None].expand(-1, 4, x.shape[0]),
        x.expand_as(x.repeat(1, 5)),
        torch.broadcast_to(x, (3, x.shape[0], 2)),
    ),
    lambda b: (f(b, 1),),
)
case(
    "as_strided",
    lambda x: (x.as_strided((2, 3), (1, 2)), x.as_strided((2, 2), (2, 1), 3)),
    lambda b: (f(4, 5),),
    is_static=True,
)
case("pixel_shuffle", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 3)), lambda b: (f(b, 8, 6, 3),))
case(
    "pixel_unshuffle_order",
    nn.PixelUnshuffle(2),
    lambda b: (torch.arange(1.0, 9).reshape(1, 2, 2, 2).repeat(b, 1, 1, 1),),
)
case("pixel_shuffle_3d", nn.PixelShuffle(2), lambda b: (f(4, 3 + b, 5),))
case("channel_shuffle", nn.ChannelShuffle(3), lambda b: (f(b, 6, 2, 2),))
case(
    "to_dtypes",
    lambda x: (x.double(), x.half(), x.int(), x.bool(), x.to(torch.uint8), x.long(), x.type_as(x.half())),
    lambda b: (positive(b, 4) * 9,),
)
case("from_ints", lambda x: (x.float(), x.bool(), x.int(), x.to(torch.int8)), lambda b: (ints(b, 4),))
case("copy", lambda x, y: (torch.ops.aten.copy(x, y), torch.ops.aten.copy(x.int(), y)), lambda b: (f(b, 4), f(4) * 5))
case("clone", lambda x: (x.clone() + 1, x.contiguous(), x.detach()), lambda b: (f(b, 4),))

# ── Slices, joins, repeats ──

case(
    "slice",
    lambda x: (x[1:], x[:, 1:3], x[:, ::2], x[:, -2:], x[..., :-1], x[:, 10:], x[:, -10:2]),
    lambda b: (f(b + 1, 4),),
)
case(
    "slice_dynamic", lambda x, y: (x[: y.shape[0]], x[y.shape[0] - 1 :], x[-y.shape[0] :]), lambda b: (f(8, 3), f(b, 2))
)
case("select", lambda x: (x[0], x[-1], x[:, 2], x.select(1, -2)), lambda b: (f(b, 4),))
case("select_dynamic", lambda x, y: x[y.shape[0] - 1], lambda b: (f(8, 3), f(b, 2)))
case("narrow", lambda x: (x.narrow(1, 1, 2), x.narrow(1, -2, 2)), lambda b: (f(b, 4),))
case(
    "split",
    lambda x: (*x.split(2, 1), *x.split((1, 4), -1), *x.chunk(2, 1), *x.tensor_split(3, 1)),
    lambda b: (f(b, 5),),
)
case("split_used_once", lambda x: x.split(2, 1)[1], lambda b: (f(b, 6),))
case("split_dynamic", lambda x: x.split((x.shape[0] - 1, 1), 0), lambda b: (f(b + 1, 3),))
case("unbind", lambda x: (*x.unbind(1), x.unbind(-1)[2]), lambda b: (f(b, 3),))
case(
    "cat",
    lambda x, y: (torch.cat((x, y), 1), torch.cat((x, x)), torch.cat((x, y[:, :0], y), -1)),
    lambda b: (f(b, 3), f(b, 2)),
)
case("cat_promotes", lambda x, y: torch.cat((x, y), 1), lambda b: (f(b, 3), ints(b, 2)))
case("cat_legacy_empty", lambda x: torch.cat((torch.zeros(0), x), 1), lambda b: (f(b, 3),))
case(
    "stack",
    lambda x, y: (torch.stack((x, y)), torch.stack((x, y), -1), torch.stack((x, y), 1)),
    lambda b: (f(b, 3), f(b, 3)),
)
case(
    "flip_roll",
    lambda x: (x.flip(0), x.flip(0, -1), x.fliplr(), x.roll(1, 0), x.roll((1, -2), (0, 1)), x.roll(2), x.roll(7, 1)),
    lambda b: (f(b, 4),),
)
case("repeat", lambda x: (x.repeat(2, 3), x.repeat(2, 1, 1), x.tile((2,)), x.tile((1, 2, 3))), lambda b: (f(b, 3),))
case("repeat_dynamic", lambda x: x[:1].repeat(x.shape[0], 2), lambda b: (f(b, 3),))
case(
    "repeat_interleave",
    lambda x: (x.repeat_interleave(2), x.repeat_interleave(3, 0), x.repeat_interleave(2, -1)),
    lambda b: (f(b, 3),),
)
case("repeat_interleave_tensor", lambda x, r: x.repeat_interleave(r, 1), lambda b: (f(b, 3), torch.tensor([2, 0, 3])))
case(
    "meshgrid",
    lambda x, y: (*torch.meshgrid(x, y, indexing="ij"), *torch.meshgrid(x, y, indexing="xy")),
    lambda b: (f(b), f(3)),
)
case("unfold", lambda x: (x.unfold(1, 3, 2), x.unfold(-1, 2, 1), x.unfold(0, 1, 1)), lambda b: (f(b, 8, 4),))
case("im2col", lambda x: F.unfold(x, 3, padding=1, stride=2), lambda b: (f(b, 2, 7, 6),))
case("col2im", lambda x: F.fold(x, (5, 6), 2, padding=1, stride=2), lambda b: (f(b, 8, 12),))
