"""One iteration of the big Transformer that translates, as NVIDIA's published tables ran it.

Vaswani et al., "Attention Is All You Need", 2017: six layers on either side, 1,024 wide, 16 heads, 4,096 in
between, dropout 0.1, one table of embeddings for both languages and the logits, label-smoothed loss, Adam.
The batch is a number of tokens of the target.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import torch
from torch import nn

from advisor.core.values import Trace
from advisor.profile import profile_callable

WIDTH, VOCABULARY, SMOOTHING = 1024, 33_712, 0.1
# Of sentences, on average; those of a batch are of like length.
LENGTH = 32


class Transformer(nn.Module):
    """Encoder, decoder, and embeddings that serve three times."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        sizes = {"d_model": WIDTH, "nhead": 16, "dim_feedforward": 4096, "batch_first": True}
        self.encoder = nn.ModuleList([nn.TransformerEncoderLayer(**sizes) for _ in range(6)])
        self.decoder = nn.ModuleList([nn.TransformerDecoderLayer(**sizes) for _ in range(6)])
        self.dropout = nn.Dropout(0.1)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, steps) of both languages to logits (batch, steps, vocabulary)."""
        encoded, hidden = (self.dropout(self.embed(tokens) * WIDTH**0.5) for tokens in (source, target))
        for layer in self.encoder:
            encoded = layer(encoded)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        for layer in self.decoder:
            hidden = layer(hidden, encoded, tgt_mask=mask, tgt_is_causal=True)
        return nn.functional.linear(hidden, self.embed.weight)


State: TypeAlias = tuple[Transformer, torch.optim.Optimizer, torch.amp.GradScaler, torch.Tensor]


@cache
def transformer(amp: bool, batch_size: int) -> Trace:
    """A training step on about ``batch_size`` tokens of the target, with autocast to fp16 or without.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> State:
        with torch.device("cuda"):
            model = Transformer()
            tokens = torch.ones(batch_size // LENGTH, LENGTH, dtype=torch.int64)
        scaler = torch.amp.GradScaler("cuda", enabled=amp)
        return model, torch.optim.Adam(model.parameters(), fused=True), scaler, tokens

    def step(state: State) -> None:
        model, optimizer, scaler, tokens = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            logits = model(tokens, tokens).flatten(0, 1)
            loss = nn.functional.cross_entropy(logits, tokens.flatten(), label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return profile_callable(step, setup=build, batch_size=batch_size)
