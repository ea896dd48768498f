"""A calibration of products tells more of those like the kernels that were measured."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Op
from advisor.formats.recording_files import Measurement
from advisor.operators.family import Likeness
from advisor.operators.gemm import LIKENESS, TELLING_SIZES, TENSOR_GEMM
from advisor.predict.calibrating import learned_kernels, learned_offsets
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Kernels, Knowledge, read_calibration, write_calibration
from advisor.predict.learned import SIGMA_DAY, CallTimes, is_learned_from, learned_times, told
from tests.unit.predict.learned.values import EXACT, TABLES, bmm, half, make_network, mm

# No kernel of an L4 was learned from, those of an L40S were.
L4, L40S = resolve_gpu("L4"), resolve_gpu("L40S")
NETWORK = make_network(TENSOR_GEMM.num_features + TENSOR_GEMM.board.num_features)
KNOWN = Knowledge(tables=TABLES, networks={"tensor_gemm": NETWORK})
SQUARE, NEAR, THIN = half(mm(8192, 8192, 8192)), half(mm(8192, 8192, 8000)), half(mm(8, 32768, 64))
FACTORS = st.floats(0.3, 3.0)


def times(*ops: Op, gpu: GpuSpec = L4, kernels: Kernels | None = None) -> CallTimes:
    known = replace(KNOWN, kernels={gpu.name: kernels or {}})
    return learned_times(ops, gpu, constants_for(gpu, known), EXACT, known)


def measured(op: Op, factor: float) -> Measurement:
    """A kernel that takes longer than predicted by a factor."""
    took_s = factor * float(times(op).time_s[0])
    return Measurement(case="", op=replace(op, measured_s=took_s), precision=EXACT, spread=0.0, num_samples=1)


def slower_by(*pairs: tuple[Op, float]) -> Kernels:
    return learned_kernels([measured(op, factor) for op, factor in pairs], L4, KNOWN)


def test_a_kernel_is_kept_with_its_sizes_and_what_it_reached():
    ((kernel,),) = slower_by((SQUARE, 1.25)).values()
    assert kernel == pytest.approx((1, 8192, 8192, 8192, 0.8), rel=1e-6)


@given(factor=FACTORS)
def test_the_nearer_a_product_the_more_a_kernel_moves_it(factor):
    before, after = times(SQUARE, NEAR, THIN), times(SQUARE, NEAR, THIN, kernels=slower_by((SQUARE, factor)))
    moved = np.abs(np.log(after.time_s / before.time_s)) / max(abs(np.log(factor)), 1e-9)
    assert moved[0] >= moved[1] >= moved[2]
    # One kernel is partly luck.
    assert (moved <= 1 + 1e-9).all()


def test_kernels_of_two_sizes_each_move_their_like():
    kernels = slower_by(*[(SQUARE, 1.3)] * 5, *[(THIN, 0.7)] * 5)
    ratio = times(SQUARE, THIN, kernels=kernels).time_s / times(SQUARE, THIN).time_s
    assert ratio == pytest.approx([1.3, 0.7], rel=0.08)


@given(factors=st.lists(FACTORS, max_size=6))
def test_a_measured_gpu_is_surer_however_its_kernels_came_out(factors):
    kernels = slower_by(*((half(mm(512 * i, 4096, 512)), f) for i, f in enumerate(factors, start=1)))
    assert (times(SQUARE, THIN, kernels=kernels).sigma <= times(SQUARE, THIN).sigma + 1e-12).all()


def test_a_gpu_that_was_learned_from_goes_by_one_share():
    assert is_learned_from(TENSOR_GEMM, constants_for(L40S, KNOWN))
    kernels = slower_by((SQUARE, 1.5))
    assert times(SQUARE, gpu=L40S, kernels=kernels).time_s == pytest.approx(times(SQUARE, gpu=L40S).time_s)


def test_kernels_as_short_as_a_launch_tell_nothing():
    tiny = replace(measured(half(mm(8, 8, 8)), 1.0).op, measured_s=1e-6)
    kernel = Measurement(case="", op=tiny, precision=EXACT, spread=0.0, num_samples=1)
    assert learned_kernels([kernel], L4, KNOWN) == {}
    assert learned_offsets([kernel], L4, KNOWN) == ()


def test_other_operators_and_rates_tell_nothing():
    assert learned_kernels([measured(half(mm(512, 512, 512)), 1.0)], L4, replace(KNOWN, networks={})) == {}
    single = replace(mm(512, 512, 512), measured_s=1e-3)
    kernel = Measurement(case="", op=single, precision=EXACT, spread=0.0, num_samples=1)
    assert learned_kernels([kernel], L4, KNOWN) == {}


def test_what_was_found_before_does_not_count_in_what_is_found_now():
    kernel = measured(SQUARE, 1.25)
    again = replace(KNOWN, kernels={"L4": {"tensor_gemm": [[1, 8192, 8192, 8192, 0.5]]}})
    assert learned_kernels([kernel], L4, again) == learned_kernels([kernel], L4, KNOWN)


def test_they_come_back_from_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kernels = slower_by((SQUARE, 1.3), (THIN, 0.7))
    write_calibration("L4", "today", {"learned.tensor_gemm": 0.9}, kernels=kernels, networks="these")
    here = replace(KNOWN, is_calibrated_here=True, fingerprint="these")
    constants = constants_for(L4, here)
    (stored,), (expected,) = constants.learned_kernels.values(), kernels.values()
    assert np.array(stored) == pytest.approx(np.array(expected), rel=1e-5)
    assert learned_times([SQUARE], L4, constants, EXACT, here).time_s == pytest.approx(
        times(SQUARE, kernels=kernels).time_s, rel=1e-4
    )
    others = constants_for(L4, replace(here, fingerprint="others"))
    assert (others.learned_kernels, others.is_share_outdated) == ({}, True)


def test_a_day_is_left_however_many_kernels_there_are():
    kernels = slower_by(*[(SQUARE, 1.1)] * 50)
    assert times(SQUARE, kernels=kernels).sigma[0] > SIGMA_DAY


@pytest.mark.parametrize(
    "kernels",
    [
        "tensor_gemm = 0.5",
        "tensor_gemm = [0.5]",
        "tensor_gemm = [[1, 2, 3, 4]]",
        "tensor_gemm = [[1, 2, 3, 4, 0]]",
        "tensor_gemm = [[1, 2, 3, 4, 11]]",
        "tensor_gemm = [[1, 2, 3, -4, 0.5]]",
        "tensor_gemm = [[1, 2, 3, nan, 0.5]]",
        "tensor_gemm = [[1, 2, 3, true, 0.5]]",
        'tensor_gemm = [["a", 2, 3, 4, 0.5]]',
        "gemm = [[1, 2, 3, 4, 0.5]]",
        "hope = [[1, 2, 3, 4, 0.5]]",
    ],
)
def test_a_file_with_broken_ones_is_refused(kernels, monkeypatch, tmp_path):
    from advisor.core.errors import CatalogError

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = write_calibration("L4", "today", {"streaming_fraction": 0.5})
    path.write_text(path.read_text() + f"[kernels]\n{kernels}\n")
    with pytest.raises(CatalogError, match=r"L4\.toml' cannot be used.*Delete it"):
        read_calibration("L4")


VAGUE = Likeness(of_all=0.01, of_size=0.03, of_call=0.01, lengths=(2.0, 3.0))
POINTS = arrays(float, st.tuples(st.integers(1, 6), st.just(2)), elements=st.floats(0, 12), unique=True)


def plain_covariance(likeness: Likeness, left: np.ndarray, right: np.ndarray) -> float:
    """Rasmussen and Williams 2006, equation 4.17 with nu = 3/2, of two calls."""
    distance = math.sqrt(
        sum(((a - b) / length) ** 2 for a, b, length in zip(left, right, likeness.lengths, strict=True))
    )
    scaled = math.sqrt(3) * distance
    return likeness.of_all + likeness.of_size * (1 + scaled) * math.exp(-scaled)


def plain_told(likeness: Likeness, measured: np.ndarray, values: np.ndarray, asked: np.ndarray):
    """Equations 2.25 and 2.26, one call after the other, with an inverse."""
    known = [[plain_covariance(likeness, a, b) for b in measured] for a in measured]
    inverse = np.linalg.inv(np.array(known) + likeness.of_call * np.eye(len(measured)))
    for call in asked:
        across = np.array([plain_covariance(likeness, call, b) for b in measured])
        yield across @ inverse @ values, likeness.variance - across @ inverse @ across


@given(measured=POINTS, asked=POINTS, seed=st.integers(0, 9))
def test_it_is_the_textbook(measured, asked, seed):
    values = np.random.default_rng(seed).normal(0, 0.2, len(measured))
    mean, variance = told(VAGUE, measured, values, asked)
    expected = list(plain_told(VAGUE, measured, values, asked))
    assert mean == pytest.approx([one for one, _ in expected], abs=1e-9)
    assert variance == pytest.approx([max(left, 0.0) for _, left in expected], abs=1e-9)


@given(measured=POINTS, asked=POINTS)
def test_another_kernel_never_makes_less_sure(measured, asked):
    values = np.zeros(len(measured))
    fewer = told(VAGUE, measured[:-1], values[:-1], asked).variance
    assert (told(VAGUE, measured, values, asked).variance <= fewer + 1e-12).all()
    assert (fewer <= VAGUE.variance + 1e-12).all()


def test_nothing_measured_tells_nothing():
    mean, variance = told(VAGUE, np.empty((0, 2)), np.empty(0), np.zeros((3, 2)))
    assert (mean.tolist(), variance) == ([0.0] * 3, pytest.approx(VAGUE.variance))


def test_the_sizes_that_are_measured_are_those_that_the_network_reads():
    for batch, rows, columns, inner in TELLING_SIZES:
        op = half(mm(rows, columns, inner) if batch == 1 else bmm(batch, rows, columns, inner))
        values = TENSOR_GEMM.features(op)
        sizes = np.exp(values[: len(LIKENESS.lengths)])
        assert sizes == pytest.approx([batch, rows, columns, inner])
