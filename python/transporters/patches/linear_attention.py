"""Linear attention with a state, for sequences whose length is a symbol.

Why: the state goes from chunk to chunk in a Python loop, so a graph would hold the number of chunks. What the chunks take
from each other is a triangular system over the whole sequence, which one op solves. That takes memory for the square of
the length, as attention does. Sequences of a fixed length keep their loop.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import torch

from ..registry import replaced
from .vision_grids import module_names


def _gated_delta_rule(original):
    """The whole sequence as one chunk."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def chunk_gated_delta_rule(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        length = bound.arguments["key"].shape[1]
        if not isinstance(length, torch.SymInt):
            return original(*args, **kwargs)
        bound.arguments["chunk_size"] = length
        module = sys.modules[original.__module__]
        # Exports for some targets avoid the solver; with it the loop over the rows of a chunk goes too.
        with replaced([(module, "is_torchdynamo_exporting", lambda _: lambda: False)]):
            return original(*bound.args, **bound.kwargs)

    return chunk_gated_delta_rule


def _kimi_delta_attention(original):
    """Decays for each channel: pairs within a chunk would not fit for whole sequences, so chunks stay chunks."""

    @functools.wraps(original)
    def chunk_kimi_delta_attention(
        query,
        key,
        value,
        g,
        beta,
        chunk_size=64,
        initial_state=None,
        output_final_state=False,
        use_qk_l2norm_in_kernel=False,
        **kwargs,
    ):
        length = key.shape[1]
        if not isinstance(length, torch.SymInt):
            return original(
                query, key, value, g, beta, chunk_size, initial_state, output_final_state, use_qk_l2norm_in_kernel, **kwargs
            )
        dtype = query.dtype
        if use_qk_l2norm_in_kernel:
            query, key = _normalized(query.float()), _normalized(key.float())
        outputs, state = delta_attention(
            query.float() * query.shape[-1] ** -0.5, key.float(), value.float(), g.float(), beta.float(), initial_state,
            chunk_size,
        )  # fmt: skip
        return outputs.to(dtype), state if output_final_state else None

    return chunk_kimi_delta_attention


def _normalized(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_attention(query, key, value, decay, beta, state, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(outputs, last state) of S_t = (1 - beta_t k_t k_t^T) diag(exp(decay_t)) S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t.

    query, key, decay: (batch, length, heads, channels); value: (batch, length, heads, values); beta: (batch, length,
    heads); state: (batch, heads, channels, values) or None. decay is not above 0.
    """
    length = key.shape[1]
    padding = (chunk - length % chunk) % chunk

    def chunked(x):
        """(batch, heads, chunks, places, features), with places that change nothing at the end."""
        x = torch.nn.functional.pad(x.transpose(1, 2), (0, 0, 0, padding))
        return x.reshape(x.shape[0], x.shape[1], -1, chunk, x.shape[-1])

    query, key, value, decay, beta = map(chunked, (query, key, value, decay, beta.unsqueeze(-1)))
    if state is None:
        state = value.new_zeros(value.shape[0], value.shape[1], key.shape[-1], value.shape[-1])
    since_start = decay.cumsum(-2)
    later = torch.ones(chunk, chunk, dtype=torch.bool, device=key.device).triu(1)
    between = since_start.unsqueeze(-2) - since_start.unsqueeze(-3)
    between = between.masked_fill(later[..., None], float("-inf")).exp()

    # Within chunks: what each place adds, and how it reads the state that its chunk starts with.
    overlap = ((key * beta).unsqueeze(-2) * key.unsqueeze(-3) * between).sum(-1).tril(-1)
    additions = _solve(overlap, value * beta)
    reads = _solve(overlap, key * beta * since_start.exp())
    attention = (query.unsqueeze(-2) * key.unsqueeze(-3) * between).sum(-1)
    query = query * since_start.exp()

    # Between chunks: chunk j's additions reach chunk i behind it through the decay of the chunks between them.
    whole = since_start[..., -1, :]
    ends = whole.cumsum(-2)
    starts = ends - whole
    key = key * (whole.unsqueeze(-2) - since_start).exp()
    not_before = torch.ones(ends.shape[-2], ends.shape[-2], dtype=torch.bool, device=key.device).triu()
    reach = (starts.unsqueeze(-2) - ends.unsqueeze(-3)).masked_fill(not_before[..., None], float("-inf")).exp()

    def from_earlier(x):
        """(batch, heads, places, places): what the places of x read of the additions of earlier chunks."""
        products = (x.unsqueeze(-3) * reach.unsqueeze(-2)) @ key.transpose(-1, -2).unsqueeze(-4)
        return products.transpose(-3, -2).flatten(-2).flatten(-3, -2)

    def from_state(x):
        return (x * starts.exp().unsqueeze(-2)).flatten(-3, -2) @ state

    additions = _solve(from_earlier(reads), additions.flatten(-3, -2) - from_state(reads))
    within = attention @ additions.reshape(value.shape)
    outputs = from_earlier(query) @ additions + from_state(query) + within.flatten(-3, -2)
    key = key * (ends[..., -1:, :] - ends).exp().unsqueeze(-2)
    state = ends[..., -1, :].exp().unsqueeze(-1) * state + key.flatten(-3, -2).transpose(-1, -2) @ additions
    return outputs[:, :, :length].transpose(1, 2), state


def _solve(system: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """x of (1 + system) x = right, for a strictly lower triangular system."""
    return torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)


def _lightning_attention(original):
    """MiniMax: the whole sequence as one block, with the decays of a block of that size."""

    @functools.wraps(original)
    def forward(self, hidden_states, *args, **kwargs):
        length = hidden_states.shape[1]
        if not isinstance(length, torch.SymInt):
            return original(self, hidden_states, *args, **kwargs)
        block_size, buffers = self.block_size, dict(self._buffers)
        try:
            self.block_size = length
            names = ("query_decay", "key_decay", "diagonal_decay")
            self._buffers.update(zip(names, self.decay_factors(self.slope_rate)))
            return original(self, hidden_states, *args, **kwargs)
        finally:
            self.block_size = block_size
            self._buffers.update(buffers)

    return forward


_FUNCTIONS = {
    "torch_chunk_gated_delta_rule": _gated_delta_rule,
    "chunk_kimi_delta_attention": _kimi_delta_attention,
}


def entries(model: torch.nn.Module) -> list[tuple[Any, str, Any]]:
    modules = [sys.modules[name] for name in module_names(model) if name in sys.modules]
    found = [
        (module, name, factory)
        for name, factory in _FUNCTIONS.items()
        for module in modules
        if callable(vars(module).get(name))
    ]
    minimax = sys.modules.get("transformers.models.minimax.modeling_minimax")
    if minimax in modules:
        found.append((minimax.MiniMaxLightningAttention, "forward", _lightning_attention))
    return found
