"""What networks of tensor-core products read of a call and of the GPU."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Op, TensorSpec
from advisor.operators.gemm import FP8_GEMM, GEMM, TENSOR_GEMM, WAVES, product_of
from tests.builders import make_gpu, make_op
from tests.every import of_every
from tests.unit.predict.learned.values import addmm, baddbmm, bmm, half, mm, scaled_mm

SIZES = st.integers(1, 1 << 14)
NVIDIA = [gpu for gpu in load_gpus().values() if gpu.vendor == "NVIDIA"]
A100 = resolve_gpu("A100-SXM-80GB")
# Where the numbers stand of the GPU: of tiles of 128 x 128, how much of the last wave is idle, and all waves.
IDLE, NUM_WAVES = 2, 6
# How long tiles of 128 x 128 keep one SM busy, what the best tile takes over sharing all work, reads of L2.
BUSY, BEST, READ = 15, 17, 18


def strided(op: Op, first: int, left: tuple[int, ...], right: tuple[int, ...]) -> Op:
    """The call with other strides of the two operands."""
    inputs = list(op.inputs)
    for i, stride in ((first, left), (first + 1, right)):
        inputs[i] = replace(inputs[i], stride=stride)
    return replace(op, inputs=tuple(inputs))


def numbers(op: Op) -> tuple[float, ...]:
    values = TENSOR_GEMM.features(op)
    assert values is not None
    return values


def board(op: Op, gpu: GpuSpec) -> list[float]:
    (row,) = WAVES.features(np.array([numbers(op)], np.float32), gpu)
    return row.tolist()


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        (mm(5, 6, 7), (1, 5, 6, 7)),
        (addmm(5, 6, 7), (1, 5, 6, 7)),
        (bmm(3, 5, 6, 7), (3, 5, 6, 7)),
        (baddbmm(3, 5, 6, 7), (3, 5, 6, 7)),
    ],
    ids=lambda case: case.name if isinstance(case, Op) else "",
)
def test_sizes_are_batch_rows_columns_and_inner(op, sizes):
    product = product_of(half(op))
    assert (product.batch, product.rows, product.columns, product.inner) == sizes
    assert numbers(half(op))[:4] == pytest.approx([math.log(size) for size in sizes])


def test_the_inner_size_goes_by_bytes():
    inner = [product.inner for op in (mm(8, 8, 64), half(mm(8, 8, 64)), scaled_mm(8, 8, 64))
             if (product := product_of(op))]  # fmt: skip
    assert inner == [128, 64, 32]


def test_the_layouts_of_a_layer_forward_and_backward():
    # y = x w' as torch calls it, then dx = dy w and dw = dy' x; x is [512, 64], w [256, 64].
    forward = strided(half(mm(512, 256, 64)), 0, (64, 1), (1, 64))
    of_input = strided(half(mm(512, 64, 256)), 0, (256, 1), (64, 1))
    of_weight = strided(half(mm(256, 64, 512)), 0, (1, 256), (64, 1))
    layouts = [
        (product.is_left_transposed, product.is_right_transposed)
        for op in (forward, of_input, of_weight)
        if (product := product_of(op))
    ]
    assert layouts == [(False, True), (False, False), (True, False)]
    assert len({numbers(op)[5:7] for op in (forward, of_input, of_weight)}) == 3


def test_without_strides_a_weight_is_transposed_and_a_batch_is_not():
    assert numbers(half(addmm(8, 8, 8)))[5:7] == (0.0, 1.0)
    assert numbers(half(bmm(2, 8, 8, 8)))[5:7] == (0.0, 0.0)


@pytest.mark.parametrize("op", [mm(0, 8, 8), replace(mm(8, 8, 8), flops=0)])
def test_a_call_without_work_is_unknown(op):
    assert TENSOR_GEMM.features(half(op)) is None


def test_a_scaled_product_is_one_of_three_operators_by_its_scales():
    calls = (
        scaled_mm(256, 384, 512),
        scaled_mm(256, 384, 512, (256, 1), (1, 384)),
        scaled_mm(256, 384, 512, (256, 4), (4, 3)),
    )
    features = [FP8_GEMM.features(op) for op in calls]
    assert [values[-2:] for values in features if values] == [(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)]
    assert len({values[:-2] for values in features if values}) == 1


def test_a_scaled_product_whose_scales_were_not_recorded_raises_as_other_holes_do():
    op = scaled_mm(8, 8, 8)
    with pytest.raises(IndexError):
        FP8_GEMM.features(replace(op, inputs=op.inputs[:2]))


@given(SIZES, SIZES, SIZES, st.sampled_from(NVIDIA))
def test_all_numbers_are_finite_on_every_gpu(m, n, k, gpu):
    op = half(mm(m, n, k))
    assert len(numbers(op)) == TENSOR_GEMM.num_features
    assert len(board(op, gpu)) == WAVES.num_features
    assert all(map(math.isfinite, (*numbers(op), *board(op, gpu))))


@given(st.integers(1, 200))
def test_waves_are_whole_where_tiles_fill_the_sms(num_waves):
    gpu = make_gpu(num_sms=108)
    whole = board(half(mm(128 * num_waves, 128 * 108, 4096)), gpu)
    assert whole[IDLE] == pytest.approx(0.0, abs=1e-6)
    assert whole[NUM_WAVES] == pytest.approx(math.log(num_waves), abs=1e-5)
    one_more = board(half(mm(128 * num_waves, 128 * 108 + 1, 4096)), gpu)
    tiles = num_waves * 109
    assert one_more[IDLE] == pytest.approx(math.log(math.ceil(tiles / 108) / (tiles / 108)), abs=1e-5)


@given(SIZES, SIZES, SIZES)
def test_more_sms_at_the_same_rates_mean_fewer_waves_and_nothing_else_of_the_call(m, n, k):
    op = half(mm(m, n, k))
    few, many = (board(op, make_gpu(num_sms=sms)) for sms in (50, 100))
    assert few[NUM_WAVES] - many[NUM_WAVES] == pytest.approx(math.log(2), abs=1e-5)
    of_call = slice(8, 12)  # intensity, time in compute and in memory, share of L2
    assert few[of_call] == many[of_call]


@given(st.integers(1, 50), st.sampled_from([64, 512, 4096]))
def test_an_sm_is_busy_for_all_its_waves(num_waves, inner):
    gpu = make_gpu(num_sms=108)
    numbers_of = [board(half(mm(128 * num_waves, 128 * 108 - less, inner)), gpu) for less in (0, 127, 128)]
    flops = num_waves * 2 * 128 * 128 * inner
    busy_us = 1e6 * flops / (gpu.tensor_flops_per_s["fp16"] / 108)
    # A column less saves no tile, and where a wave is one row of tiles, a tile less saves no wave.
    assert [row[BUSY] for row in numbers_of] == pytest.approx([math.log(busy_us + 0.1)] * 3, abs=1e-5)


@given(SIZES, SIZES, SIZES, st.sampled_from(NVIDIA))
def test_no_tile_beats_sms_that_share_all_work(m, n, k, gpu):
    row = board(half(mm(m, n, k)), gpu)
    assert row[BEST] >= -1e-5
    assert board(half(mm(2 * m, n, k)), gpu)[BUSY] >= row[BUSY]


def test_each_tile_reads_its_rows_and_columns_of_l2():
    # 2 x 3 tiles, each 128 rows and 128 columns of 512 two-byte elements.
    row = board(half(mm(200, 300, 512)), make_gpu(num_sms=10))
    assert row[READ] == pytest.approx(math.log(6 * 2 * 128 * 512 * 2 / 10), abs=1e-5)


@of_every(NVIDIA, name=lambda gpu: gpu.name)
def test_a_gpu_without_tensor_cores_has_numbers_too(gpu):
    assert all(map(math.isfinite, board(half(mm(512, 512, 512)), gpu)))


def test_names_of_gpus_decide_nothing():
    other = replace(A100, name="X", architecture="Y")
    assert board(half(mm(300, 200, 100)), A100) == board(half(mm(300, 200, 100)), other)


def test_a_scale_is_no_operand():
    op = scaled_mm(8, 16, 32)
    wide = replace(op, inputs=(*op.inputs[:2], TensorSpec(shape=(8, 1), dtype="float32"), op.inputs[3]))
    assert product_of(op) == product_of(wide)


FEATURES = GEMM.learned[0].features


def gradient(rows: int, width: int, *, of_weight: bool = True) -> tuple[float, ...] | None:
    stride = (1, width) if of_weight else (rows, 1)
    left = TensorSpec(shape=(width, rows), dtype="float32", stride=stride)
    right = TensorSpec(shape=(rows, width), dtype="float32", stride=(width, 1))
    return FEATURES(replace(make_op("aten::mm", flops=2 * rows * width**2), inputs=(left, right)))


@pytest.mark.parametrize(
    ("rows", "width", "of_weight", "is_shared"),
    [
        (2**20, 256, True, True),
        (4096, 256, True, False),
        (2**20, 4096, True, False),
        (2**20, 256, False, False),
    ],
)
def test_a_long_sum_of_few_blocks_is_read_as_one_that_is_shared(rows, width, of_weight, is_shared):
    assert gradient(rows, width, of_weight=of_weight)[-1] == float(is_shared)
