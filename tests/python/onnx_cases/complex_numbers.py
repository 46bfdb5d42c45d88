"""Complex numbers: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import case, f

# ── Complex numbers ──


def _rotate(x, angles):
    rotation = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[:, None]).flatten(-2).type_as(x)


case("rotary_positions", _rotate, lambda b: (f(b, 2, 8), f(b, 4)))
case("rotary_positions_half", _rotate, lambda b: (f(b, 2, 8, dtype=torch.float16), f(b, 4)))


def complex_case(name, function, inputs=lambda b: (f(b, 4), f(b, 4) + 0.5, f(4) + 2), **options):
    """Of two complex tensors and a real one to complex ones."""

    def pairs(x, y, r):
        return tuple(
            torch.view_as_real(out) if out.is_complex() else out
            for out in function(torch.complex(x, y), torch.complex(y, x + 1), r)
        )

    case(f"complex_{name}", pairs, inputs, **options)


complex_case(
    "sums",
    lambda z, w, r: (z + w, z - w, z + r, r - z, z + 1.5, torch.add(z, w, alpha=2), torch.sub(r, w, alpha=3), 1 - z),
)
complex_case("products", lambda z, w, r: (z * w, z * r, r * z, z * 2.5, z**2, z.square(), z @ w.mT, r.to(z.dtype) * z))
complex_case("quotients", lambda z, w, r: (z / w, z / r, r / w, z / 4, w.reciprocal()))
complex_case(
    "parts",
    lambda z, w, r: (z.real, z.imag, z.abs(), z.angle(), z.conj() * w, -z, z.conj().imag.abs(), torch.polar(r, r)),
)
complex_case("exponential", lambda z, w, r: (z.exp(), torch.exp(r.to(z.dtype))))
complex_case(
    "views",
    lambda z, w, r: (
        z.t(),
        z[1:],
        z[:, None].expand(-1, 2, -1),
        z.reshape(-1),
        z.flip(0),
        z[:, [0, 2]],
        z.unbind(1)[2],
        z.roll(1, 1),
    ),
)
complex_case(
    "joins",
    lambda z, w, r: (
        torch.cat((z, w), 1),
        torch.stack((z, w.conj())),
        torch.where(r > 2, z, w),
        F.pad(z, (1, 2)),
        z.sum(1),
        z.mean(0),
        z.cumsum(1),
    ),
    is_static=True,
)  # torch.export fixes the batch
complex_case("doubles", lambda z, w, r: (z.to(torch.complex128) * w, (z * w).abs().double()))
for _norm in (None, "ortho", "forward"):
    complex_case(
        f"fft_{_norm}",
        lambda z, w, r, n=_norm: (
            torch.fft.fft(z, norm=n),
            torch.fft.ifft(z, dim=0, norm=n),
            torch.fft.fftn(z, norm=n),
            torch.fft.ifft2(w, norm=n),
            torch.fft.fft(r, norm=n),
            torch.fft.fftn(r.expand(3, 4), dim=(0, 1), norm=n).real,
        ),
    )
    case(
        f"rfft_{_norm}",
        lambda x, n=_norm: (
            torch.view_as_real(torch.fft.rfft(x, norm=n)),
            torch.fft.irfft(torch.fft.rfft(x, norm=n), norm=n),
            torch.fft.irfft(torch.fft.rfft(x, dim=0, norm=n), x.shape[0], dim=0, norm=n),
            torch.fft.irfft2(torch.fft.rfft2(x, norm=n), norm=n),
        ),
        lambda b: (f(b, 6),),
    )
case(
    "rfft_of_other_size",
    lambda x: (
        torch.fft.rfft(x, 4).abs(),
        torch.fft.rfft(x, 9).abs(),
        torch.fft.irfft(torch.complex(x, x), 7),
        torch.fft.irfft(torch.complex(x, x), 16),
    ),
    lambda b: (f(b, 6),),
)
case(
    "autocorrelation",
    lambda x, y: torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.fft.rfft(y, dim=1).conj(), n=x.shape[1], dim=1),
    lambda b: (f(2, b + 6, 3), f(2, b + 6, 3)),
)
case("fft_long", lambda x: torch.fft.irfft(torch.polar(x.exp(), x), 1280), lambda b: (f(b, 641),))
case("fft_doubles", lambda x: torch.view_as_real(torch.fft.fft(x)), lambda b: (f(b, 10).double(),), tolerance=1e-10)
