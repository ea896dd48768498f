"""A training step of NVIDIA's recommenders: neural collaborative filtering, and DLRM on its small data set.

Written from their descriptions (He et al., 2017; Naumov et al., 2019; NVIDIA's DeepLearningExamples).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

# MovieLens-20M.
_USERS, _ITEMS = 138_493, 26_744
_FACTORS, _LAYERS = 64, (256, 256, 128, 64)
# Criteo's tables, and the rows that one has on average where words seen 15 times count.
_TABLES, _ROWS, _WIDTH, _NUMBERS = 26, 600_000, 128, 13
_BOTTOM, _TOP = (512, 256, 128), (1024, 1024, 512, 256, 1)
# What the first perceptron gives, products of all pairs, and one to fill up.
_INTERACTED = _WIDTH + _TABLES * (_TABLES + 1) // 2 + 1


class NeuMF(nn.Module):
    """Factors of users and items, multiplied and through a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        widths = (_FACTORS, _LAYERS[0] // 2)
        self.users = nn.ModuleList(nn.Embedding(_USERS, width) for width in widths)
        self.items = nn.ModuleList(nn.Embedding(_ITEMS, width) for width in widths)
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(_LAYERS))
        self.last = nn.Linear(_FACTORS + _LAYERS[-1], 1)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """A score of each pair."""
        factors = self.users[0](users) * self.items[0](items)
        deep = torch.cat((self.users[1](users), self.items[1](items)), 1)
        for layer in self.layers:
            deep = functional.dropout(functional.relu(layer(deep)), 0.5)
        return self.last(torch.cat((factors, deep), 1))


class _Interaction(torch.autograd.Function):
    """Stands for NVIDIA's kernel of products of all pairs (``dotBasedInteract``): it moves the same bytes.

    Forward, vectors are read and products written; backward, both are read and gradients written.
    """

    @staticmethod
    def forward(ctx: Any, vectors: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(vectors)
        return functional.pad(vectors.sum(2), (0, _INTERACTED - vectors.shape[1]))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (vectors,) = ctx.saved_tensors
        return vectors * gradient[:, : vectors.shape[1], None]


class DLRM(nn.Module):
    """Numbers through a perceptron, words from tables, and the products of all pairs of these."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(_TABLES * _ROWS, _WIDTH, sparse=True)
        self.bottom, self.top = (
            nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
            for sizes in ((_NUMBERS, *_BOTTOM), (_INTERACTED, *_TOP))
        )

    def forward(self, numbers: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """A score of each sample."""
        dense = numbers
        for layer in self.bottom:
            dense = functional.relu(layer(dense))
        deep = _Interaction.apply(torch.cat((dense[:, None], self.table(words).to(dense.dtype)), 1))
        for layer in self.top[:-1]:
            deep = functional.relu(layer(deep))
        return self.top[-1](deep)


@cache
def ncf(amp: bool, batch_size: int) -> Trace:
    """A step with Adam.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        with torch.device("cuda"):
            model = NeuMF()
            pairs = [torch.zeros(batch_size, dtype=torch.int64) for _ in range(2)]
            labels = torch.zeros(batch_size, 1)
        return model, [torch.optim.Adam(model.parameters(), fused=True)], pairs, labels

    return profile_callable(_step(amp), setup=build, batch_size=batch_size)


@cache
def dlrm(amp: bool, batch_size: int) -> Trace:
    """A step with SGD on 65,536 samples whatever the table calls them; gradients of words are sparse.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        with torch.device("cuda"):
            model = DLRM()
            numbers, labels = torch.rand(batch_size, _NUMBERS), torch.zeros(batch_size, 1)
            words = torch.zeros(batch_size, _TABLES, dtype=torch.int64)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return model, [optimizer], [numbers, words], labels

    return profile_callable(_step(amp), setup=build, batch_size=batch_size)


def _step(amp: bool) -> Any:
    def step(state: tuple[Any, ...]) -> None:
        model, optimizers, inputs, labels = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            scores = model(*inputs)
        loss = functional.binary_cross_entropy_with_logits(scores.float(), labels)
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step
