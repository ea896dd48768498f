"""GNMT v2, the recurrent translator of NVIDIA's published tables.

Written from its description (Wu et al., "Google's Neural Machine Translation System", 2016, and what v2
changed): an encoder of four LSTM layers, the first in both directions, residual from the third; a decoder
of four, whose first layer's outputs ask the normalised attention of Bahdanau et al., and whose further
layers take the context beside their input, residual from the third. Embeddings are shared, dropout is
0.2, the loss is label-smoothed, and Adam steps after the gradients were clipped. Half precision was apex O2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH, VOCABULARY = 1024, 32_320
# Sentences have 50 tokens at most, 25 to 30 on average, and those of a batch are of like length.
LENGTH = 28
DROPOUT, SMOOTHING, MOST_NORM = 0.2, 0.1, 5.0


class NormalisedAttention(nn.Module):
    """Additive attention with a normalised vector of scores, for all queries at once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.scores = nn.Parameter(torch.rand(width))
        self.scale = nn.Parameter(torch.rand(1))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """(batch, queries, width) and (batch, keys, width) to contexts like the queries."""
        pairs = self.query(queries)[:, :, None] + self.key(keys)[:, None] + self.bias
        weights = (torch.tanh(pairs) @ (self.scores / self.scores.norm() * self.scale)).softmax(-1)
        return weights @ keys


class Encoder(nn.Module):
    """Four layers, the first in both directions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.both_ways = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(2 * width, width, batch_first=True)
        self.rest = nn.ModuleList([nn.LSTM(width, width, batch_first=True) for _ in range(2)])

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        """(batch, steps, width), and gives the same."""
        hidden = self.both_ways(nn.functional.dropout(embedded, DROPOUT))[0]
        hidden = self.second(nn.functional.dropout(hidden, DROPOUT))[0]
        for layer in self.rest:
            hidden = hidden + layer(nn.functional.dropout(hidden, DROPOUT))[0]
        return hidden


class Decoder(nn.Module):
    """Four layers; the first one's outputs are the queries of the attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.LSTM(width, width, batch_first=True)
        self.attention = NormalisedAttention(width)
        self.rest = nn.ModuleList([nn.LSTM(2 * width, width, batch_first=True) for _ in range(3)])

    def forward(self, embedded: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        """(batch, steps, width) twice, and gives the same."""
        hidden = self.first(nn.functional.dropout(embedded, DROPOUT))[0]
        context = self.attention(hidden, encoded)
        for number, layer in enumerate(self.rest):
            output = layer(torch.cat((nn.functional.dropout(hidden, DROPOUT), context), -1))[0]
            hidden = output + hidden if number else output
        return hidden


class Translator(nn.Module):
    """Encoder, decoder, and a classifier over the vocabulary."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encoder = Encoder(width)
        self.decoder = Decoder(width)
        self.classify = nn.Linear(width, vocabulary)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, steps) of both languages to logits (batch, steps, vocabulary)."""
        return self.classify(self.decoder(self.embed(target), self.encoder(self.embed(source))))


def smoothed(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """The loss, of logits (tokens, vocabulary): logs of probabilities are FP32 whatever the model is."""
    # What log_softmax(dtype=torch.float32) does to halves on a GPU alone: one kernel that reads halves.
    logs = torch._log_softmax(logits, -1, logits.dtype is torch.float16)
    of_words = nn.functional.nll_loss(logs, words, reduction="sum")
    return (1 - SMOOTHING) * of_words - SMOOTHING * logs.mean(-1).sum()


class ClippedAdam(torch.optim.Adam):
    """Of gradients that are together no longer than ``MOST_NORM``."""

    def step(self, closure: Any = None) -> Any:
        """Clip and move."""
        nn.utils.clip_grad_norm_(self.param_groups[0]["params"], MOST_NORM)
        return super().step(closure)
