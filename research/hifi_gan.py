"""A training step of HiFi-GAN V1, a vocoder: one-dimensional convolutions from 32 to 8,192 positions.

Written from its description (Kong et al., "HiFi-GAN", 2020): a generator that lengthens 32 frames of 80 bands
by 8, 8, 2 and 2, five discriminators that fold the wave by a period and three that average it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import weight_norm

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

FRAMES, _BANDS, _SAMPLES = 32, 80, 8192
_RATES, _KERNELS, _WIDTH = (8, 8, 2, 2), (16, 16, 4, 4), 512
_BRANCHES, _DILATIONS = (3, 7, 11), (1, 3, 5)
_PERIODS, _SCALES = (2, 3, 5, 7, 11), 3
_SLOPE = 0.1
# Of a discriminator of waves: channels in and out, filter, stride, groups.
_LAYERS = (
    (1, 128, 15, 1, 1), (128, 128, 41, 2, 4), (128, 256, 41, 2, 16), (256, 512, 41, 4, 16),
    (512, 1024, 41, 4, 16), (1024, 1024, 41, 1, 16), (1024, 1024, 5, 1, 1), (1024, 1, 3, 1, 1),
)  # fmt: skip


class _Branch(nn.Module):
    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.dilated, self.plain = (
            nn.ModuleList(
                weight_norm(nn.Conv1d(width, width, size, dilation=d, padding=d * (size - 1) // 2))
                for d in dilations
            )
            for dilations in (_DILATIONS, (1,) * len(_DILATIONS))
        )

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        for dilated, plain in zip(self.dilated, self.plain, strict=True):
            inner = dilated(functional.leaky_relu(wave, _SLOPE))
            wave = plain(functional.leaky_relu(inner, _SLOPE)) + wave
        return wave


class Generator(nn.Module):
    """Frames (batch, bands, frames) to a wave (batch, 1, samples)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = weight_norm(nn.Conv1d(_BANDS, _WIDTH, 7, padding=3))
        widths = [_WIDTH >> i for i in range(len(_RATES) + 1)]
        self.longer = nn.ModuleList(
            weight_norm(nn.ConvTranspose1d(i, o, size, rate, padding=(size - rate) // 2))
            for i, o, rate, size in zip(widths, widths[1:], _RATES, _KERNELS, strict=False)
        )
        self.branches = nn.ModuleList(
            nn.ModuleList(_Branch(width, size) for size in _BRANCHES) for width in widths[1:]
        )
        self.last = weight_norm(nn.Conv1d(widths[-1], 1, 7, padding=3))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The wave."""
        wave = self.first(frames)
        for longer, branches in zip(self.longer, self.branches, strict=True):
            wave = longer(functional.leaky_relu(wave, _SLOPE))
            wave = torch.stack([branch(wave) for branch in branches]).sum(0) / len(branches)
        return torch.tanh(self.last(functional.leaky_relu(wave)))


class _Discriminator(nn.Module):
    """Gives what each of its layers says."""

    def __init__(self, layers: list[nn.Module], period: int = 1, scale: int = 0) -> None:
        super().__init__()
        self.layers, self.period, self.scale = nn.ModuleList(layers), period, scale

    def forward(self, wave: torch.Tensor) -> list[torch.Tensor]:
        for _ in range(self.scale):
            wave = functional.avg_pool1d(wave, 4, 2, padding=2)
        if self.period > 1:
            wave = functional.pad(wave, (0, -wave.shape[-1] % self.period), "reflect")
            wave = wave.view(len(wave), 1, -1, self.period)
        said = []
        for layer in self.layers:
            wave = layer(wave)
            if layer is not self.layers[-1]:
                wave = functional.leaky_relu(wave, _SLOPE)
            said.append(wave)
        return said


def _discriminators() -> nn.ModuleList:
    def of_period(period: int) -> _Discriminator:
        widths = (1, 32, 128, 512, 1024, 1024)
        strides = (3, 3, 3, 3, 1)
        layers = [
            nn.Conv2d(i, o, (5, 1), (s, 1), padding=(2, 0))
            for i, o, s in zip(widths, widths[1:], strides, strict=False)
        ]
        last = nn.Conv2d(widths[-1], 1, (3, 1), padding=(1, 0))
        return _Discriminator([weight_norm(layer) for layer in (*layers, last)], period=period)

    def of_scale(scale: int) -> _Discriminator:
        layers = [nn.Conv1d(i, o, k, s, padding=k // 2, groups=g) for i, o, k, s, g in _LAYERS]
        return _Discriminator([weight_norm(layer) for layer in layers], scale=scale)

    return nn.ModuleList([*map(of_period, _PERIODS), *map(of_scale, range(_SCALES))])


def _mel(wave: torch.Tensor, filters: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
    """80 bands of the wave's spectrum; its Fourier transform is one product of each frame here."""
    frames = functional.pad(wave[:, 0], (384, 384), "reflect").unfold(-1, 1024, 256)
    spectrum = torch.matmul(frames.float(), window)
    return torch.matmul((spectrum**2 + 1e-9).sqrt(), filters).clamp(min=1e-5).log()


def _losses(real: list[list[torch.Tensor]], made: list[list[torch.Tensor]]) -> tuple[Any, Any]:
    """How well it tells waves apart, and how far apart what layers say is."""
    apart: Any = sum(((1 - r[-1]) ** 2).mean() + (m[-1] ** 2).mean() for r, m in zip(real, made, strict=True))
    near: Any = sum(
        (a - b).abs().mean() for r, m in zip(real, made, strict=True) for a, b in zip(r, m, strict=True)
    )
    return apart, near


@cache
def hifi_gan(amp: bool, batch_size: int) -> Trace:
    """Both networks' steps on a batch of segments, with AdamW.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        with torch.device("cuda"):
            generator, judges = Generator(), _discriminators()
            frames, wave = torch.rand(batch_size, _BANDS, FRAMES), torch.rand(batch_size, 1, _SAMPLES)
            spectral = torch.rand(513, _BANDS), torch.rand(1024, 513)
        optimizers = [torch.optim.AdamW(m.parameters(), fused=True) for m in (generator, judges)]
        return generator, judges, optimizers, frames, wave, spectral

    def step(state: tuple[Any, ...]) -> None:
        generator, judges, (of_generator, of_judges), frames, wave, spectral = state
        half = torch.autocast("cuda", dtype=torch.float16, enabled=amp)
        with half:
            made = generator(frames)
            apart, _ = _losses([j(wave) for j in judges], [j(made.detach()) for j in judges])
        of_judges.zero_grad()
        apart.backward()
        of_judges.step()
        with half:
            real, fake = [j(wave) for j in judges], [j(made) for j in judges]
            fooled, near = _losses(fake, real)
        loss = fooled + 2 * near + 45 * (_mel(made, *spectral) - _mel(wave, *spectral)).abs().mean()
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()

    return profile_callable(step, setup=build, batch_size=batch_size)
