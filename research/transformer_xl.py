"""One iteration of the base Transformer-XL, as NVIDIA's published tables ran it.

Dai et al., "Transformer-XL", 2019: 16 layers, 512 wide, 8 heads of 64, 2,048 in between, 192 tokens that also
attend to the 192 before them by relative positions, WikiText-103's 267,735 words by an adaptive softmax whose
weights are the embeddings. Adam stands for LAMB, and how many words are rare is a guess.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import nn

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

LAYERS, WIDTH, HEADS, INNER, LENGTH = 16, 512, 8, 2048, 192
# Words by frequency: the first are told apart at once, the others with those of their group.
CUTOFFS = (19_997, 39_997, 199_997, 267_735)
RARE_SHARES = (0.04, 0.025, 0.005)


class Layer(nn.Module):
    """Attention by contents and by distance, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.distance = nn.Linear(WIDTH, WIDTH, bias=False)
        self.merge = nn.Linear(WIDTH, WIDTH, bias=False)
        self.of_content, self.of_distance = (nn.Parameter(torch.zeros(HEADS, 64)) for _ in range(2))
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, INNER), nn.ReLU(), nn.Dropout(0.1), nn.Linear(INNER, WIDTH), nn.Dropout(0.1)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.dropout = nn.Dropout(0.1)

    def forward(
        self, hidden: torch.Tensor, memory: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """(steps, batch, width), the same of the tokens before, (both steps, width), (steps, both steps)."""
        steps, batch, _ = hidden.shape
        known = torch.cat((memory, hidden))
        heads = self.project(known).view(len(known), batch, 3, HEADS, 64)
        queries, keys, values = heads[-steps:, :, 0], heads[:, :, 1], heads[:, :, 2]
        distances = self.distance(positions).view(-1, HEADS, 64)
        contents = torch.einsum("ibhd,jbhd->bhij", queries + self.of_content, keys)
        away = torch.einsum("ibhd,jhd->bhij", queries + self.of_distance, distances)
        scores = (contents + _shifted(away)) / 8
        weights = self.dropout(scores.masked_fill(mask, -60_000.0).softmax(-1))
        weighted = torch.einsum("bhij,jbhd->ibhd", weights, values).reshape(steps, batch, WIDTH)
        hidden = self.norms[0](hidden + self.dropout(self.merge(weighted)))
        return self.norms[1](hidden + self.feed(hidden))


def _shifted(scores: torch.Tensor) -> torch.Tensor:
    """Scores by distance to scores by position: each row begins one further left than the row below."""
    *leading, rows, columns = scores.shape
    padded = nn.functional.pad(scores, (1, 0)).view(*leading, columns + 1, rows)
    return padded[..., 1:, :].reshape(scores.shape)


class LanguageModel(nn.Module):
    """Embeddings that serve twice, layers that hand on what they saw, an adaptive softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(CUTOFFS[-1], WIDTH)
        self.bias = nn.Parameter(torch.zeros(CUTOFFS[-1]))
        self.groups = nn.Linear(WIDTH, len(RARE_SHARES))
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Tokens (steps, batch) and what the layers saw before to the sum of the losses."""
        steps = len(tokens)
        hidden = self.dropout(self.embed(tokens))
        positions = self.dropout(torch.zeros(2 * steps, WIDTH, device=tokens.device))
        mask = torch.ones(steps, 2 * steps, dtype=torch.bool, device=tokens.device).triu(1 + steps)
        for layer in self.layers:
            hidden = layer(hidden, memory, positions, mask)
        return self._losses(self.dropout(hidden).flatten(0, 1))

    def _losses(self, hidden: torch.Tensor) -> torch.Tensor:
        first = slice(0, CUTOFFS[0])
        often = nn.functional.linear(hidden, self.embed.weight[first], self.bias[first])
        loss = _unlikely(torch.cat((often, self.groups(hidden)), -1))
        for number, share in enumerate(RARE_SHARES):
            group = slice(CUTOFFS[number], CUTOFFS[number + 1])
            rows = hidden[: max(8, int(share * len(hidden)))]
            loss = loss + _unlikely(nn.functional.linear(rows, self.embed.weight[group], self.bias[group]))
        return loss


def _unlikely(logits: torch.Tensor) -> torch.Tensor:
    words = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    return nn.functional.cross_entropy(logits, words, reduction="sum")


State: TypeAlias = tuple[
    LanguageModel, torch.optim.Optimizer, torch.amp.GradScaler, torch.Tensor, torch.Tensor
]


@cache
def transformer_xl(amp: bool, batch_size: int) -> Trace:
    """A training step, with autocast to fp16 or without; a sample is 192 tokens.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> State:
        with torch.device("cuda"):
            model = LanguageModel()
            tokens = torch.ones(LENGTH, batch_size, dtype=torch.int64)
            memory = torch.zeros(LENGTH, batch_size, WIDTH)
        scaler = torch.amp.GradScaler("cuda", enabled=amp)
        return model, torch.optim.Adam(model.parameters(), fused=True), scaler, tokens, memory

    def step(state: State) -> None:
        model, optimizer, scaler, tokens, memory = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = model(tokens, memory)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        scaler.step(optimizer)
        scaler.update()

    return profile_callable(step, setup=build, batch_size=batch_size)
