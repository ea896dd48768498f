"""One training step of nnU-Net, as NVIDIA's published tables ran it: a U-Net in two or three dimensions.

Written from its description (Isensee et al., "nnU-Net", 2021; NVIDIA's DeepLearningExamples). At each of six
levels are two convolutions of 3 a side with instance norm and leaky ReLU, 32 channels doubled at each up to
320 (512). Strided convolutions lead down and transposed ones up; the head has four classes. Patches have 128
voxels a side (192 by 160 pixels) of four (five) channels. The loss is cross entropy and Dice's.

NVIDIA's benchmark runs volumes under autocast with channels last and one fused kernel for each instance norm
(`--layout NDHWC --norm instance_nvfuser`). A batch norm stands for it, which moves the same bytes. A rich
progress bar reads the loss in each step, and with apex's Adam the host waits for the loss scaler.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

_CHANNELS = {3: (32, 64, 128, 256, 320, 320), 2: (32, 64, 128, 256, 512, 512)}
_PATCH = {3: (128, 128, 128), 2: (192, 160)}
_INPUTS, _CLASSES = {3: 4, 2: 5}, 4
LOOP_S = 4.6e-3
"""Of Lightning's loop in each step, while the GPU waits (``python -m research.lightning_loop``)."""
State = tuple[nn.Module, torch.optim.Optimizer, torch.amp.GradScaler, torch.Tensor, torch.Tensor]


class _Block(nn.Sequential):
    def __init__(self, norm: type[nn.Module], dims: int, inputs: int, outputs: int, stride: int = 1) -> None:
        conv = getattr(nn, f"Conv{dims}d")
        layers = []
        for i, s in ((inputs, stride), (outputs, 1)):
            layers += [
                conv(i, outputs, 3, stride=s, padding=1, bias=False),
                norm(outputs, affine=True),
                nn.LeakyReLU(0.01),
            ]
        super().__init__(*layers)


class UNet(nn.Module):
    """Levels down and up again, each up one with what its level gave on the way down."""

    def __init__(self, dims: int, *, is_fused: bool) -> None:
        super().__init__()
        channels, up = _CHANNELS[dims], getattr(nn, f"ConvTranspose{dims}d")
        norm = getattr(nn, f"{'Batch' if is_fused else 'Instance'}Norm{dims}d")
        inputs = (_INPUTS[dims], *channels)
        self.down = nn.ModuleList(
            _Block(norm, dims, i, o, 1 if level == 0 else 2)
            for level, (i, o) in enumerate(zip(inputs, channels, strict=False))
        )
        pairs = list(zip(channels[:0:-1], channels[-2::-1], strict=True))
        self.up = nn.ModuleList(up(low, high, 2, stride=2) for low, high in pairs)
        self.joined = nn.ModuleList(_Block(norm, dims, 2 * high, high) for _, high in pairs)
        self.head = getattr(nn, f"Conv{dims}d")(channels[0], _CLASSES, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (batch, channels, ...) to logits (batch, classes, ...)."""
        kept = []
        for block in self.down:
            images = block(images)
            kept.append(images)
        for up, joined, skipped in zip(self.up, self.joined, kept[-2::-1], strict=True):
            images = joined(torch.cat((up(images), skipped), 1))
        return self.head(images)


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    dims = (0, *range(2, logits.dim()))
    likely = functional.softmax(logits, 1)
    true = torch.zeros_like(likely).scatter_(1, labels.unsqueeze(1), 1)
    both, each = (likely * true).sum(dims), likely.sum(dims) + true.sum(dims)
    return functional.cross_entropy(logits, labels) + (1 - 2 * both / (each + 1e-5)).mean()


@cache
def nnunet(dims: int, amp: bool, batch_size: int) -> Trace:
    """A step with Adam, with autocast to fp16 or without.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    is_fused = amp and dims == 3
    layout = torch.channels_last_3d if is_fused else torch.contiguous_format

    def build() -> State:
        with torch.device("cuda"):
            model = UNet(dims, is_fused=is_fused).to(memory_format=layout)
            images = torch.rand(batch_size, _INPUTS[dims], *_PATCH[dims]).to(memory_format=layout)
            labels = torch.zeros(batch_size, *_PATCH[dims], dtype=torch.int64)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        optimizer._step_supports_amp_scaling = False  # nor does apex's Adam
        return model, optimizer, torch.amp.GradScaler("cuda", enabled=amp), images, labels

    def step(state: State) -> None:
        model, optimizer, scaler, images, labels = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = _loss(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        loss.item()

    return profile_callable(step, setup=build, batch_size=batch_size)
