"""Convolutions as the matrix products that GPUs make of them: what networks for tensor cores read.

A forward pass multiplies pixels by filters, the gradient of the input pixels by channels, that of the weight
filters by channels over all pixels; no matrix is ever stored (implicit GEMM). So a kernel's tiles, and how
they fill the SMs, follow from the shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Op, TensorSpec
from advisor.operators.family import Board, base_name
from advisor.operators.tiles import alignment, padding

NAMES = frozenset({"convolution", "convolution_backward"})
_TILE = 128
# Tiles of the product stand here among the features, as a logarithm.
_TILES_AT = 0
NUM_FEATURES = 30
NUM_CUDNN_FEATURES = NUM_FEATURES + 1
# Channels of a group, and of all, for which cuDNN has a tensor-core kernel in channels_last. In measured
# steps of an RTX 3090 it makes 16 TFLOP/s (seresnext101_32x4d), and what replaces it 1 (senet154, which has
# other filters than channels, res2next50, which has few of them, eca_nfnet_l0, whose groups have 64).
_GROUP_WIDTHS, _FEWEST_CHANNELS = frozenset({4, 8, 16, 24, 32, 40, 48}), 96


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One call: which results it computes, and of what shape everything is."""

    source: TensorSpec
    weight: TensorSpec
    target: TensorSpec
    gives_data: bool
    gives_weights: bool
    stride: int
    groups: int

    @property
    def is_channels_last(self) -> bool:
        """CuDNN takes that layout where the input or the weight has it."""
        return is_channels_last(self.source) or is_channels_last(self.weight)

    @property
    def product(self) -> tuple[float, int, float]:
        """Rows, columns and inner size of one group's product; of both gradients the input's counts."""
        out_channels, in_channels, *filter_sides = self.weight.shape
        filters, taps = out_channels // self.groups, prod(filter_sides)
        pixels_in = self.source.shape[0] * prod(self.source.shape[2:])
        pixels_out = self.target.shape[0] * prod(self.target.shape[2:])
        if self.gives_data:
            return pixels_in, in_channels, max(filters * taps / self.stride, 1.0)
        if self.gives_weights:
            return filters, in_channels * taps, pixels_out
        return pixels_out, filters, in_channels * taps


def is_channels_last(tensor: TensorSpec) -> bool:
    """Whether channels lie next to each other; of one channel or one pixel nobody can tell.

    >>> is_channels_last(TensorSpec(shape=(2, 3, 4, 4), dtype="float16", stride=(48, 1, 12, 3)))
    True
    """
    if tensor.stride is None or len(tensor.shape) < 3 or tensor.shape[1] == 1:
        return False
    return tensor.stride[1] == 1 and prod(tensor.shape[2:]) > 1


def features(op: Op) -> tuple[float, ...] | None:
    """Numbers of one call; None but for two-dimensional convolutions that are not transposed."""
    call = _pass_of(op)
    if call is None:
        return None
    rows, columns, inner = call.product
    out_channels, in_channels, height, width = call.weight.shape
    filters, taps = out_channels // call.groups, height * width
    is_depthwise = in_channels == 1 and call.groups > 1
    is_grouped = call.groups > 1 and not is_depthwise
    last = call.is_channels_last
    num_tiles = math.ceil(rows / _TILE) * math.ceil(columns / _TILE) * call.groups
    pixels = prod(call.target.shape[2:])
    flags = (
        call.gives_data, call.gives_weights, last, is_depthwise, is_grouped,
        last and is_depthwise, last and is_grouped, taps == 1, height != width,
        taps == 9 and call.stride == 1 and call.groups == 1,  # Winograd's
        call.source.dtype == "float32", call.source.dtype == "bfloat16",
    )  # fmt: skip
    sizes = (
        num_tiles, rows, columns, inner, in_channels, filters, call.groups, taps, call.stride, pixels,
        call.source.shape[0],
    )  # fmt: skip
    return (
        *map(math.log, sizes),
        *map(float, flags),
        padding(math.ceil(rows), _TILE),
        *(padding(math.ceil(size), 32) for size in (columns, inner)),
        padding(columns, 64),
        *(alignment(size) for size in (in_channels, filters, pixels)),
    )


def cudnn_features(op: Op) -> tuple[float, ...] | None:
    """As ``features``, and whether tensor cores compute the groups of a call in channels_last."""
    shared, call = features(op), _pass_of(op)
    if shared is None or call is None:
        return None
    filters, channels = call.weight.shape[0] // call.groups, call.weight.shape[1]
    has_kernel = (
        call.is_channels_last
        and call.weight.shape[0] >= _FEWEST_CHANNELS
        and filters == channels
        and channels in _GROUP_WIDTHS
    )
    return (*shared, float(has_kernel))


def _pass_of(op: Op) -> _Pass | None:
    is_backward = base_name(op.name) == "convolution_backward"
    target, source, weight = op.inputs[:3] if is_backward else (op.outputs[0], *op.inputs[:2])
    mask = cast("tuple[bool, ...]", op.attributes["output_mask"]) if is_backward else (False, False)
    shapes = (source.shape, weight.shape, target.shape)
    if len(source.shape) != 4 or op.attributes["transposed"] or not op.flops or min(map(min, shapes)) < 1:
        return None
    return _Pass(
        source=source,
        weight=weight,
        target=target,
        gives_data=bool(mask[0]),
        gives_weights=bool(mask[1]),
        stride=prod(cast("tuple[int, ...]", op.attributes["stride"])),
        groups=cast("int", op.attributes["groups"]),
    )


def _waves(calls: NDArray[np.float32], gpu: GpuSpec) -> NDArray[np.float32]:
    """Log of the waves that a call's tiles make on the SMs, what the last one leaves idle, and the board."""
    waves = np.exp(calls[:, _TILES_AT].astype(float)) / gpu.num_sms
    board = np.broadcast_to([math.log(gpu.num_sms), math.log(gpu.tdp_w)], (len(calls), 2))
    of_calls = np.stack([np.log(waves), np.log(np.ceil(waves) / waves)], axis=1)
    return np.concatenate([of_calls, board], axis=1).astype(np.float32)


WAVES = Board(num_features=4, features=_waves)
