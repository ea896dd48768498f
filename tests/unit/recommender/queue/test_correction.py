"""What forecasts got wrong moves where the next ones are read: by hand."""

import math

import numpy as np
import pytest

from advisor.core.units import DAY_S
from recommender.queue.grids import (
    CELL_SHARES,
    LEVELS,
    MEMORY_S,
    NUM_CELLS,
    RIGHT_ONES,
    Correction,
    Reading,
    level_index,
)

NOBODY = np.zeros(NUM_CELLS)
GRID = [float(i) for i in range(len(LEVELS))]
P50, P90 = level_index(0.5), level_index(0.9)
TOP = NUM_CELLS - 1


def reading(
    correction: Correction, now_s: float = 0.0, waiting: np.ndarray = NOBODY, longest: float = 0.0
) -> Reading:
    return Reading.by(correction.shares(now_s, waiting), longest)


def corrected(correction: Correction, now_s: float = 0.0, waiting: np.ndarray = NOBODY) -> np.ndarray:
    return reading(correction, now_s, waiting).of(GRID)


def places(correction: Correction, waiting: np.ndarray = NOBODY) -> np.ndarray:
    return reading(correction, 0.0, waiting).places


def after(cell: int, count: int, at_s: float = 0.0) -> Correction:
    correction = Correction()
    for _ in range(count):
        correction.learn((cell, cell + 1), 0.0, at_s)
    return correction


def test_without_evidence_a_grid_is_read_as_it_is():
    assert corrected(Correction()) == pytest.approx(GRID)


def test_forecasts_that_were_right_change_nothing():
    correction = Correction()
    for _ in range(500):
        correction.learn((0, NUM_CELLS), 0.0, 0.0)
    assert corrected(correction) == pytest.approx(GRID)


def test_as_many_misses_as_right_ones_halve_the_levels():
    """Half of the evidence lies beyond the grid, so what was the median is passed by three in four."""
    moved = places(Correction()), places(after(TOP, int(RIGHT_ONES)))
    quarter = np.interp(0.25, [0, *LEVELS, 1], range(-1, NUM_CELLS))
    assert (moved[0][P50], moved[1][level_index(0.2)]) == pytest.approx((P50, level_index(0.4)))
    assert np.interp(quarter, moved[1], LEVELS) == pytest.approx(0.125, abs=0.005)
    assert corrected(after(TOP, int(RIGHT_ONES)))[P90] == GRID[-1]


def test_a_few_waits_move_little_and_old_ones_less():
    one = corrected(after(TOP, 1))[P90] - P90
    assert 0 < one < 0.25
    old = corrected(after(TOP, 1), MEMORY_S)[P90] - P90
    assert old == pytest.approx(one / math.e, rel=0.05)
    assert corrected(after(TOP, 100), 365 * DAY_S) == pytest.approx(GRID, abs=1e-6)


def test_a_wait_counts_from_its_submission():
    """One that lasted two weeks counts as one that was learned two weeks ago."""
    long, old = Correction(), Correction()
    long.learn((TOP, TOP + 1), MEMORY_S, MEMORY_S)
    old.learn((TOP, TOP + 1), 0.0, 0.0)
    assert corrected(long, MEMORY_S) == pytest.approx(corrected(old, MEMORY_S))


def test_the_longest_wait_that_lasts_ends_the_cell_above_a_grid():
    """Equal waits have no tail, and yet a third of the evidence waits for far longer."""
    waiting = np.zeros(NUM_CELLS)
    waiting[TOP] = RIGHT_ONES / 2
    flat = [1.0] * len(LEVELS)
    jam = reading(Correction(), 0.0, waiting, 9.0).of(flat)
    assert jam[P50] == 1
    assert 5 < jam[P90] < 9
    assert reading(Correction(), longest=9.0).of(flat) == pytest.approx(flat)


def test_nothing_is_read_beyond_the_grid():
    assert corrected(after(TOP, 10**4)).max() == GRID[-1]
    assert corrected(after(0, 10**4)).min() == GRID[0]


def test_those_that_wait_count_as_kaplan_and_meier_do():
    """One hundred right forecasts, a hundred jobs beyond the median: the median by the product of hazards."""
    waiting = np.zeros(NUM_CELLS)
    cell = P50 + 1  # above the median
    waiting[cell] = 100
    surviving, share = 1.0, []
    for i in range(NUM_CELLS):
        at_risk = RIGHT_ONES * CELL_SHARES[i:].sum() + waiting[i:].sum()
        surviving *= 1 - RIGHT_ONES * CELL_SHARES[i] / at_risk
        share.append(1 - surviving)
    ranks = places(Correction(), waiting)
    assert np.interp(ranks[P50], np.arange(NUM_CELLS), share) == pytest.approx(0.5)
    assert (ranks > places(Correction())).all()


def test_a_job_that_was_just_submitted_tells_next_to_nothing():
    waiting = np.zeros(NUM_CELLS)
    waiting[0] = 10
    assert corrected(Correction(), 0.0, waiting) == pytest.approx(GRID, abs=0.3)
