"""A calibration tells two shares of a fitted rate: of products that go by FLOPs, and by bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op
from advisor.formats.recording_files import Measurement
from advisor.operators.tensor_core_gemm import TENSOR_GEMM
from advisor.predict.calibration.calibrating import learned_offsets
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge
from advisor.predict.learned.times import goes_by_bytes, learned_times
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.unit.predict.learned.values import EXACT, TABLES, half, make_network, mm

L4 = resolve_gpu("L4")
NETWORK = make_network(TENSOR_GEMM.num_features + TENSOR_GEMM.board.num_features)
KNOWN = Knowledge(tables=TABLES, networks={"tensor_gemm": NETWORK})
# FLOPs are nearly all of the work of the one, bytes of the other.
SQUARE, THIN = half(mm(8192, 8192, 8192)), half(mm(8, 32768, 8192))
SHARES = st.floats(0.2, 5.0)
SIZES = st.integers(1, 1 << 14)


def kernel_s(op: Op, **shares: float) -> float:
    """Seconds beyond the launch on a GPU that was calibrated so."""
    known = replace(KNOWN, corrections={"L4": shares})
    return float(learned_times([op], L4, constants_for(L4, known), EXACT, known).time_s[0]) - KERNEL_FLOOR_S


def measured(op: Op, time_s: float) -> Measurement:
    measured_op = replace(op, measured_s=KERNEL_FLOOR_S + time_s)
    return Measurement(case="", op=measured_op, precision=EXACT, spread=0.0, num_samples=1)


def found(*kernels: Measurement) -> dict[str, float]:
    return {fit.name: fit.after for fit in learned_offsets(kernels, L4, KNOWN)}


def test_what_binds_a_product_is_told_by_its_work() -> None:
    by_bytes = [
        goes_by_bytes(op, "tensor_gemm", L4, constants_for(L4, KNOWN), EXACT) for op in (SQUARE, THIN)
    ]
    assert by_bytes == [False, True]


def test_each_share_moves_the_products_that_it_is_of() -> None:
    shares = {"tensor_gemm": 0.8, "tensor_gemm_bytes": 0.5}
    assert kernel_s(SQUARE, **shares) == pytest.approx(kernel_s(SQUARE) / 0.8)
    assert kernel_s(THIN, **shares) == pytest.approx(kernel_s(THIN) / 0.5)


@given(SIZES, SIZES, SIZES, SHARES, SHARES)
def test_every_product_lies_between_the_two(m: int, n: int, k: int, flops: float, of_bytes: float) -> None:
    op = half(mm(m, n, k))
    reached = kernel_s(op) / kernel_s(op, tensor_gemm=flops, tensor_gemm_bytes=of_bytes)
    assert min(flops, of_bytes) * (1 - 1e-6) <= reached <= max(flops, of_bytes) * (1 + 1e-6)


@given(SIZES, SIZES, SIZES, SHARES)
def test_a_calibration_with_one_share_moves_all_products_alike(m: int, n: int, k: int, share: float) -> None:
    op = half(mm(m, n, k))
    assert kernel_s(op, tensor_gemm=share) == pytest.approx(kernel_s(op) / share)


@pytest.mark.parametrize("flops", [0.7, 1.2])
@pytest.mark.parametrize("of_bytes", [0.6, 1.1])
def test_kernels_of_both_kinds_give_back_the_shares_that_made_them(flops: float, of_bytes: float) -> None:
    shares = {"tensor_gemm": flops, "tensor_gemm_bytes": of_bytes}
    kernels = [measured(op, kernel_s(op, **shares)) for op in (SQUARE, THIN) for _ in range(3)]
    assert found(*kernels) == pytest.approx({f"learned.{name}": share for name, share in shares.items()})


def test_few_kernels_tell_one_share() -> None:
    square, thin = measured(SQUARE, kernel_s(SQUARE) / 0.8), measured(THIN, kernel_s(THIN) / 0.8)
    for kernels in ([square], [thin], [thin] * 5, [square] * 5, [square] * 3 + [thin] * 2):
        assert found(*kernels) == pytest.approx({"learned.tensor_gemm": 0.8})


def test_kernels_that_are_hardly_longer_than_a_launch_tell_nothing() -> None:
    tiny = half(mm(8, 8, 8))
    assert found(*[measured(tiny, 1e-6)] * 5) == {}


def test_shares_are_finite_numbers_for_a_trace_of_all_kinds() -> None:
    known = replace(KNOWN, corrections={"L4": {"tensor_gemm": 0.8, "tensor_gemm_bytes": 0.5}})
    ops = [SQUARE, mm(64, 64, 64), THIN]
    times_s = learned_times(ops, L4, constants_for(L4, known), EXACT, known).time_s
    assert np.isnan(times_s).tolist() == [False, True, False]
