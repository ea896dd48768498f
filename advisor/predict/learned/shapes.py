"""An operator call as numbers a network reads: its dimensions, how they fill tiles, how they are aligned.

Only what tells how well a kernel uses a GPU; how much work it is (FLOPs, bytes) stays with the roofline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from advisor.core.values import Op, TensorSpec
from advisor.operators.families import base_name

GEMM, CONV, NORM, POINTWISE = "gemm", "conv", "norm", "pointwise"
FAMILIES = (GEMM, CONV, NORM, POINTWISE)
# How many values a shape of each family has.
NUM_VALUES = {GEMM: 23, CONV: 15, NORM: 7, POINTWISE: 4}

_TILES = (16, 32, 64, 128)
_MEASURED_CONVOLUTION = {"stride": (1, 1), "dilation": (1, 1), "transposed": False, "groups": 1}
_MOST_IMAGES = 64
_PRODUCT_OPERANDS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
# How many dimensions at the end are normalised together: given by a weight, or one.
_SOFTMAX = {"_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"}
_LAYER_NORM = {"native_layer_norm": 1, "native_layer_norm_backward": 4}
_POINTWISE = {
    "add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "pow", "relu", "relu_", "gelu",
    "gelu_backward", "tanh", "tanh_", "tanh_backward", "sigmoid", "sigmoid_backward", "silu", "silu_", "exp",
    "silu_backward", "threshold_backward", "neg", "rsqrt", "sqrt", "where", "masked_fill", "masked_fill_",
    "native_dropout", "native_dropout_backward", "clone", "copy_", "_to_copy", "reciprocal", "leaky_relu",
    "leaky_relu_", "leaky_relu_backward", "hardtanh", "hardtanh_", "clamp", "clamp_min", "addcmul", "addcdiv",
    "sin", "cos", "log", "abs",
}  # fmt: skip
_TANH = {"tanh", "tanh_", "sigmoid"}


@dataclass(frozen=True, slots=True)
class Shape:
    """Which network an operator belongs to, and what that network is told of it."""

    family: str
    values: tuple[float, ...]


def shape_of(op: Op) -> Shape | None:
    """The numbers of one call.

    None for an operator that no network knows, for empty tensors, and where a profiler left out shapes.
    """
    if not op.bytes or not op.inputs or not all(op.inputs[0].shape):
        return None
    try:
        return _shape(op, base_name(op.name))
    except (IndexError, KeyError, ValueError, TypeError):  # not recorded, or no sizes
        return None


def _shape(op: Op, name: str) -> Shape | None:
    if name in _PRODUCT_OPERANDS:
        return _product(op, _PRODUCT_OPERANDS[name])
    if name == "convolution":
        return _convolution(op)
    if name in _SOFTMAX or name in _LAYER_NORM:
        return _norm(op, name)
    if name in _POINTWISE:
        return _pointwise(op, name)
    return None


def _product(op: Op, first: int) -> Shape | None:
    left, right = op.inputs[first].shape, op.inputs[first + 1].shape
    m, k, n = left[-2], left[-1], right[-1]
    batch = left[0] if len(left) > 2 else 1
    if not op.flops or min(batch, m, n, k, *right) < 1:
        return None
    layout = float(_is_transposed(op.inputs[first + 1]))
    return Shape(GEMM, (*_product_values(batch, m, n, k), layout))


def _is_transposed(right: TensorSpec) -> bool:
    """Whether it is stored column by column, as a linear layer's weight is; without strides, as measured.

    Linear layers were measured with their weight transposed, batched products without.
    """
    if right.stride is None:
        return len(right.shape) == 2
    return right.stride[-2] == 1 and right.stride[-1] != 1


def _product_values(batch: int, m: int, n: int, k: int) -> tuple[float, ...]:
    """B products of [M, K] with [K, N]."""
    return (
        *(math.log(size) for size in (batch, m, n, k)),
        -math.log(1 / m + 1 / n + 1 / k),
        *(_padding(size, tile) for size in (m, n) for tile in _TILES),
        *(_padding(k, tile) for tile in (4, 16, 32)),
        *(math.log2(math.gcd(size, 8)) for size in (m, n, k)),
        *(math.log(batch * _tiles(m, tile) * _tiles(n, tile)) for tile in _TILES[1:]),
    )


def _convolution(op: Op) -> Shape | None:
    """Forward, 3 x 3, stride 1, no groups: what was measured. Beyond 64 images efficiency stays as it is."""
    source, weight, target = op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape
    setting = {name: op.attributes[name] for name in _MEASURED_CONVOLUTION}
    is_measured = setting == _MEASURED_CONVOLUTION and weight[2:] == (3, 3)
    if len(source) != 4 or not is_measured or not op.flops or min(*source, *weight, *target) < 1:
        return None
    batch, pixels = min(source[0], _MOST_IMAGES), target[2] * target[3]
    m, n, k = batch * pixels, weight[0], math.prod(weight[1:])
    return Shape(
        CONV,
        (
            *(math.log(size) for size in (batch, source[1], weight[0], pixels, m, k)),
            *(_padding(size, tile) for size in (m, n, k) for tile in (32, 128)),
            *(math.log2(math.gcd(size, 8)) for size in (source[1], weight[0])),
            math.log(_tiles(m, 128) * _tiles(n, 64)),
        ),
    )


def _norm(op: Op, name: str) -> Shape | None:
    shape = op.inputs[0].shape
    columns = _normalised(op, name)
    if columns is None:
        return None
    rows = math.prod(shape) // max(columns, 1)
    if not rows or not columns:
        return None
    power = 2 ** math.ceil(math.log2(columns))
    return Shape(
        NORM,
        (
            float(name in _LAYER_NORM),
            math.log(columns),
            math.log(power / columns),
            _padding(columns, 4),
            _padding(columns, 32),
            float(columns > 1024),  # beyond, softmax takes a block instead of a warp for each row
            math.log(rows * columns),
        ),
    )


def _normalised(op: Op, name: str) -> int | None:
    """How many elements are normalised together; None where a profiler did not say."""
    shape = op.inputs[0].shape
    if name in _LAYER_NORM:
        given = op.attributes.get("normalized_shape")
        if given is not None:
            return math.prod(cast("tuple[int, ...]", given))
        place = _LAYER_NORM[name]
        return math.prod(op.inputs[place].shape) if len(op.inputs) > place else None
    dim = op.attributes.get("dim", -1 if len(shape) <= 2 else None)
    return None if dim is None else shape[cast("int", dim)] if shape else 1


def _pointwise(op: Op, name: str) -> Shape:
    """Powers and hyperbolic tangents take so many instructions that some boards wait for them."""
    return Shape(
        POINTWISE,
        (
            math.log(op.bytes),
            math.log(1 + _num_tensors(op)),
            float(name == "pow"),
            float(name in _TANH),
        ),
    )


def _num_tensors(op: Op) -> int:
    largest = max(math.prod(tensor.shape) for tensor in (*op.inputs, *op.outputs))
    return sum(math.prod(tensor.shape) == largest for tensor in (*op.inputs, *op.outputs))


def _tiles(size: int, tile: int) -> int:
    return -(-size // tile)


def _padding(size: int, tile: int) -> float:
    """Log of what a size grows by when it is rounded up to whole tiles."""
    return math.log(_tiles(size, tile) * tile / size)
