"""What forecasts got wrong moves where the next ones are read: by hand."""

import math

import numpy as np
import pytest

from advisor.core.units import DAY_S
from recommender.queue import grids

NOBODY = np.zeros(grids.NUM_CELLS)
GRID = [float(i) for i in range(len(grids.LEVELS))]
P50, P90 = grids.level_index(0.5), grids.level_index(0.9)
TOP = grids.NUM_CELLS - 1


def reading(
    correction: grids.GridCorrection, now_s: float = 0.0, waiting: np.ndarray = NOBODY, longest: float = 0.0
) -> grids.GridReading:
    return grids.GridReading(shares=correction.shares(now_s, waiting), longest=longest)


def corrected(
    correction: grids.GridCorrection, now_s: float = 0.0, waiting: np.ndarray = NOBODY
) -> np.ndarray:
    return reading(correction, now_s, waiting).of(GRID)


def places(correction: grids.GridCorrection, waiting: np.ndarray = NOBODY) -> np.ndarray:
    return reading(correction, 0.0, waiting).places


def after(cell: int, count: int, at_s: float = 0.0) -> grids.GridCorrection:
    correction = grids.GridCorrection()
    for _ in range(count):
        correction.learn((cell, cell + 1), 0.0, at_s)
    return correction


def test_without_evidence_a_grid_is_read_as_it_is():
    assert corrected(grids.GridCorrection()) == pytest.approx(GRID)


def test_forecasts_that_were_right_change_nothing():
    correction = grids.GridCorrection()
    for _ in range(500):
        correction.learn((0, grids.NUM_CELLS), 0.0, 0.0)
    assert corrected(correction) == pytest.approx(GRID)


def test_as_many_misses_as_right_ones_halve_the_levels():
    """Half of the evidence lies beyond the grid, so what was the median is passed by three in four."""
    moved = places(grids.GridCorrection()), places(after(TOP, int(grids.RIGHT_ONES)))
    quarter = np.interp(0.25, [0, *grids.LEVELS, 1], range(-1, grids.NUM_CELLS))
    assert (moved[0][P50], moved[1][grids.level_index(0.2)]) == pytest.approx((P50, grids.level_index(0.4)))
    assert np.interp(quarter, moved[1], grids.LEVELS) == pytest.approx(0.125, abs=0.005)
    assert corrected(after(TOP, int(grids.RIGHT_ONES)))[P90] == GRID[-1]


def test_a_few_waits_move_little_and_old_ones_less():
    one = corrected(after(TOP, 1))[P90] - P90
    assert 0 < one < 0.25
    old = corrected(after(TOP, 1), grids.MEMORY_S)[P90] - P90
    assert old == pytest.approx(one / math.e, rel=0.05)
    assert corrected(after(TOP, 100), 365 * DAY_S) == pytest.approx(GRID, abs=1e-6)


def test_a_wait_counts_from_its_submission():
    """One that lasted two weeks counts as one that was learned two weeks ago."""
    long, old = grids.GridCorrection(), grids.GridCorrection()
    long.learn((TOP, TOP + 1), grids.MEMORY_S, grids.MEMORY_S)
    old.learn((TOP, TOP + 1), 0.0, 0.0)
    assert corrected(long, grids.MEMORY_S) == pytest.approx(corrected(old, grids.MEMORY_S))


def test_the_longest_wait_that_lasts_ends_the_cell_above_a_grid():
    """Equal waits have no tail, and yet a third of the evidence waits for far longer."""
    waiting = np.zeros(grids.NUM_CELLS)
    waiting[TOP] = grids.RIGHT_ONES / 2
    flat = [1.0] * len(grids.LEVELS)
    jam = reading(grids.GridCorrection(), 0.0, waiting, 9.0).of(flat)
    assert jam[P50] == 1
    assert 5 < jam[P90] < 9
    assert reading(grids.GridCorrection(), longest=9.0).of(flat) == pytest.approx(flat)


def test_nothing_is_read_beyond_the_grid():
    assert corrected(after(TOP, 10**4)).max() == GRID[-1]
    assert corrected(after(0, 10**4)).min() == GRID[0]


def test_those_that_wait_count_as_kaplan_and_meier_do():
    """One hundred right forecasts, a hundred jobs beyond the median: the median by the product of hazards."""
    waiting = np.zeros(grids.NUM_CELLS)
    cell = P50 + 1  # above the median
    waiting[cell] = 100
    surviving, share = 1.0, []
    for i in range(grids.NUM_CELLS):
        at_risk = grids.RIGHT_ONES * grids.CELL_SHARES[i:].sum() + waiting[i:].sum()
        surviving *= 1 - grids.RIGHT_ONES * grids.CELL_SHARES[i] / at_risk
        share.append(1 - surviving)
    ranks = places(grids.GridCorrection(), waiting)
    assert np.interp(ranks[P50], np.arange(grids.NUM_CELLS), share) == pytest.approx(0.5)
    assert (ranks > places(grids.GridCorrection())).all()


def test_a_job_that_was_just_submitted_tells_next_to_nothing():
    waiting = np.zeros(grids.NUM_CELLS)
    waiting[0] = 10
    assert corrected(grids.GridCorrection(), 0.0, waiting) == pytest.approx(GRID, abs=0.3)
