"""How products are alike is fitted to what networks are off; made-up GPUs whose likeness is known."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.operators.family import Likeness
from advisor.operators.gemm import LIKENESS, TELLING_SIZES
from advisor.predict.learned import covariance, told
from research.training.fit_likeness import Off, fit, nearest, sizes_of_calibration

TRUE = Likeness(of_all=0.01, of_size=0.03, of_call=0.005, lengths=(2.0, 3.0, 3.0, 3.0))


def made_up(number: int, *, likeness: Likeness = TRUE, seed: int = 0) -> list[Off]:
    """GPUs that differ from a network as ``likeness`` says, on 200 products each."""
    rng = np.random.default_rng(seed)
    measured = []
    for i in range(number):
        sizes = np.log(np.stack([rng.integers(1, 64, 200), *rng.integers(8, 4096, (3, 200))], axis=1))
        covariances = covariance(likeness, sizes, sizes) + likeness.of_call * np.eye(200)
        off = np.linalg.cholesky(covariances) @ rng.normal(size=200)
        measured.append(Off(gpu=f"GPU {i}", sizes=sizes, off=off))
    return measured


@pytest.fixture(scope="module")
def measured() -> list[Off]:
    return made_up(8)


def test_what_made_the_errors_is_found_again(measured: list[Off]) -> None:
    found = fit(measured, steps=20)
    assert found.of_call == pytest.approx(TRUE.of_call, rel=0.4)
    # Eight GPUs are eight draws of what all calls of a GPU share.
    assert 0.3 <= found.variance / TRUE.variance <= 3
    assert all(0.4 <= length / true <= 3 for length, true in zip(found.lengths, TRUE.lengths, strict=True))


def test_errors_of_no_likeness_are_each_their_own() -> None:
    own = Likeness(of_all=1e-6, of_size=1e-6, of_call=0.02, lengths=(2.0, 3.0, 3.0, 3.0))
    found = fit(made_up(8, likeness=own), steps=20)
    assert found.of_call == pytest.approx(0.02, rel=0.2)
    assert found.of_all < 0.002


def test_the_sizes_leave_less_than_others_do(measured: list[Off]) -> None:
    sizes = sizes_of_calibration(measured, TRUE)
    assert sizes.shape == (20, 4)
    rng = np.random.default_rng(1)

    def left(design: np.ndarray) -> float:
        return float(
            np.mean([told(TRUE, design, np.zeros(20), off.sizes).variance.mean() for off in measured])
        )

    others = [left(rng.permutation(measured[0].sizes)[:20]) for _ in range(20)]
    assert left(sizes) < np.median(others)


def test_the_nearest_are_those_themselves_and_each_once(measured: list[Off]) -> None:
    sizes = measured[0].sizes
    assert nearest(TRUE, sizes, sizes[[7, 3, 90]]) == [7, 3, 90]
    twice = nearest(TRUE, sizes, sizes[[7, 7, 7]])
    assert twice[0] == 7
    assert len(set(twice)) == 3


def test_what_ships_can_be_measured_on_a_small_gpu() -> None:
    assert len(set(TELLING_SIZES)) == 20
    for batch, rows, columns, inner in TELLING_SIZES:
        assert 2 * batch * rows * columns * inner < 4e11
        assert 2 * batch * (rows * inner + inner * columns + rows * columns) < 2**29
    # A GPU of no likeness would need no kernels.
    assert LIKENESS.of_size > LIKENESS.of_call
