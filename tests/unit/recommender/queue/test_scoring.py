"""Coverage, its standard error and loss: by hand."""

import math

import numpy as np
import pytest

from advisor.core.units import DAY_S, HOUR_S
from recommender.queue.grids import LEVELS, level_index
from recommender.queue.scoring import Score, Tally, pinball

P50, P90 = level_index(0.5), level_index(0.9)
GRID = [float(i) for i in range(len(LEVELS))]


def scored(waits: list[float], submits_s: list[float], grid: list[float] = GRID) -> Score:
    tally = Tally(np.array(submits_s))
    for wait, submit_s in zip(waits, submits_s, strict=True):
        tally.add(np.array([wait]), np.array([submit_s]), np.array([grid]))
    return tally.score()


def test_coverage_and_loss_of_four_waits():
    waits = [0.5, P50, P50 + 1.0, P90 + 1.0]
    score = scored(waits, [0.0, 1.0, 2.0, 3.0])
    assert (score.coverage.p50, score.coverage.p90) == (0.5, 0.75)
    assert score.pinball.p50 == pytest.approx(np.mean([pinball(wait, P50, 0.5) for wait in waits]))
    assert score.pinball.p90 == pytest.approx(np.mean([pinball(wait, P90, 0.9) for wait in waits]))
    assert score.coverage_se is None  # one day


def test_the_standard_error_is_that_of_days():
    """Three days: 2 of 2, 1 of 2 and 0 of 4 covered; the mean is 3/8, residuals 1.25, 0.25, -1.5."""
    waits = [0, 0, 0, 99, 99, 99, 99, 99]
    days = [0, 0, 1, 1, 2, 2, 2, 2]
    score = scored([float(w) for w in waits], [day * DAY_S + HOUR_S for day in days])
    assert score.coverage.p50 == 3 / 8
    assert score.coverage_se is not None
    assert score.coverage_se.p50 == pytest.approx(math.sqrt(1.5 * (1.25**2 + 0.25**2 + 1.5**2)) / 8)


def test_more_jobs_of_the_same_days_make_no_smaller_error():
    waits, days = [0.0, 99.0, 0.0], [0.0, DAY_S, 2 * DAY_S]
    few, many = (
        scored(waits, days),
        scored([w for w in waits for _ in range(50)], [d for d in days for _ in range(50)]),
    )
    assert few.coverage_se is not None
    assert many.coverage_se is not None
    assert few.coverage_se.p50 == pytest.approx(many.coverage_se.p50) == pytest.approx(1 / 3)


def test_tails_share_what_equals_them():
    """No wait at all up to the level 0.4: a job that did not wait lies a quarter below the 10 % quantile."""
    grid = [0.0 if level <= 0.4 else float(i) for i, level in enumerate(LEVELS)]
    score = scored([0.0, 0.0], [0.0, 1.0], grid)
    assert score.tails.p10 == pytest.approx(0.25)
    assert score.tails.p99 == 1
    assert scored([99.0], [0.0]).tails.p99 == 0
