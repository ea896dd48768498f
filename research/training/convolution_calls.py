"""Convolutions as a profile would record them, from the dimensions that published tables tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.core.values import AttributeValue, Op, Phase, TensorSpec
from advisor.operators.registry import cost_of
from research.training.drawn import fraction_of

# The part of the shapes that only judges.
JUDGED_SHARE = 1 / 3
Pair = tuple[int, int]
_MASKS = {"backward_data": (True, False, False), "backward_weights": (False, True, False)}
# What a table may say of a call's direction.
FORWARD, DIRECTIONS = "forward", ("forward", *_MASKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """A convolution of images but for the number of them."""

    in_channels: int
    size: Pair
    out_channels: int
    out: Pair
    filter: Pair
    padding: Pair
    stride: Pair
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def only_judges(self) -> bool:
        """Whether it is of the third of shapes that no training sees, whatever its batch, dtype and GPU."""
        return fraction_of(f"judge {self!r}") < JUDGED_SHARE

    @property
    def drawn(self) -> float:
        """A number in [0, 1) by which a part of a large table is read."""
        return fraction_of(f"draw {self!r}")


def convolution_call(
    shape: Geometry, *, batch: int, dtype: str, direction: str, is_channels_last: bool
) -> Op:
    """One call in one of ``DIRECTIONS``; a backward one computes a single gradient."""

    def tensor(*sizes: int) -> TensorSpec:
        return TensorSpec(shape=sizes, dtype=dtype, stride=_strides(sizes, is_channels_last))

    source = tensor(batch, shape.in_channels, *shape.size)
    weight = tensor(shape.out_channels, shape.in_channels // shape.groups, *shape.filter)
    target = tensor(batch, shape.out_channels, *shape.out)
    attributes: dict[str, AttributeValue] = {
        "stride": shape.stride, "padding": shape.padding, "dilation": shape.dilation, "transposed": False,
        "output_padding": (0, 0), "groups": shape.groups,
    }  # fmt: skip
    name = "aten::convolution"
    inputs: tuple[TensorSpec, ...] = (source, weight)
    outputs = (target,)
    if direction != FORWARD:
        attributes["output_mask"] = mask = _MASKS[direction]
        name, inputs, outputs = f"{name}_backward", (target, *inputs), (source if mask[0] else weight,)
    cost = cost_of(name, inputs, outputs, attributes)
    return Op(
        name=name,
        phase=Phase.FORWARD if direction == FORWARD else Phase.BACKWARD,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=1,
    )


def _strides(sizes: tuple[int, ...], is_channels_last: bool) -> tuple[int, ...]:
    order = (0, 2, 3, 1) if is_channels_last else (0, 1, 2, 3)
    return tuple(math.prod(sizes[later] for later in order[order.index(dim) + 1 :]) for dim in range(4))
