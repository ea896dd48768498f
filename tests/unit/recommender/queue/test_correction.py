"""What forecasts got wrong moves where the next ones are read: by hand."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path
from advisor.core.units import DAY_S
from advisor.pricing.instance_types import read_as
from recommender.queue import grids
from recommender.queue.waits import (
    ANY,
    SIZES,
    WAITS_FILE,
    WALLTIMES,
    Bursts,
    PooledWait,
    QueuedJob,
    assumed_wait,
    class_of,
    that_count,
)
from tests.jobs import make_job

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


HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("size", "walltime_s", "found"),
    [
        (1, None, ("1", "*")), (2, 4 * HOUR_S, ("2..8", "<=4h")), (8, 24 * HOUR_S, ("2..8", "<=1d")),
        (9, 25 * HOUR_S, (">8", ">1d")), (0.5, -1.0, ("1", "*")),
    ],
)  # fmt: skip
def test_jobs_have_classes(size, walltime_s, found):
    assert class_of(size, walltime_s) == found


@pytest.mark.parametrize("walltime_s", [None, HOUR_S, 12 * HOUR_S, 48 * HOUR_S])
def test_more_gpus_never_wait_less(walltime_s):
    for one, more in pairwise(assumed_wait(num_gpus, walltime_s)[0] for num_gpus in (1, 4, 32)):
        assert all(a <= b for a, b in zip(one.waits_s, more.waits_s, strict=True))


@pytest.mark.parametrize("num_gpus", [1, 4, 32])
def test_a_longer_run_never_waits_less(num_gpus):
    for short, long in pairwise(assumed_wait(num_gpus, hours * HOUR_S)[0] for hours in (1, 12, 48)):
        assert all(a <= b for a, b in zip(short.waits_s, long.waits_s, strict=True))


def test_it_says_what_it_rests_on():
    wait_s, note = assumed_wait(4, 2 * HOUR_S)
    assert wait_s.longest_s == wait_s.waits_s[-1] > wait_s.p90 > wait_s.p50
    assert note.facts["num_logs"] >= 2
    assert note.facts["walltime"] == "<=4h"


def test_every_class_is_in_the_file():
    known = {(row.size, row.walltime) for row in read_as(catalog_path(WAITS_FILE), PooledWait)}
    assert known == set(product(SIZES, (ANY, *WALLTIMES)))


FIRST = make_job(0, wait_s=3600, user="ada")


def counted(*jobs: QueuedJob) -> list[bool]:
    bursts = Bursts()
    return [bursts.is_new(job) for job in sorted(jobs, key=lambda job: job.start_s)]


def test_a_burst_that_starts_together_counts_once():
    assert counted(*[make_job(i / 60, wait_s=3600, user="ada") for i in range(200)]) == [True] + 199 * [False]


@pytest.mark.parametrize(
    "other",
    [
        make_job(0, wait_s=3600, user="eve"),
        make_job(0, wait_s=3600, user="ada", size=2),
        make_job(0, wait_s=3600, user="ada", queue="long"),
        make_job(0, wait_s=3600, user="ada", walltime_s=60),
        make_job(0, wait_s=3600 + 301, user="ada"),
        make_job(-6, wait_s=3600 + 360, user="ada"),
    ],
    ids=["user", "size", "queue", "walltime", "started-later", "submitted-earlier"],
)
def test_what_differs_counts(other):
    assert counted(FIRST, other) == [True, True]


def test_a_job_that_started_long_before_does_not_hide_its_like():
    assert counted(*[make_job(0, wait_s=wait_s) for wait_s in (60, 300, 500, 700)]) == [
        True, False, True, False,
    ]  # fmt: skip


def test_of_those_that_wait_the_eldest_of_a_burst_counts():
    burst = [make_job(i, wait_s=math.inf) for i in range(8)]
    other = make_job(3, wait_s=math.inf, user="eve")
    assert that_count([*burst[::-1], other]) == [burst[0], other, burst[6]]


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
