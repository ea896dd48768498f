"""How well quantiles foresaw waits: coverage with its standard error, and pinball loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from advisor.core.errors import InputError
from advisor.core.units import DAY_S, HOUR_S
from advisor.core.values import Quantiles
from recommender.queue.grids import CELL_ENDS, Array, GridReading, cells_of, level_index, to_log_minutes
from recommender.queue.waits import (
    ALL,
    WIDER_BIN_JOBS,
    Bin,
    JobLog,
    Queued,
    QueuedJob,
    QueueState,
    Waits,
    bin_of,
    replay,
)

_P50, _P90 = level_index(0.5), level_index(0.9)
_TAILS = np.array([0.1, 0.99])
# A billionth is no miss: quantiles went through a logarithm.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The 10 % and the 99 % quantile."""

    p10: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one way to foresee waits did."""

    coverage: Quantiles
    """Share of the waits at or below each quantile; 0.5 and 0.9 are perfect."""
    coverage_se: Quantiles | None
    """Standard error of ``coverage``, days being independent; None for a single day."""
    tails: Tails
    """As ``coverage``; waits that equal a quantile count in part, as many as the levels of all quantiles that
    they equal leave below it."""
    pinball: Quantiles
    """Mean loss of each quantile in log minutes; less is better."""


class Tally:
    """Sums by day, so that no job need be kept."""

    def __init__(self, submits_s: Array) -> None:
        """Args: all submissions that may come, in order."""
        self._begin_s = submits_s[0]
        self._sums: Array = np.zeros((int((submits_s[-1] - submits_s[0]) // DAY_S) + 1, 7))

    def add(self, waits: Array, submits_s: Array, grids: Array) -> None:
        """Waits [n] in log minutes, when their jobs were submitted [n], and what was foreseen [n, levels]."""
        miss = waits[:, None] - grids[:, [_P50, _P90]]
        losses = np.maximum(np.array([0.5, 0.9]) * miss, np.array([-0.5, -0.1]) * miss)
        # How much of each wait lies below the tails.
        cells = [cells_of(grid, wait) for grid, wait in zip(grids.tolist(), waits.tolist(), strict=True)]
        low, high = (np.array(CELL_ENDS)[list(ends)][:, None] for ends in zip(*cells, strict=True))
        below = np.clip((_TAILS - low) / (high - low), 0, 1)
        rows = np.hstack([np.ones((len(waits), 1)), miss <= _EQUAL, losses, below])
        days = ((submits_s - self._begin_s) // DAY_S).astype(int)
        np.add.at(self._sums, days, rows)

    def score(self) -> Score:
        """Of all that was added; one wait at least."""
        sums = self._sums[self._sums[:, 0] > 0]
        count = sums[:, 0].sum()
        p50, p90, loss50, loss90, p10, p99 = (sums[:, 1:].sum(axis=0) / count).tolist()
        errors = [_standard_error(sums[:, 0], sums[:, column]) for column in (1, 2)]
        return Score(
            coverage=Quantiles(p50=p50, p90=p90),
            coverage_se=None if len(sums) < 2 else Quantiles(p50=errors[0], p90=errors[1]),
            tails=Tails(p10=p10, p99=p99),
            pinball=Quantiles(p50=loss50, p90=loss90),
        )


def pinball(value: float, quantile: float, probability: float) -> float:
    """Loss that the true quantile makes least (Koenker and Bassett 1978).

    >>> pinball(3.0, 1.0, 0.9), round(pinball(1.0, 3.0, 0.9), 12)
    (1.8, 0.2)
    """
    miss = value - quantile
    return max(probability * miss, (probability - 1) * miss)


def _standard_error(counts: Array, covered: Array) -> float:
    """Of a share whose days are drawn whole: the ratio estimator of cluster samples (Cochran 1977)."""
    num_days = len(counts)
    if num_days < 2:
        return math.nan
    residuals = covered - counts * covered.sum() / counts.sum()
    scale = num_days / (num_days - 1)
    return math.sqrt(scale * float(residuals @ residuals)) / float(counts.sum())


TRAINED_SHARE = 0.7
WAYS = ("online", "frozen", "uncorrected", "baseline")
HORIZON_S = 7 * DAY_S
FROZEN_EVERY_S = DAY_S
# The correction remembers weeks: looking at it once an hour is enough.
CORRECTED_EVERY_S = HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """Four ways to foresee the same jobs."""

    num_jobs: int
    num_checked: int
    num_frozen: int
    """Moments at which a fit was frozen."""
    online: Score
    """By all that is known when a job is submitted."""
    frozen: Score
    """By fits of a moment, one a day, for the jobs of the week after it: as a fit is used."""
    uncorrected: Score
    """As ``online``, without the correction."""
    baseline: Score
    """Quantiles of all recent jobs."""


def check(log: JobLog, trained_share: float = TRAINED_SHARE) -> QueueCheck:
    """All see the same: each wait at the moment its job starts, of the last 8,000 jobs that count.

    Raises InputError: too few jobs to check anything.
    """
    first = math.floor(len(log.jobs) * trained_share)
    ways, waits = _Ways(log.jobs[first:]), Waits()
    replayed = replay((*log.jobs, *log.waiting), waits)
    started = (queued for queued in replayed if queued.job.start_s < math.inf)
    for index, queued in enumerate(started):
        if queued.grid is None:
            continue
        ways.freeze(queued.job.submit_s, waits)
        if index >= first:
            ways.foresee(index - first, queued, waits)
    if ways.num_checked < WIDER_BIN_JOBS:
        raise InputError(
            f"only {ways.num_checked} of {len(log.jobs)} jobs can be checked, which says nothing: a log for"
            f" this needs at least {math.ceil(WIDER_BIN_JOBS / (1 - TRAINED_SHARE))} jobs. Export a longer"
            " time."
        )
    return ways.scored(len(log.jobs))


class _Ways:
    """The ways to foresee, side by side; jobs come in order of submission."""

    def __init__(self, checked: Sequence[QueuedJob]) -> None:
        self._submits_s = np.array([job.submit_s for job in checked])
        self._minutes = np.array([to_log_minutes(job.wait_s) for job in checked])
        self._bins = [bin_of(job) for job in checked]
        self._tallies = {way: Tally(self._submits_s) for way in WAYS}
        # A week before them, so that fits of every age foresee each job.
        self._freeze_s = self._submits_s[0] - HORIZON_S
        self._readings: dict[QueueState, tuple[float, GridReading]] = {}
        self.num_checked = self.num_frozen = 0

    def freeze(self, now_s: float, waits: Waits) -> None:
        """Once a day: a fit of now, for the checked jobs of the following week."""
        if now_s < self._freeze_s:
            return
        self._freeze_s = now_s + FROZEN_EVERY_S
        first, end = np.searchsorted(self._submits_s, [now_s, now_s + HORIZON_S]).tolist()
        reading = waits.reading(now_s)

        @cache
        def grid(which: Bin) -> Array:
            expected = waits.expect(which)
            assert expected is not None, "waits of all jobs are known"  # noqa: S101
            return reading.of(expected)

        if first < end:
            self._add("frozen", slice(first, end), [grid(which) for which in self._bins[first:end]])
            self.num_frozen += 1

    def foresee(self, index: int, queued: Queued, waits: Waits) -> None:
        """The checked job of this index, by what is known at its submission."""
        assert queued.grid is not None, "jobs are checked once grids are known"  # noqa: S101
        everything = waits.expect(ALL)
        assert everything is not None, "the bin of all jobs holds those of every other"  # noqa: S101
        job = slice(index, index + 1)
        self._add("online", job, [self._read(queued, waits).of(queued.grid)])
        self._add("uncorrected", job, [np.array(queued.grid)])
        self._add("baseline", job, [np.array(everything)])
        self.num_checked += 1

    def _read(self, queued: Queued, waits: Waits) -> GridReading:
        now_s = queued.job.submit_s
        looked_s, reading = self._readings.get(queued.state, (-math.inf, None))
        if reading is None or now_s - looked_s >= CORRECTED_EVERY_S:
            reading = waits.reading(now_s, queued.state)
            self._readings[queued.state] = now_s, reading
        return reading

    def scored(self, num_jobs: int) -> QueueCheck:
        """All scores."""
        return QueueCheck(
            num_jobs=num_jobs,
            num_checked=self.num_checked,
            num_frozen=self.num_frozen,
            **{way: tally.score() for way, tally in self._tallies.items()},
        )

    def _add(self, way: str, jobs: slice, grids: Sequence[Array]) -> None:
        self._tallies[way].add(self._minutes[jobs], self._submits_s[jobs], np.array(grids))
