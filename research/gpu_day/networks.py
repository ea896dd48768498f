"""Networks that torchvision and transformers do not have, small enough to read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


class UNet(nn.Module):
    """U-Net as nnU-Net builds it: two convolutions a level, instance norms, transposed convolutions up.

    Args:
        dimensions: 2 or 3.
        channels: of the input.
        classes: of the output.
        widths: channels of each level; each level halves the sides.
    """

    def __init__(self, *, dimensions: int, channels: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        self._conv = nn.Conv2d if dimensions == 2 else nn.Conv3d
        up = nn.ConvTranspose2d if dimensions == 2 else nn.ConvTranspose3d
        before = [channels, *widths[:-1]]
        self.down = nn.ModuleList(
            self._level(first, width, stride=1 if level == 0 else 2)
            for level, (first, width) in enumerate(zip(before, widths, strict=True))
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(up(deep, width, 2, stride=2, bias=False) for deep, width in pairs)
        self.merge = nn.ModuleList(self._level(2 * width, width, stride=1) for _, width in pairs)
        self.classify = self._conv(widths[0], classes, 1)

    def _level(self, first: int, width: int, *, stride: int) -> nn.Sequential:
        norm = nn.InstanceNorm2d if self._conv is nn.Conv2d else nn.InstanceNorm3d
        layers: list[nn.Module] = []
        for channels, step in ((first, stride), (width, 1)):
            layers += [
                self._conv(channels, width, 3, stride=step, padding=1, bias=False),
                norm(width, affine=True),
                nn.LeakyReLU(0.01, inplace=True),
            ]
        return nn.Sequential(*layers)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Images or volumes to logits of the same sides."""
        skipped = []
        for level in self.down:
            hidden = level(hidden)
            skipped.append(hidden)
        skipped.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            hidden = merge(torch.cat((up(hidden), skipped.pop()), 1))
        logits: torch.Tensor = self.classify(hidden)
        return logits


class Generator(nn.Sequential):
    """DCGAN's generator, 64 pixels a side."""

    def __init__(self, width: int) -> None:
        layers: list[nn.Module] = [nn.ConvTranspose2d(100, 8 * width, 4, bias=False)]
        for channels in (8 * width, 4 * width, 2 * width):
            layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            layers += [nn.ConvTranspose2d(channels, channels // 2, 4, 2, 1, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        layers += [nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()]
        super().__init__(*layers)


class Discriminator(nn.Sequential):
    """DCGAN's discriminator; gives one logit an image."""

    def __init__(self, width: int) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for channels in (width, 2 * width, 4 * width):
            layers += [nn.Conv2d(channels, 2 * channels, 4, 2, 1, bias=False)]
            layers += [nn.BatchNorm2d(2 * channels), nn.LeakyReLU(0.2, inplace=True)]
        layers += [nn.Conv2d(8 * width, 1, 4, bias=False), nn.Flatten(0)]
        super().__init__(*layers)


class Dcgan(nn.Module):
    """Both networks of DCGAN, whose losses are computed of one batch and summed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.generate = Generator(width)
        self.judge = Discriminator(width)

    def forward(self, noise: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
        """The sum of the three losses."""
        made = self.generate(noise)
        softplus = nn.functional.softplus
        real, fake = self.judge(images), self.judge(made.detach())
        loss: torch.Tensor = (softplus(-real) + softplus(fake) + softplus(-self.judge(made))).mean()
        return loss


class Speech(nn.Module):
    """Deep Speech 2: two convolutions over the spectrogram, LSTMs in both directions, CTC."""

    def __init__(self, *, bands: int, width: int, layers: int, letters: int) -> None:
        super().__init__()
        self.listen = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), stride=(2, 2), padding=(20, 5), bias=False),
            nn.BatchNorm2d(32),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(32, 32, (21, 11), stride=(2, 1), padding=(10, 5), bias=False),
            nn.BatchNorm2d(32),
            nn.Hardtanh(0, 20, inplace=True),
        )
        self.remember = nn.LSTM(32 * (bands // 4), width, num_layers=layers, bidirectional=True)
        self.spell = nn.Linear(2 * width, letters)

    def forward(self, heard: torch.Tensor) -> torch.Tensor:
        """Spectrograms (batch, 1, bands, time) to log-probabilities (time / 2, batch, letters)."""
        hidden = self.listen(heard).flatten(1, 2).permute(2, 0, 1).contiguous()
        logits = self.spell(self.remember(hidden)[0])
        return logits.float().log_softmax(-1)


class Dlrm(nn.Module):
    """DLRM: embeddings of categories, two perceptrons, and all pairs' dot products between them."""

    def __init__(self, *, tables: int, rows: int, width: int, hidden: int, sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, width, mode="sum", sparse=sparse) for _ in range(tables)
        )
        pairs = (tables + 1) * tables // 2
        self.bottom = _perceptron(13, hidden, hidden // 2, width)
        self.top = _perceptron(pairs + width, 2 * hidden, 2 * hidden, hidden, hidden // 2, 1)
        self._count = tables + 1

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        """Numbers (batch, 13) and categories (tables, batch) to logits (batch)."""
        dense = self.bottom(numbers)
        rows = [table(picks[:, None]) for table, picks in zip(self.tables, categories, strict=True)]
        vectors = torch.stack([dense, *(row.to(dense.dtype) for row in rows)], 1)
        products = vectors @ vectors.transpose(1, 2)
        below = torch.tril_indices(self._count, self._count, -1, device=numbers.device)
        logits: torch.Tensor = self.top(torch.cat((dense, products[:, below[0], below[1]]), 1))
        return logits.flatten()


def _perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for first, second in pairwise(widths):
        layers += [nn.Linear(first, second), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class WordModel(nn.Module):
    """An LSTM language model."""

    def __init__(self, *, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.remember = nn.LSTM(width, width, num_layers=layers, dropout=0.2)
        self.classify = nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Words (steps, batch) to logits (steps, batch, words)."""
        logits: torch.Tensor = self.classify(self.remember(self.embed(words))[0])
        return logits


class Mixture(nn.Module):
    """Layers of a mixture of experts, two experts a token, each expert over the tokens that chose it."""

    def __init__(self, *, width: int, experts: int, layers: int) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(width, experts, bias=False) for _ in range(layers))
        self.layers = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                for _ in range(experts)
            )
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Tokens (tokens, width), and gives the same; each expert has room for its even share."""
        for gate, experts, norm in zip(self.gates, self.layers, self.norms, strict=True):
            normed = norm(hidden)
            chances = gate(normed).softmax(-1)
            room = 2 * len(hidden) // len(experts)
            mixed = torch.zeros_like(hidden)
            assert isinstance(experts, nn.ModuleList)
            for number, expert in enumerate(experts):
                weights, tokens = chances[:, number].topk(room)
                out = expert(normed.index_select(0, tokens)) * weights[:, None]
                mixed = mixed.index_add(0, tokens, out.to(mixed.dtype))
            hidden = hidden + mixed
        return hidden
