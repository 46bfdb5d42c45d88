"""Recurrent layers, attention, losses: cases of test_onnx_ops."""

import torch
import torch.nn.functional as F
from onnx_cases.support import bools, case, f, ints
from torch import nn

torch.manual_seed(0)  # of the modules below

# ── Recurrent layers ──


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        output, state = self.layer(x)
        return (output, *state) if isinstance(state, tuple) else (output, state)


for _name, _layer in {
    "lstm": nn.LSTM(3, 4), "lstm_deep": nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
    "lstm_without_bias": nn.LSTM(3, 4, bias=False), "gru": nn.GRU(3, 4, 2), "gru_both": nn.GRU(3, 4, bidirectional=True),
    "rnn_tanh": nn.RNN(3, 4, 2), "rnn_relu": nn.RNN(3, 4, nonlinearity="relu", bidirectional=True, batch_first=True),
}.items():  # fmt: skip
    # torch.export fixes the length, so that the batch changes.
    case(_name, Recurrent(_layer), lambda b, first=_layer.batch_first: (f(b, 5, 3) if first else f(5, b, 3),))
case("lstm_unbatched", Recurrent(nn.LSTM(3, 4, 2)), lambda b: (f(5 + b, 3),), is_static=True)
case("cells", lambda x: (*LSTM_CELL(x), GRU_CELL(x), RNN_CELL(x)), lambda b: (f(b, 3),))
LSTM_CELL, GRU_CELL, RNN_CELL = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)

# ── Attention ──

_qkv = lambda b: (f(b, 4, 5, 8), f(b, 4, 6, 8), f(b, 4, 6, 8))  # noqa: E731
case("sdpa", F.scaled_dot_product_attention, _qkv)
case("sdpa_scale", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.2), _qkv)
case("sdpa_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), _qkv)
case(
    "sdpa_causal_short",
    lambda q, k, v: (
        F.scaled_dot_product_attention(q[:, :, :1], k, v, is_causal=True),
        F.scaled_dot_product_attention(q[:, :, :2], k, v, is_causal=True),
    ),
    _qkv,
)
case(
    "sdpa_causal_dynamic", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), lambda b: (f(2, 4, b, 8),)
)
case("sdpa_mask", F.scaled_dot_product_attention, lambda b: (*_qkv(b), f(b, 1, 5, 6)))


def _mask_with_empty_row(b):
    mask = torch.ones(b, 1, 5, 6, dtype=torch.bool)
    mask[..., 2:] = False
    mask[0, 0, 1] = False
    return (*_qkv(b), mask)


case("sdpa_bool_mask", F.scaled_dot_product_attention, _mask_with_empty_row)
case(
    "sdpa_infinite_mask",
    lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k, v, torch.zeros_like(m, dtype=q.dtype).masked_fill(~m, float("-inf"))
    ),
    _mask_with_empty_row,
)
case(
    "sdpa_grouped",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
    lambda b: (f(b, 4, 5, 8), f(b, 2, 6, 8), f(b, 2, 6, 8)),
)
case(
    "sdpa_grouped_mask",
    lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True),
    lambda b: (f(b, 4, b + 3, 8), f(b, 2, 6, 8), f(b, 2, 6, 8), bools(b, 1, b + 3, 6)),
)
case("sdpa_3d", F.scaled_dot_product_attention, lambda b: (f(b, 5, 8), f(b, 6, 8), f(b, 6, 3)))
case("sdpa_half", F.scaled_dot_product_attention, lambda b: tuple(t.half() for t in _qkv(b)))


class MultiheadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)


case("multihead_attention", MultiheadAttention(), lambda b: (f(b, b + 1, 8),))
case(
    "transformer_encoder",
    nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 48, activation="gelu"), 2),
    lambda b: (f(b + 4, b, 32),),
)

# ── Losses and distances ──

_classes = lambda b: (f(b, 4), torch.tensor([0, 3, -100, 2, 1])[:b])  # noqa: E731
case(
    "cross_entropy",
    lambda x, t: (
        F.cross_entropy(x, t),
        F.cross_entropy(x, t, reduction="sum"),
        F.cross_entropy(x, t, reduction="none"),
        F.cross_entropy(x, t, weight=torch.arange(1.0, 5), label_smoothing=0.1),
    ),
    _classes,
)
case(
    "cross_entropy_probabilities",
    lambda x, t: (F.cross_entropy(x, t.softmax(1)), F.cross_entropy(x, t.softmax(1), label_smoothing=0.2)),
    lambda b: (f(b, 4), f(b, 4)),
)
case("cross_entropy_pixels", lambda x, t: F.cross_entropy(x, t), lambda b: (f(b, 4, 3), ints(b, 3, low=0, high=4)))
case(
    "nll_loss",
    lambda x, t: (F.nll_loss(x.log_softmax(1), t), F.nll_loss(x.log_softmax(1), t, torch.arange(1.0, 5))),
    _classes,
)
case(
    "regression_losses",
    lambda x, y: (
        F.mse_loss(x, y),
        F.l1_loss(x, y, reduction="sum"),
        F.smooth_l1_loss(x, y, beta=0.5),
        F.huber_loss(x, y, reduction="none", delta=0.7),
    ),
    lambda b: (f(b, 4), f(b, 4) * 2),
)
case(
    "binary_losses",
    lambda x, y: (
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.arange(1.0, 5)),
    ),
    lambda b: (f(b, 4), f(b, 4)),
)
case(
    "kl_div",
    lambda x, y: (
        F.kl_div(x.log_softmax(1), y.softmax(1)),
        F.kl_div(x.log_softmax(1), y.log_softmax(1), reduction="sum", log_target=True),
    ),
    lambda b: (f(b, 4), f(b, 4) * 2),
)
case(
    "cdist",
    lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1), torch.cdist(x, y, p=3)),
    lambda b: (f(b, 4, 5), f(b, 3, 5)),
)
case(
    "euclidean_dist",
    lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
    lambda b: (f(b, 4, 5), f(b, 3, 5)),
)
case("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), lambda b: (f(b, 4), f(b, 4) * 2))
