"""A training step of SSD300 on ResNet-50, as NVIDIA trains it: six maps of features give 8,732 boxes.

Written from its description (Liu et al., "SSD", 2016; NVIDIA's DeepLearningExamples): ResNet-50 up to its
third stage, which keeps 38 pixels a side, and five blocks that shrink them to one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

_SIDE, _CLASSES, BOXES = 300, 81, 8732
_CHANNELS, _INNER = (1024, 512, 512, 256, 256, 256), (256, 256, 128, 128, 128)
_BOXES_A_PIXEL = (4, 6, 6, 6, 4, 4)
# Blocks that halve the side; the others take what a filter of three leaves.
_HALVED = 3


def _shrinking(inputs: int, inner: int, outputs: int, is_halved: bool) -> nn.Sequential:
    last = nn.Conv2d(inner, outputs, 3, stride=1 + is_halved, padding=int(is_halved), bias=False)
    return nn.Sequential(
        nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
        last, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
    )  # fmt: skip


class SSD(nn.Module):
    """Images to places (batch, 4, boxes) and classes (batch, 81, boxes)."""

    def __init__(self) -> None:
        import timm

        super().__init__()
        whole: Any = timm.create_model("resnet50")
        block = whole.layer3[0]
        block.conv2.stride = block.downsample[0].stride = (1, 1)
        self.backbone = nn.Sequential(
            whole.conv1, whole.bn1, whole.act1, whole.maxpool, whole.layer1, whole.layer2, whole.layer3
        )
        self.smaller = nn.ModuleList(
            _shrinking(i, inner, o, at < _HALVED)
            for at, (i, inner, o) in enumerate(zip(_CHANNELS, _INNER, _CHANNELS[1:], strict=False))
        )
        self.heads = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(channels, per * boxes, 3, padding=1) for per in (4, _CLASSES))
            for channels, boxes in zip(_CHANNELS, _BOXES_A_PIXEL, strict=True)
        )

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Places and classes."""
        maps = [self.backbone(images)]
        for block in self.smaller:
            maps.append(block(maps[-1]))
        found: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
        for pixels, heads in zip(maps, self.heads, strict=True):
            for kind, head, per in zip(found, heads, (4, _CLASSES), strict=True):
                kind.append(head(pixels).reshape(len(images), per, -1))
        return torch.cat(found[0], 2), torch.cat(found[1], 2)


def _loss(
    places: torch.Tensor, classes: torch.Tensor, true: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Of places where a thing is, and of the worst of the others, three times as many."""
    true_places, true_classes = true
    is_thing = true_classes > 0
    number = is_thing.sum(1)
    of_places = (is_thing * functional.smooth_l1_loss(places, true_places, reduction="none").sum(1)).sum(1)
    of_classes = functional.cross_entropy(classes, true_classes, reduction="none")
    others = of_classes.clone()
    others[is_thing] = 0
    rank = others.sort(dim=1, descending=True)[1].sort(dim=1)[1]
    counts = is_thing.float() + (rank < 3 * number[:, None]).float()
    total = of_places + (of_classes * counts).sum(1)
    return (total / number.clamp(min=1)).mean()


@cache
def ssd300(amp: bool, batch_size: int) -> Trace:
    """A step with SGD; channels last, which is the script's default in either precision.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        layout = torch.channels_last  # also without autocast: the benchmark's default
        with torch.device("cuda"):
            model = SSD().to(memory_format=layout)
            images = torch.rand(batch_size, 3, _SIDE, _SIDE).to(memory_format=layout)
            true = torch.rand(batch_size, 4, BOXES), torch.zeros(batch_size, BOXES, dtype=torch.int64)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
        return model, optimizer, torch.amp.GradScaler("cuda", enabled=amp), images, true

    def step(state: tuple[Any, ...]) -> None:
        model, optimizer, scaler, images, true = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            places, classes = model(images)
        loss = _loss(places.float(), classes.float(), true)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return profile_callable(step, setup=build, batch_size=batch_size)
