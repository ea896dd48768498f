"""Quantiles at fixed levels, and the cells between them: by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.queue import grids

P50, P90 = grids.level_index(0.5), grids.level_index(0.9)


def test_weibull_positions_by_hand():
    nine = grids.grid_of([float(value) for value in range(1, 10)])
    assert (nine[P50], nine[P90]) == pytest.approx((5, 9))
    assert nine[grids.level_index(0.8)] == pytest.approx(8)
    assert nine[0] == 1


def test_beyond_the_longest_the_tail_goes_on_as_the_longest_tenth_do():
    """Of 0, 1 .. 19 the longest two exceed 17 by 1.5 on average; the longest stands at the level 20/21."""
    grid = grids.grid_of([float(value) for value in range(20)])
    assert grid[grids.level_index(0.95)] == pytest.approx(19 - 0.05)
    assert grid[grids.level_index(0.99)] == pytest.approx(19 + 1.5 * math.log((1 / 21) / 0.01))
    assert grid[grids.level_index(0.999)] - grid[grids.level_index(0.99)] == pytest.approx(1.5 * math.log(10))


def test_equal_waits_have_no_tail():
    assert grids.grid_of([2.0] * 12) == [2.0] * len(grids.LEVELS)


def test_log_minutes_of_a_minute():
    assert grids.to_log_minutes(60.0) == pytest.approx(math.log(2))
    assert grids.to_waits_s(np.array([0.0, math.log(2)])).tolist() == pytest.approx([0, 60])


@pytest.mark.parametrize(
    ("wait", "cells"),
    [
        (-0.5, (0, 1)),
        (0.0, (0, 1)),
        (0.5, (1, 2)),
        (1.0, (1, 2)),
        (float(len(grids.LEVELS)), (grids.NUM_CELLS - 1, grids.NUM_CELLS)),
    ],
)
def test_a_wait_lies_in_the_cell_that_ends_at_or_above_it(wait, cells):
    assert grids.cells_of([float(i) for i in range(len(grids.LEVELS))], wait) == cells


def test_equal_quantiles_share_a_wait():
    grid = [0.0, 0.0, 0.0, *(float(i) for i in range(3, len(grids.LEVELS)))]
    assert grids.cells_of(grid, 0.0) == (0, 3)
    grid = [0.0, 1.0, 1.0, 1.0, *(float(i) for i in range(4, len(grids.LEVELS)))]
    assert grids.cells_of(grid, 1.0) == (2, 4)
    assert grids.cells_of([1.0] * len(grids.LEVELS), 1.0) == (0, grids.NUM_CELLS)


def test_the_cells_hold_all_waits():
    assert len(grids.CELL_SHARES) == grids.NUM_CELLS == len(grids.LEVELS) + 1
    assert sum(grids.CELL_SHARES) == pytest.approx(1)


@pytest.mark.parametrize("age", [0.0, 0.5, 1.0, 3.0, 5.0])
def test_waits_still_to_come_are_those_of_the_waits_that_are_longer(age):
    """Beside 400,000 waits that are drawn, of which those up to an age are struck out."""
    waits = np.sort(np.random.default_rng(3).weibull(0.8, 400_000))
    grid = np.array(grids.grid_of(waits.tolist()))
    left = waits[waits > age]
    exact = np.quantile(left, grids.LEVELS[:11])
    assert grids.after(grid, age)[:11] == pytest.approx(exact, rel=0.06, abs=0.05)


@given(st.lists(st.floats(0, 12), min_size=1, max_size=40).map(sorted), st.floats(0, 15), st.floats(0, 15))
def test_a_job_that_waited_longer_is_done_waiting_later(waits, one, other):
    grid = np.array(grids.grid_of(waits))
    sooner, later = grids.after(grid, min(one, other)), grids.after(grid, max(one, other))
    assert (later >= sooner - 1e-6).all()
    assert (later >= max(one, other)).all()
    assert (np.diff(later) >= 0).all()
