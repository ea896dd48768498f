"""One iteration of the big Transformer that translates, as NVIDIA's published tables ran it.

Vaswani et al., "Attention Is All You Need", 2017: six layers on either side, 1,024 wide, 16 heads, 4,096 in
between, dropout 0.1, one table of embeddings for both languages and the logits, label-smoothed loss, Adam.
The batch is a number of tokens of the target.
"""

from __future__ import annotations

from functools import cache, partial

import torch
from torch import nn

from advisor.core.values import Trace
from advisor.profile import profile_callable
from research.gnmt import smoothed
from research.gpu_day.steps import Made, Step, prepared, run

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


@cache
def transformer(amp: bool, batch_size: int) -> Trace:
    """A training step on about ``batch_size`` tokens of the target, in a half model (apex O2) or without.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    step = Step(network="transformer", precision="o2" if amp else "tf32", batch=batch_size)
    return profile_callable(run, setup=lambda: prepared(step, _made), batch_size=batch_size)


def _made(batch_size: int, tiny: bool) -> Made:  # noqa: ARG001
    nn.functional.scaled_dot_product_attention = _attention  # type: ignore[assignment]
    tokens = torch.ones(batch_size // LENGTH, LENGTH, dtype=torch.int64)

    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return smoothed(model(tokens, tokens).flatten(0, 1), tokens.flatten())

    return Made(
        model=Transformer(), inputs=(tokens,), loss=loss, optimizer=partial(torch.optim.Adam, fused=True)
    )


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: ARG001
) -> torch.Tensor:
    """By single operators: PyTorch had no fused kernel in those years."""
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    scores = scores if attn_mask is None else scores + attn_mask
    return nn.functional.dropout(scores.softmax(-1), dropout_p) @ value
