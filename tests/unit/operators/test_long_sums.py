"""Weights' gradients over many rows."""

from dataclasses import replace

import pytest

from advisor.core.values import TensorSpec
from advisor.operators.gemm import GEMM
from tests.builders import make_op

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
