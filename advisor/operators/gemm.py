"""Matrix products, in batches and without."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.case import RATES, Caps, Case, call, tensor, transposed
from advisor.operators.draw import Draw, shrunk
from advisor.operators.family import Compute, Family, Learned, base_name, each, names
from advisor.operators.tensor_core_gemm import FP8_GEMM, TELLING_SIZES, TENSOR_GEMM
from advisor.operators.tiles import alignment, padding, tiles
from advisor.operators.work import Attributes, Tensors, item_bytes, numel

_BATCHED = 3

# --- FLOPs -----------------------------------------------------------------------------------------


def _product(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 2 * numel(outputs[0]) * inputs[0].shape[-1]


def _product_with_addend(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 2 * numel(outputs[0]) * inputs[1].shape[-1]


def _batch_reducing_product(
    inputs: Tensors,
    outputs: Tensors,
    attributes: Attributes,  # noqa: ARG001
) -> int:
    batches, _, inner = inputs[1].shape
    return 2 * numel(outputs[0]) * inner * batches


def _product_of_groups(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Groups share the rows, columns or inner sizes of a matrix, or are a batch of two; experts are groups.

    [M, K] with [G, K, N]: rows; [M, K] with [K, N]: inner; [G, M, K] with [K, N]: columns.
    """
    left, right = inputs[0].shape, inputs[1].shape
    batches = left[0] if len(left) == len(right) == _BATCHED else 1
    return 2 * batches * left[-2] * left[-1] * right[-1]


def _dot(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 2 * numel(inputs[0])


# --- What the network reads ------------------------------------------------------------------------

# At which operand a product begins.
_FIRST_OPERAND = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
_TILES = (16, 32, 64, 128)


def _features(op: Op) -> tuple[float, ...] | None:
    first = _FIRST_OPERAND[base_name(op.name)]
    left, right = op.inputs[first].shape, op.inputs[first + 1].shape
    m, k, n = left[-2], left[-1], right[-1]
    batch = left[0] if len(left) > 2 else 1
    if not op.flops or min(batch, m, n, k, *right) < 1:
        return None
    layout = float(_is_transposed(op.inputs[first + 1]))
    return (*_sizes(batch, m, n, k), layout)


def _is_transposed(right: TensorSpec) -> bool:
    """Whether it is stored column by column, as a linear layer's weight is; without strides, as measured.

    Linear layers were measured with their weight transposed, batched products without.
    """
    if right.stride is None:
        return len(right.shape) == 2
    return right.stride[-2] == 1 and right.stride[-1] != 1


def _sizes(batch: int, m: int, n: int, k: int) -> tuple[float, ...]:
    """B products of [M, K] with [K, N]."""
    return (
        *(math.log(size) for size in (batch, m, n, k)),
        -math.log(1 / m + 1 / n + 1 / k),
        *(padding(size, tile) for size in (m, n) for tile in _TILES),
        *(padding(k, tile) for tile in (4, 16, 32)),
        *(alignment(size) for size in (m, n, k)),
        *(math.log(batch * tiles(m, tile) * tiles(n, tile)) for tile in _TILES[1:]),
    )


# --- What is measured ------------------------------------------------------------------------------

# Rows, columns, inner: a square product, a feed-forward layer, a batch of attention scores.
_LARGE = ((4096, 4096, 4096), (8192, 4096, 1024))
_HEADS = (96, 1024, 1024, 128)


def _products(index: int, caps: Caps) -> Iterator[Case]:
    """Products forward and, with one operand transposed, backward; some sizes fit no tile of a kernel."""
    for (dtype, tf32), phase in product(RATES, (Phase.FORWARD, Phase.BACKWARD)):
        draw = Draw(f"gemm {dtype} {tf32} {phase}", index)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=1)
        right_stride = transposed(inner, columns)
        left = tensor((rows, inner), dtype)
        right = tensor((inner, columns), dtype, stride=right_stride)
        operation = call("addmm", tensor((columns,), dtype), left, right)
        if phase is Phase.BACKWARD:
            # The input's gradient has no transposed operand, the weight's has the left one.
            is_weight = draw.choice((False, True))
            stride = transposed(rows, inner) if is_weight else (inner, 1)
            left = tensor((rows, inner), dtype, stride=stride)
            operation = call("mm", left, tensor((inner, columns), dtype))
        yield Case(family="gemm", dtype=dtype, tf32=tf32, phase=phase, call=operation)


def _batched_products(index: int, caps: Caps) -> Iterator[Case]:
    """Products of attention heads and their like."""
    for dtype, tf32 in RATES:
        draw = Draw(f"bmm {dtype} {tf32}", index)
        batch = draw.size(2, 512)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=batch)
        stride = draw.choice((None, (inner * columns, *transposed(inner, columns))))
        left = tensor((batch, rows, inner), dtype)
        right = tensor((batch, inner, columns), dtype, stride=stride)
        yield Case(family="bmm", dtype=dtype, tf32=tf32, call=call("bmm", left, right))


def _product_sizes(draw: Draw, caps: Caps, rate: tuple[str, bool], batch: int) -> tuple[int, ...]:
    dtype, tf32 = rate
    multiple = draw.choice((1, 8, 64, 64))
    high = 16384 if batch == 1 else 2048
    sizes = draw.size(16, 2 * high, multiple), draw.size(16, high, multiple), draw.size(16, high, multiple)

    def fits(rows: int, columns: int, inner: int) -> bool:
        elements = rows * inner + inner * columns + rows * columns
        flops = 2 * batch * rows * columns * inner
        return (
            flops <= caps.most_flops(dtype, tf32) and batch * elements * item_bytes(dtype) <= caps.num_bytes
        )

    return shrunk(sizes, fits)


def _calibration_cases() -> Iterator[Case]:
    batch, rows, columns, inner = _HEADS
    heads = (batch, rows, inner), (batch, inner, columns)
    for dtype, tf32 in RATES:
        for rows, columns, inner in _LARGE:
            one = call("mm", tensor((rows, inner), dtype), tensor((inner, columns), dtype))
            yield Case(family="gemm", dtype=dtype, tf32=tf32, call=one)
        batched = call("bmm", *(tensor(shape, dtype) for shape in heads))
        yield Case(family="bmm", dtype=dtype, tf32=tf32, call=batched)
    for batch, rows, columns, inner in TELLING_SIZES:
        yield _half_product(batch, rows, columns, inner)


def _half_product(batch: int, rows: int, columns: int, inner: int) -> Case:
    """In FP16, which every GPU with tensor cores does on them; with the right operand as a layer's weight."""
    if batch == 1:
        right = tensor((inner, columns), "float16", stride=transposed(inner, columns))
        one = call("mm", tensor((rows, inner), "float16"), right)
        return Case(family="gemm", dtype="float16", tf32=False, call=one)
    left, right = (tensor((batch, *shape), "float16") for shape in ((rows, inner), (inner, columns)))
    return Case(family="bmm", dtype="float16", tf32=False, call=call("bmm", left, right))


GEMM = Family(
    word="gemm",
    others=names("linear linear_backward"),
    flops={
        **each("mm bmm matmul _scaled_mm _int_mm mv", _product),
        **each("addmm baddbmm _addmm_activation addmv", _product_with_addend),
        "addbmm": _batch_reducing_product,
        **each("_grouped_mm _scaled_grouped_mm", _product_of_groups),
        **each("dot vdot", _dot),
    },
    compute=Compute(fraction="gemm_fraction", tensor_cores=True),
    calibrates="gemm_fraction",
    learned=(
        Learned(
            name="gemm",
            names=frozenset(_FIRST_OPERAND),
            num_features=23,
            features=_features,
            counts_flops=True,
            # More batches gain nothing on kernels that were held out, but for products, whose errors still
            # fall.
            steps=7000,
            units=128,
            rates=frozenset({"fp32"}),
            measured_by=frozenset({"gemm_fraction.fp32"}),
        ),
        TENSOR_GEMM,
        FP8_GEMM,
    ),
    cases={"gemm": _products, "bmm": _batched_products},
    calibration_cases=_calibration_cases,
)
