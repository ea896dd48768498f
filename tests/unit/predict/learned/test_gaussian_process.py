"""What measured kernels tell of others, against the textbook's formula, and by its laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.operators.family import Likeness
from advisor.operators.gemm import LIKENESS, TELLING_SIZES, TENSOR_GEMM
from advisor.predict.learned import told
from tests.unit.predict.learned.values import bmm, half, mm

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
