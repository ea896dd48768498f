"""Small networks of torchbench that no package has, written down from their papers and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


def _convolution(source: int, target: int, side: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(source, target, side, stride, side // 2, bias=False)


class _Residual(nn.Module):
    """Two convolutions beside an identity, or beside one that halves the image."""

    def __init__(self, source: int, target: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _convolution(source, target, 3, stride),
            nn.BatchNorm2d(target),
            nn.ReLU(),
            _convolution(target, target),
            nn.BatchNorm2d(target),
        )
        self.beside = nn.Identity() if stride == 1 else _convolution(source, target, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.beside(x))


def _phlippe_resnet() -> nn.Module:
    blocks = (_Residual(max(width // (2 if first else 1), 16), width, 2 if first and width > 16 else 1)
              for width in (16, 32, 64) for first in (True, False, False))  # fmt: skip
    return nn.Sequential(
        _convolution(3, 16), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


class _Dense(nn.Module):
    """What comes in, and sixteen channels more."""

    def __init__(self, source: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(source), nn.ReLU(), _convolution(source, 32, 1),
            nn.BatchNorm2d(32), nn.ReLU(), _convolution(32, 16),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.body(x), x], 1)


def _phlippe_densenet() -> nn.Module:
    return nn.Sequential(*_dense_layers())


def _dense_layers() -> Iterator[nn.Module]:
    width = 32
    yield _convolution(3, width)
    for block in range(4):
        for _ in range(6):
            yield _Dense(width)
            width += 16
        if block < 3:
            yield from (nn.BatchNorm2d(width), nn.ReLU(), _convolution(width, width // 2, 1), nn.AvgPool2d(2))
            width //= 2
    yield from (nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def _dcgan() -> nn.Module:
    """The discriminator, which alone is trained there."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for source, target in pairwise((64, 128, 256, 512)):
        layers += [nn.Conv2d(source, target, 4, 2, 1, bias=False), nn.BatchNorm2d(target)]
        layers.append(nn.LeakyReLU(0.2, inplace=True))
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, bias=False), nn.Sigmoid())


def _learning_to_paint() -> nn.Module:
    """An actor: a ResNet-18 of nine channels, whose first stage halves the image instead of a pool."""
    resnet = import_module("torchvision.models.resnet")
    network = resnet.resnet18(num_classes=65)
    network.conv1, network.maxpool = _convolution(9, 64, 3, 2), nn.Identity()
    network.inplanes = 64
    network.layer1 = network._make_layer(resnet.BasicBlock, 64, 2, stride=2)
    return nn.Sequential(network, nn.Sigmoid())


class _UNet(nn.Module):
    """Encoder and decoder of five scales, enlarged bilinearly."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 512)
        self.down = nn.ModuleList(_twice(a, b, b) for a, b in pairwise((3, *widths)))
        self.up = nn.ModuleList(_twice(2 * a, a, b) for a, b in pairwise((*reversed(widths[:-1]), 64)))
        self.out = nn.Conv2d(64, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for block in self.down:
            x = block(functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for block in self.up:
            beside = kept.pop()
            x = functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)
            x = functional.pad(x, (0, beside.shape[3] - x.shape[3], 0, beside.shape[2] - x.shape[2]))
            x = block(torch.cat([beside, x], 1))
        result: torch.Tensor = self.out(x)
        return result


def _twice(source: int, between: int, target: int) -> nn.Sequential:
    return nn.Sequential(
        _convolution(source, between), nn.BatchNorm2d(between), nn.ReLU(inplace=True),
        _convolution(between, target), nn.BatchNorm2d(target), nn.ReLU(inplace=True),
    )  # fmt: skip


def _deeprecommender() -> nn.Module:
    widths = (197951, 512, 512, 1024, 512, 512, 197951)
    layers = [(nn.Linear(a, b), nn.SELU()) for a, b in pairwise(widths)]
    return nn.Sequential(*(layer for pair in layers for layer in pair))


# Each with the shape of a sample.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "phlippe_resnet": (_phlippe_resnet, (3, 32, 32)),
    "phlippe_densenet": (_phlippe_densenet, (3, 32, 32)),
    "dcgan": (_dcgan, (3, 64, 64)),
    "LearningToPaint": (_learning_to_paint, (9, 128, 128)),
    "pytorch_unet": (_UNet, (3, 640, 959)),
    "nvidia_deeprecommender": (_deeprecommender, (197951,)),
}
