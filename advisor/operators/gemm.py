"""Matrix products, in batches and without."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Op, Phase, TensorSpec
from advisor.operators.case import RATES, Caps, Case, Draw, call, shrunk, tensor
from advisor.operators.family import BoardInputs, Compute, Family, Learned, Likeness, base_name, each, names
from advisor.operators.work import Attributes, Tensors, alignment, item_bytes, numel, padding, tiles

# At which operand a product begins.
_FIRST_OPERAND = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
_SCALED = "_scaled_mm"
# Rows and columns of the result that one thread block computes, in kernels that cuBLAS and CUTLASS choose.
_KERNEL_TILES = ((64, 64), (128, 64), (128, 128), (128, 256), (256, 128))
_MIDDLE = 2
# Bytes of the operands that the sizes below are in.
_ITEM_BYTES = 2
# What 16 bytes hold of them, and the longest run that helps.
_MOST_ALIGNED = 64
_NUM_SIZES = 4
_BLOCK = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct:
    """B products of [M, K] with [K, N]."""

    batch: int
    rows: int
    columns: int
    inner: int
    """K in two-byte elements: kernels go through it by bytes, so TF32 takes twice the steps, FP8 half."""
    is_left_transposed: bool
    """Stored column by column, as what a weight's gradient begins with."""
    is_right_transposed: bool
    """So too, as a linear layer's weight is."""


def product_of(op: Op) -> MatrixProduct | None:
    """The sizes and layout of a call; None for one without work."""
    first = _FIRST_OPERAND.get(base_name(op.name), 0)
    left, right = op.inputs[first], op.inputs[first + 1]
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    batch = left.shape[0] if len(left.shape) > 2 else 1
    if not op.flops or min(batch, rows, columns, inner) < 1:
        return None
    return MatrixProduct(
        batch=batch,
        rows=rows,
        columns=columns,
        inner=max(inner * item_bytes(left.dtype) // _ITEM_BYTES, 1),
        is_left_transposed=_is_stored_transposed(left, unless_known=False),
        is_right_transposed=_is_stored_transposed(right, unless_known=len(right.shape) == 2),
    )


def _is_stored_transposed(operand: TensorSpec, *, unless_known: bool) -> bool:
    """Whether it is stored column by column; without strides, as measured.

    Linear layers were measured with their weight transposed, batched products without.
    """
    if operand.stride is None:
        return unless_known
    return operand.stride[-2] == 1 and operand.stride[-1] != 1


def _product_features(op: Op) -> tuple[float, ...] | None:
    """The logarithms of the sizes come first: what depends on the GPU is computed from them."""
    product = product_of(op)
    if product is None:
        return None
    batch, m, n, k = product.batch, product.rows, product.columns, product.inner
    return (
        *(math.log(size) for size in (batch, m, n, k)),
        -math.log(1 / m + 1 / n + 1 / k),
        float(product.is_left_transposed),
        float(product.is_right_transposed),
        *(padding(m, tile) for tile in (16, 64, 128, 256)),
        *(padding(n, tile) for tile in (64, 128, 256)),
        padding(k, 64),
        *(math.log2(math.gcd(size, _MOST_ALIGNED)) for size in (m, n, k)),
    )


def _scaled_features(op: Op) -> tuple[float, ...] | None:
    """Those of the product, and which of three operators it is by what one scale covers."""
    numbers = _product_features(op)
    if numbers is None:
        return None
    scale, inner = op.inputs[2].shape, op.inputs[0].shape[-1]
    is_whole = math.prod(scale) == 1
    is_block = not is_whole and scale[-1] == tiles(inner, _BLOCK)
    return (*numbers, float(is_whole), float(is_block))


def _waves(calls: NDArray[np.float32], gpu: GpuSpec) -> NDArray[np.float32]:
    """How the tiles fill the GPU's SMs, what binds the kernel, and whether its operands fit into L2.

    The last five are times of tiles: the longest that one SM is busy, for small, middle and large tiles; how
    far the best tile is from a GPU whose SMs share all work; and what tiles of 128 x 128 read of L2.
    """
    batch, m, n, k = np.rint(np.exp(calls[:, :_NUM_SIZES].astype(float))).T
    num_tiles = [batch * np.ceil(m / rows) * np.ceil(n / columns) for rows, columns in _KERNEL_TILES]
    waves = [tiles / gpu.num_sms for tiles in num_tiles]
    peak_flops_per_s = gpu.tensor_flops_per_s.get("fp16", gpu.vector_flops_per_s["fp32"])
    compute_us = 1e6 * 2 * batch * m * n * k / peak_flops_per_s
    num_bytes = _ITEM_BYTES * batch * (m * k + k * n + m * n)
    memory_us = 1e6 * num_bytes / gpu.memory_bytes_per_s
    sm_flops_per_us = peak_flops_per_s / gpu.num_sms / 1e6
    busy_us = [
        np.ceil(wave) * 2 * k * rows * columns / sm_flops_per_us
        for wave, (rows, columns) in zip(waves, _KERNEL_TILES, strict=True)
    ]
    read_bytes = _ITEM_BYTES * num_tiles[_MIDDLE] * k * sum(_KERNEL_TILES[_MIDDLE])
    columns = [
        *(np.log(np.ceil(wave) / wave) for wave in waves),
        *(np.log(waves[i]) for i in (0, _MIDDLE, 4)),
        np.log(compute_us / memory_us),
        np.log(compute_us + 0.1),
        np.log(memory_us + 0.1),
        np.log(num_bytes / gpu.l2_bytes),
        np.full(len(m), math.log(peak_flops_per_s / gpu.num_sms / 1e12)),
        np.full(len(m), math.log(gpu.memory_bytes_per_s / gpu.num_sms / 1e9)),
        *(np.log(busy_us[i] + 0.1) for i in (0, _MIDDLE, 4)),
        np.log(np.min(busy_us, axis=0) / compute_us),
        np.log(read_bytes / gpu.num_sms),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


WAVES = BoardInputs(num_features=19, features=_waves)

# By how much networks that did not see Ampere, Hopper or Blackwell were off there; batch, rows, columns and
# inner size (``python -m research.training.fit_likeness``).
LIKENESS = Likeness(of_all=0.0012, of_size=0.0275, of_call=0.0088, lengths=(1.8, 6.9, 5.3, 3.6))
# The same of those that tell most of the others, which ``advisor calibrate`` measures.
TELLING_SIZES = (
    (1, 816, 4096, 4096), (1, 225, 2560, 256), (1, 65, 4096, 16384), (1, 9216, 4608, 4608),
    (1, 48, 128, 3072), (48, 2048, 2048, 320), (1, 225, 51200, 4096), (1, 1537, 1536, 51200),
    (1, 257, 2560, 32), (1, 8192, 2560, 1024), (1, 2, 5120, 3584), (48, 2048, 96, 2048), (1, 2816, 128, 4096),
    (1, 1536, 12288, 10240), (1, 17, 64, 128), (1, 1536, 51200, 512), (192, 1024, 128, 1024),
    (12, 2048, 2048, 128), (1, 7, 2560, 51200), (1, 7, 5120, 128),
)  # fmt: skip

TENSOR_GEMM = Learned(
    name="tensor_gemm", names=frozenset(_FIRST_OPERAND), num_features=18, features=_product_features,
    counts_flops=True, steps=25000, units=128, rates=frozenset({"fp16", "bf16", "tf32"}),
    coupled={"tf32": 0.15}, held_out_share=0.8, least_sigma=0.04, is_of_fitted=True,
    measured_by=frozenset({"gemm_fraction.fp16"}), board=WAVES, board_noise=0.1, quantile=0.5,
    few_weigh_more=True, likeness=LIKENESS,
)  # fmt: skip
FP8_GEMM = Learned(
    name="fp8_gemm", names=frozenset({_SCALED}), num_features=20, features=_scaled_features,
    counts_flops=True, steps=2500, units=128, rates=frozenset({"fp8"}), is_of_fitted=True,
    measured_by=frozenset({"gemm_fraction.fp8"}), board=WAVES, board_noise=0.1, quantile=0.5,
    few_weigh_more=True, likeness=LIKENESS,
)  # fmt: skip


_BATCHED = 3


def _product_of_groups(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Groups share the rows, columns or inner sizes of a matrix, or are a batch of two; experts are groups.

    [M, K] with [G, K, N]: rows; [M, K] with [K, N]: inner; [G, M, K] with [K, N]: columns.
    """
    left, right = inputs[0].shape, inputs[1].shape
    batches = left[0] if len(left) == len(right) == _BATCHED else 1
    return 2 * batches * left[-2] * left[-1] * right[-1]


_TILES = (16, 32, 64, 128)
_LONGEST_OF_BATCHES, _FEW_BLOCKS = 4096, 64


def _features(op: Op) -> tuple[float, ...] | None:
    first = _FIRST_OPERAND[base_name(op.name)]
    left, right = op.inputs[first].shape, op.inputs[first + 1].shape
    m, k, n = left[-2], left[-1], right[-1]
    batch = left[0] if len(left) > 2 else 1
    if not op.flops or min(batch, m, n, k, *right) < 1:
        return None
    layout = _is_stored_transposed(op.inputs[first + 1], unless_known=len(right) == 2)
    # A weight's gradient of few blocks shares its long sum among more. Batches share none, and without a
    # transposed right operand only they were measured.
    is_gradient = _is_stored_transposed(op.inputs[first], unless_known=False) and len(right) == 2
    is_shared = is_gradient and k > _LONGEST_OF_BATCHES and tiles(m, 128) * tiles(n, 64) <= _FEW_BLOCKS
    return (
        *(math.log(size) for size in (batch, m, n, k)),
        -math.log(1 / m + 1 / n + 1 / k),
        *(padding(size, tile) for size in (m, n) for tile in _TILES),
        *(padding(k, tile) for tile in (4, 16, 32)),
        *(alignment(size) for size in (m, n, k)),
        *(math.log(batch * tiles(m, tile) * tiles(n, tile)) for tile in _TILES[1:]),
        float(layout or is_shared),
    )


# Rows, columns, inner: a square product, a feed-forward layer, a batch of attention scores.
_LARGE = ((4096, 4096, 4096), (8192, 4096, 1024))
_HEADS = (96, 1024, 1024, 128)


def _products(index: int, caps: Caps) -> Iterator[Case]:
    """Products forward and, with one operand transposed, backward; some sizes fit no tile of a kernel."""
    for (dtype, tf32), phase in product(RATES, (Phase.FORWARD, Phase.BACKWARD)):
        draw = Draw(f"gemm {dtype} {tf32} {phase}", index)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=1)
        if phase is Phase.FORWARD:
            left, right = tensor((rows, inner), dtype), tensor((inner, columns), dtype, stride=(1, inner))
            operation = call("addmm", tensor((columns,), dtype), left, right)
        else:
            # The input's gradient has no transposed operand, the weight's has the left one.
            stride = (1, rows) if draw.choice((False, True)) else (inner, 1)
            left = tensor((rows, inner), dtype, stride=stride)
            operation = call("mm", left, tensor((inner, columns), dtype))
        yield Case(family="gemm", dtype=dtype, tf32=tf32, phase=phase, call=operation)


def _batched_products(index: int, caps: Caps) -> Iterator[Case]:
    for dtype, tf32 in RATES:
        draw = Draw(f"bmm {dtype} {tf32}", index)
        batch = draw.size(2, 512)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=batch)
        stride = draw.choice((None, (inner * columns, 1, inner)))
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
        return caps.allow(batch * elements, dtype, flops=flops, tf32=tf32)

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
    # In FP16, which every GPU with tensor cores does on them; with the right operand as a layer's weight.
    for batch, rows, columns, inner in TELLING_SIZES:
        if batch == 1:
            right = tensor((inner, columns), "float16", stride=(1, inner))
            one = call("mm", tensor((rows, inner), "float16"), right)
            yield Case(family="gemm", dtype="float16", tf32=False, call=one)
        else:
            left, right = (tensor((batch, *shape), "float16") for shape in ((rows, inner), (inner, columns)))
            yield Case(family="bmm", dtype="float16", tf32=False, call=call("bmm", left, right))


# More batches gain nothing on kernels that were held out, but for products, whose errors still fall.
_FP32_GEMM = Learned(
    name="gemm", names=frozenset(_FIRST_OPERAND), num_features=23, features=_features, counts_flops=True,
    steps=7000, units=128, rates=frozenset({"fp32"}), measured_by=frozenset({"gemm_fraction.fp32"}),
)  # fmt: skip


GEMM = Family(
    word="gemm",
    others=names("linear linear_backward"),
    flops={
        **each(
            "mm bmm matmul _scaled_mm _int_mm mv",
            lambda inputs, outputs, _: 2 * numel(outputs[0]) * inputs[0].shape[-1],
        ),
        **each(
            "addmm baddbmm _addmm_activation addmv",
            lambda inputs, outputs, _: 2 * numel(outputs[0]) * inputs[1].shape[-1],
        ),
        "addbmm": lambda inputs, outputs, _: 2 * numel(outputs[0]) * inputs[1].shape[2] * inputs[1].shape[0],
        **each("_grouped_mm _scaled_grouped_mm", _product_of_groups),
        **each("dot vdot", lambda inputs, *_: 2 * numel(inputs[0])),
    },
    compute=Compute(fraction="gemm_fraction", tensor_cores=True),
    calibrates="gemm_fraction",
    learned=(_FP32_GEMM, TENSOR_GEMM, FP8_GEMM),
    cases={"gemm": _products, "bmm": _batched_products},
    calibration_cases=_calibration_cases,
)
