"""Cases of convolutions of square images: what networks use, forward and backward, in both layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from advisor.core.values import Phase
from advisor.measure.case import RATES, Argument, Caps, Case, call, channels_last, tensor
from advisor.measure.draw import Draw, shrunk
from advisor.operators.costs import item_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """A kind of convolution; ``in_channels`` where it is always the same."""

    size: int
    stride: int = 1
    in_channels: int | None = None
    is_depthwise: bool = False
    is_transposed: bool = False

    @property
    def padding(self) -> int:
        return 1 if self.is_transposed else self.size // 2


# ResNet's, MobileNet's, VGG's, Inception's, DCGAN's; what is most frequent comes twice.
_FILTERS = (
    _Filter(size=3), _Filter(size=1), _Filter(size=3, stride=2), _Filter(size=1, stride=2),
    _Filter(size=7, stride=2, in_channels=3), _Filter(size=3), _Filter(size=1), _Filter(size=5),
    _Filter(size=3, is_depthwise=True), _Filter(size=4, stride=2, is_transposed=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolution:
    """A convolution of a batch of square images."""

    filter: _Filter
    in_channels: int
    out_channels: int
    batch: int
    side: int

    @property
    def groups(self) -> int:
        return self.out_channels if self.filter.is_depthwise else 1

    @property
    def source(self) -> tuple[int, ...]:
        return (self.batch, self.in_channels, self.side, self.side)

    @property
    def weight(self) -> tuple[int, ...]:
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.filter.is_transposed:
            channels = (self.in_channels, self.out_channels)
        return (*channels, self.filter.size, self.filter.size)

    @property
    def out(self) -> tuple[int, ...]:
        size, stride, padding = self.filter.size, self.filter.stride, self.filter.padding
        side = (self.side + 2 * padding - size) // stride + 1
        if self.filter.is_transposed:
            side = (self.side - 1) * stride - 2 * padding + size
        return (self.batch, self.out_channels, side, side)

    def fits(self, caps: Caps, dtype: str, tf32: bool) -> bool:
        """Whether forward and backward stay below the caps."""
        positions = self.source if self.filter.is_transposed else self.out
        flops = 2 * self.batch * prod(positions[2:]) * prod(self.weight)
        elements = prod(self.source) + prod(self.out) + prod(self.weight)
        return (
            2 * flops <= caps.most_flops(dtype, tf32) and 2 * elements * item_bytes(dtype) <= caps.num_bytes
        )


def convolutions(index: int, caps: Caps) -> Iterator[Case]:
    """One convolution at each rate, forward and backward."""
    for dtype, tf32 in RATES:
        draw = Draw(f"conv {dtype} {tf32}", index)
        layout = draw.choice((None, channels_last))
        found = _drawn(draw, caps, dtype, tf32)
        source, weight, out = (
            tensor(shape, dtype, stride=layout(shape) if layout else None)
            for shape in (found.source, found.weight, found.out)
        )
        geometry = _geometry(found)
        forward = call("convolution", source, weight, None, *geometry)
        backward = call("convolution_backward", out, source, weight, None, *geometry, [True, True, False])
        yield Case(family="conv", dtype=dtype, tf32=tf32, call=forward)
        yield Case(family="conv", dtype=dtype, tf32=tf32, phase=Phase.BACKWARD, call=backward)


def _geometry(found: _Convolution) -> tuple[Argument, ...]:
    """Stride, padding, dilation, transposed, output padding, groups: as all operators take them."""
    stride, padding = found.filter.stride, found.filter.padding
    return [stride] * 2, [padding] * 2, [1, 1], found.filter.is_transposed, [0, 0], found.groups


def _drawn(draw: Draw, caps: Caps, dtype: str, tf32: bool) -> _Convolution:
    kind = draw.choice(_FILTERS)
    out_channels = draw.size(16, 1024, 8)
    in_channels = kind.in_channels or (out_channels if kind.is_depthwise else draw.size(16, 1024, 8))

    def fits(batch: int, side: int, channels: int = max(in_channels, out_channels)) -> bool:
        return convolution(batch, side, channels).fits(caps, dtype, tf32)

    def convolution(batch: int, side: int, most_channels: int) -> _Convolution:
        return _Convolution(
            filter=kind,
            in_channels=min(in_channels, most_channels),
            out_channels=min(out_channels, most_channels),
            batch=batch,
            side=side,
        )

    batch, side = shrunk((draw.size(1, 256), draw.size(7, 224)), fits, least=4)
    # Caps of a GPU let any channels pass.
    (channels,) = shrunk((max(in_channels, out_channels),), lambda most: fits(batch, side, most))
    return convolution(batch, side, channels)
