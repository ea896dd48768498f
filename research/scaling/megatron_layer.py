"""The module of ``research.scaling.megatron``; apart, since it imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Layer(nn.Module):
    """A pre-norm layer with a rank's share of its heads and of its inner width; exchanges are left out."""

    def __init__(self, hidden: int, heads: int, ranks: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.attend = nn.Linear(hidden, 3 * hidden // ranks)
        self.project = nn.Linear(hidden // ranks, hidden)
        self.widen = nn.Linear(hidden, 4 * hidden // ranks)
        self.narrow = nn.Linear(4 * hidden // ranks, hidden)
        self.dropout = nn.Dropout(0.1)

    def forward(self, states: Tensor) -> Tensor:
        """States and their change are of (length, batch, hidden)."""
        first, second = self.norms
        states = states + self.dropout(self.project(self._mixed(self.attend(first(states)))))
        change: Tensor = self.narrow(functional.gelu(self.widen(second(states))))
        return states + self.dropout(change)

    def _mixed(self, both: Tensor) -> Tensor:
        length, batch, _ = both.shape
        queries, keys, values = (
            part.reshape(length, batch * self.heads, -1).transpose(0, 1) for part in both.chunk(3, dim=-1)
        )
        scores = torch.bmm(queries, keys.transpose(1, 2)) * queries.shape[-1] ** -0.5
        causal = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        shares = self.dropout(scores.masked_fill(causal, -10000.0).softmax(-1))
        return torch.bmm(shares, values).transpose(0, 1).reshape(length, batch, -1)
